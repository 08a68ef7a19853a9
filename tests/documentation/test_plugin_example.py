"""The package of docs/plugins.md: built, installed, found by its entry point, and used."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.applications import cli
from tests.support.paths import REPO

PACKAGE = REPO / "tests" / "plugin_example"
_QUERY = "SELECT id, json_extract(event, '$.name'), json_extract(event, '$.query_name') FROM events"
REPORT = """
import sys
from spark_events.api import Event
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups

key = "spark.events.reporter.db."
setups, errors = read_all_setups({key + "factory.class": "sqlite", key + "path": sys.argv[1]})
assert not errors, errors
registry = Registry(setups)
registry.start()
registry.root.child("query", (), {"query_name": "orders"}).add_event(
    Event.builder("scope", "MyEvent").set_id("one").set_attribute("n", 1)
)
registry.close(10_000)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the package."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    # From a copy: a build leaves nothing in the repository.
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "spark_events_sqlite.py"):
        (copy / name).write_text((PACKAGE / name).read_text())
    done = subprocess.run([*command, str(copy)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


def test_it_is_listed(installed: dict[str, str]) -> None:
    """``spark-events plugins`` shows it beside our own, with its options."""
    done = subprocess.run(cli("plugins", "--json"), capture_output=True, text=True, env=installed, check=True)
    (found,) = [plugin for plugin in json.loads(done.stdout) if plugin["name"] == "sqlite"]

    assert found["kind"] == "event reporter"
    assert [option["name"] for option in found["options"]] == ["path"]


def test_it_is_checked(installed: dict[str, str], tmp_path: Path) -> None:
    """A missing option of a stranger's reporter is found before a job is submitted."""
    conf = tmp_path / "spark.conf"
    conf.write_text("spark.events.reporter.db.factory.class  sqlite\n")
    command = cli("check", "--properties-file", str(conf))
    done = subprocess.run(command, capture_output=True, text=True, env=installed, check=False)

    assert done.returncode == 3
    assert "spark.events.reporter.db.path: missing; expected a local folder" in re.sub(
        r"\s+", " ", done.stdout + done.stderr
    )


def test_it_is_used(installed: dict[str, str], tmp_path: Path) -> None:
    """Found by its name, it takes events as our own reporters do."""
    database = tmp_path / "events.db"
    subprocess.run([sys.executable, "-c", REPORT, str(database)], env=installed, check=True)
    with sqlite3.connect(database) as connection:
        rows = connection.execute(_QUERY)

        assert rows.fetchall() == [('"one"', "MyEvent", "orders")]


def test_the_docs_have_the_same_code() -> None:
    """docs/plugins.md shows the package as it is, and it has the length that is promised."""
    page = (REPO / "docs" / "plugins.md").read_text()
    code = (PACKAGE / "spark_events_sqlite.py").read_text()

    for name in ("spark_events_sqlite.py", "pyproject.toml", "test_sqlite.py"):
        assert (PACKAGE / name).read_text().strip() in page
    assert len([line for line in code.splitlines() if line.strip()]) <= 35
