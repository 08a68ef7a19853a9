"""Makes a report: checks the options, chooses the database, reads, computes, writes files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from spark_events.api.errors import UsageError, needs_extra
from spark_events.history.options import Engine, ReportOptions
from spark_events.spark.session import LOOPBACK, QUIET, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_events.history.history import History
    from spark_events.history.reading.database import Database
    from spark_events.history.reading.facts import Reading
    from spark_events.history.report import Report
    from spark_events.history.store.store import HistoryStore

_SPARK = {**QUIET, "spark.master": "local[*]"}


def check_outputs(options: ReportOptions) -> None:
    """Check that a page can be made, and overwrites no events, before these are read for hours.

    Raises:
        MissingExtraError: jinja2 is not installed.
        UsageError: an output is one of the files that are read.
    """
    read = [Path(path.removeprefix("file://")).absolute() for path in options.paths]
    for option, output in (("--html", options.html), ("--json", options.json)):
        path = output.absolute() if output is not None else None
        if path is None or not path.is_file():
            continue
        is_of_log = path.suffix == ".jsonl" and any(folder in path.parents for folder in read)
        if is_of_log or any(path.samefile(each) for each in read if each.is_file()):
            raise UsageError(f"{option} {output}: is one of the files that the report is made of")
    if options.html:
        with needs_extra("report", "jinja2", "an HTML page"):
            import jinja2  # noqa: F401


@contextmanager
def open_database(options: ReportOptions, engine: Engine) -> Iterator[Database]:
    """Give the database of a report, and close it afterwards.

    Raises:
        ConfigError: there is no PySpark or no Java; or DuckDB is not installed.
    """
    if engine is Engine.LOCAL:
        from spark_events.history.reading.on_duckdb import DuckDb

        database = DuckDb()
        try:
            yield database
        finally:
            database.close()
        return
    # Leave out reporters: they belong to the applications that the report is about.
    given = {key: value for key, value in options.conf.items() if ".reporter." not in key}
    conf = {**_SPARK, **given}
    if conf["spark.master"].startswith("local"):
        # Spark's own default, 200, is for clusters.
        conf.setdefault("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = {**LOOPBACK, **conf}
    session = start_session("report", conf)
    from spark_events.history.reading.on_spark import Spark

    try:
        yield Spark(session)
    finally:
        session.stop()


def add_to_store(store: HistoryStore, options: ReportOptions) -> list[Reading]:
    """Add the paths to a store, drop its days that are too old, and return how reading went.

    Raises:
        ConfigError: there is nothing at a path.
    """
    readings = [store.add(options.paths, options.sla)] if options.paths else []
    if options.retain_ms is not None:
        store.retain(options.retain_ms)
    return readings


def make_report(database: Database, options: ReportOptions, added: Sequence[Reading] | None = None) -> Report:
    """Return the report of stored events, and write the tables if ``options.parquet`` says so.

    Args:
        database: that reads them.
        options: of the report.
        added: how reading went, if the paths were just added to the store; None adds them.

    Raises:
        ConfigError: there is nothing at a path.
    """
    from spark_events.history.report import collect
    from spark_events.history.tables.all_tables import COLUMNS

    history, readings = _read(database, options, added)
    tables = history.tables()
    if options.parquet:
        database.tables_to_parquet(tables, COLUMNS, options.parquet)
    return collect(history, tables, readings)


def files_of(report: Report, options: ReportOptions) -> dict[Path, bytes]:
    """Return what to write: the JSON and the page, as far as they are asked for."""
    files = {}
    if options.json:
        files[options.json] = orjson.dumps(report.as_values(), option=orjson.OPT_INDENT_2)
    if options.html:
        from spark_events.history.page.page import page

        files[options.html] = page(report).encode("utf-8", "replace")
    return files


def _read(
    database: Database, options: ReportOptions, added: Sequence[Reading] | None
) -> tuple[History, list[Reading]]:
    """Return the history of the paths, or of the store with the paths added, and how reading went."""
    from spark_events.history.history import read_history
    from spark_events.history.store.store import HistoryStore

    if options.store is None:
        history, reading = read_history(
            database, options.paths, options.sla, options.selection, options.times
        )
        return history, [reading]
    store = HistoryStore(database, options.store, options.times)
    readings = add_to_store(store, options) if added is None else list(added)
    return store.history(options.sla, options.selection), readings
