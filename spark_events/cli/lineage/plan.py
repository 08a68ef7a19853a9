"""The command ``lineage plan``: the lineage of SQL files and manifests, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.cli.lineage.revision import Revision
from spark_events.cli.terminal.console import err, print_warnings
from spark_events.jobs.planned import Plan, PlannedStatement, plan_files, plan_of
from spark_events.jobs.planned_catalog import PlannedCatalog
from spark_events.spark.session import LOOPBACK, QUIET, start_session
from spark_events.spark.sql_errors import report_query_errors_alone
from spark_events.spark.temporary_folders import temporary_folder
from spark_events.sql_runner.manifest.visible_files import visible_files

_YAML = (".yaml", ".yml")
PLANNED = (".sql", *_YAML)
"""What the names of SQL files and manifests end in; a file that is named may have another end, and is SQL."""


def plan(paths: list[Path], template: Path | None) -> Plan:
    """Analyze SQL files, then manifests, without running what they say.

    Args:
        paths: files, and folders of them.
        template: has the defaults of the manifests.

    Raises:
        UsageError: no path is given, or one that is neither.
        NothingToReadError: a path does not exist, or has nothing to read.
    """
    return plan_of(_analyzed(_checked(paths, template), template))


def _checked(paths: list[Path], template: Path | None) -> list[list[Path]]:
    """Return the files of each path."""
    if not paths:
        raise UsageError("lineage plan: expected SQL files, manifests, or folders of them")
    if template is not None and not template.is_file():
        raise UsageError(f"--template-file {template}: no such file")
    groups = [_files(path, template) for path in dict.fromkeys(paths)]
    for path, files in zip(dict.fromkeys(paths), groups, strict=True):
        if not files:
            raise NothingToReadError(
                f"{path}: no SQL file (*.sql) and no manifest (*.yaml, *.yml) in this folder"
            )
    if template is not None and not any(file.suffix.lower() in _YAML for files in groups for file in files):
        raise UsageError(f"--template-file {template}: has defaults for manifests, but the paths have none")
    return groups


def plan_of_revision(paths: list[Path], template: Path | None, revision: str) -> Plan:
    """Analyze the same files as they are in a revision of their Git repository; some may not be there.

    Args:
        paths, template: as of ``plan``.
        revision: a branch, a tag, or a commit.

    Raises:
        UsageError: the paths are in no repository, or that does not know the revision; or as of ``plan``.
        ConfigError: Git is missing.
    """
    _checked(paths, template)
    with temporary_folder("revision") as folder:
        other = Revision(revision, folder)
        copies = {copy: path for path in dict.fromkeys(paths) if (copy := other.copy(path)) is not None}
        template = None if template is None else other.copy(template)
        statements = _analyzed([_files(copy, template) for copy in copies], template)
        # Jobs are named after their files: as if they were where those of now are.
        return plan_of(replace(each, origin=_original(each.origin, copies)) for each in statements)


def _original(origin: Path, copies: Mapping[Path, Path]) -> Path:
    for copy, path in copies.items():
        if origin.is_relative_to(copy):
            original = path / origin.relative_to(copy)
            return original if original.name else original.resolve()
    return origin


def _analyzed(groups: Sequence[Sequence[Path]], template: Path | None) -> list[PlannedStatement]:
    sql = [[file for file in files if file.suffix.lower() not in _YAML] for files in groups]
    yaml = (file for files in groups for file in files if file.suffix.lower() in _YAML)
    manifests = _read_manifests(list(dict.fromkeys(yaml)), template)
    report_query_errors_alone()
    with temporary_folder("warehouse") as folder:
        conf = {
            **QUIET,
            **LOOPBACK,
            "spark.master": "local[1]",
            "spark.log.level": "OFF",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.legacy.createHiveTableByDefault": "false",
            "spark.sql.warehouse.dir": folder.as_uri(),
        }
        with err.status("starting Spark"):
            session = start_session("lineage plan", conf)
        try:
            catalog = PlannedCatalog(session)
            statements = plan_files(catalog, sql)
            if manifests is not None:
                from spark_events.sql_runner.analysis.planned_manifests import plan_manifests

                statements += plan_manifests(catalog, manifests)
            return statements
        finally:
            session.stop()


def _files(path: Path, template: Path | None) -> list[Path]:
    """Return a file, or the SQL files and manifests below a folder, without hidden ones and the template."""
    if not path.exists():
        raise NothingToReadError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    return [file for file in visible_files(path, PLANNED, template) if file.is_file()]


def _read_manifests(files: list[Path], template: Path | None) -> Any:
    """Return the manifests; None if there are none, so that their packages are not needed."""
    if not files:
        return None
    from spark_events.sql_runner.manifest.folder import read_files

    manifests = read_files(files, template)
    print_warnings(manifests.warnings)
    return manifests
