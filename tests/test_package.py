"""What people type: ``spark_events.`` and a tab."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import importlib_metadata
import pytest

import spark_events
from spark_events.cli.main import TAGLINE
from tests.support.paths import REPO
from tests.support.spark import local_spark

NAMES = (
    "attach",
    "Attachment",
    "add_lineage_edges",
    "api",
    "ctas",
    "lineage",
    "report",
    "task",
    "__version__",
)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_found_and_works(name: str) -> None:
    """In a process that imported nothing else, as of a user who has just begun."""
    code = f"import spark_events\nassert {name!r} in dir(spark_events)\nprint(spark_events.{name})"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_nothing_else_is_in_the_way() -> None:
    assert sorted(dir(spark_events)) == sorted(NAMES)


def test_files_that_were_copied_have_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shipped with ``--py-files`` has no metadata: commands and ``attach`` work all the same."""

    def version(package: str) -> str:
        raise importlib_metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib_metadata, "version", version)
    assert spark_events.__getattr__("__version__") == "unknown"


def test_one_tagline() -> None:
    """In the package, the help, the README, the site and the index of packages."""
    assert spark_events.__doc__ == TAGLINE
    for page in ("README.md", "pyproject.toml", "mkdocs.yml", "docs/index.md"):
        assert TAGLINE in (REPO / page).read_text(), page


@pytest.fixture
def spark(java: str, tmp_path: Path) -> Iterator[Any]:
    with local_spark("package", tmp_path / "warehouse") as session:
        yield session


@pytest.mark.spark
@pytest.mark.parametrize("fails", [False, True])
def test_with_a_block(spark: Any, tmp_path: Path, fails: bool) -> None:
    """At its end everything is delivered, and the application goes on without."""
    reporter = "spark.events.reporter.file"
    conf = {f"{reporter}.factory.class": "file_log", f"{reporter}.path": str(tmp_path / "events")}
    try:
        with spark_events.attach(spark, conf=conf) as reporting:
            assert reporting.active
            spark.range(10).count()
            if fails:
                raise KeyError("of the user")
    except KeyError:
        assert fails
    assert not reporting.active
    assert "JobStatusChangeEvent" in "".join(path.read_text() for path in (tmp_path / "events").iterdir())
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("package", ["", "ctas", "lineage", "task"])
def test_each_function_has_an_example(package: str) -> None:
    """An editor shows one docstring at a time."""
    module = getattr(spark_events, package) if package else spark_events
    functions = [getattr(module, name) for name in module.__all__]
    without = [
        each.__name__
        for each in functions
        if inspect.isfunction(each)
        and "Example::" not in (each.__doc__ or "")
        and each.__name__ != "table_of"
    ]
    assert without == []
