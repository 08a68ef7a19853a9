"""Commands that look for a store where none is: a misspelt name, or a file system that is not mounted."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_events.api import ConfigError
from spark_events.cli.main import app
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.workspace import Workspace

COMMANDS = [
    ("status",),
    ("status", "--json"),
    ("history", "q"),
    ("stop", "q"),
    ("forget", "q"),
    ("session", "--end"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("is_empty", [False, True], ids=["none", "an empty folder"])
def test_a_command_that_needs_a_store_makes_none(
    tmp_path: Path, arguments: tuple[str, ...], is_empty: bool
) -> None:
    store = tmp_path / "mounted" / "store"
    if is_empty:
        store.mkdir(parents=True)

    said = f"store {store}: there is no store of queries; check its name, and that its file system is mounted"
    with pytest.raises(ConfigError, match=re.escape(said)):
        CliRunner().invoke(app, ["sql", *arguments, "--store", str(store)], catch_exceptions=False)

    assert list(tmp_path.rglob("*")) == ([store.parent, store] if is_empty else [])


@pytest.mark.parametrize("file_system", ["local", "S3", pytest.param("HDFS", marks=pytest.mark.extended)])
def test_a_deployment_makes_the_store(
    request: pytest.FixtureRequest, tmp_path: Path, file_system: str
) -> None:
    url = str(tmp_path / "store")
    if file_system == "S3":
        request.getfixturevalue("s3")
        url = f"s3a://queries/{uuid.uuid4().hex}"
    if file_system == "HDFS":
        url = f"{request.getfixturevalue('hdfs').url}/queries/{uuid.uuid4().hex}"
    with pytest.raises(ConfigError, match="there is no store of queries"):
        Workspace.of_existing(url, Placement())
    with Workspace(url, Placement()).deploying():
        assert Workspace.of_existing(url, Placement()).status().rows == ()


def test_a_plan_makes_no_store(tmp_path: Path) -> None:
    """It says what a first deployment would do, so it warns and goes on."""
    workspace = Workspace(str(tmp_path / "store"), Placement(), makes_store=False)

    assert "there is no store of queries" in workspace.lack_of_store
    assert workspace.queries() == {}
    assert list(tmp_path.iterdir()) == []
