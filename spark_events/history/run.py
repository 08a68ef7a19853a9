"""Makes a report: checks what is asked for, starts Spark, reads, computes, writes files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from spark_events.api import ConfigError
from spark_events.history.plausible import PossibleTimes
from spark_events.spark.session import LOOPBACK, QUIET, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_events.history.history import Tables
    from spark_events.history.report import Report

_SPARK = {**QUIET, "spark.master": "local[*]"}


class ReportOptions(NamedTuple):
    """What a report is asked for.

    Attributes:
        paths: of stored events.
        sla_ms: by query; that of all others under an empty name.
        since_ms: what was longer before the end is left out; None for all.
        html, json: files to write.
        parquet: the folder of the tables.
        store: the folder that keeps the facts.
        until_now: whether what was heard last holds until now.
        times: which can be.
        conf: Spark's configuration.
    """

    paths: tuple[str, ...]
    sla_ms: dict[str, int]
    since_ms: int | None = None
    html: Path | None = None
    json: Path | None = None
    parquet: str | None = None
    store: str | None = None
    until_now: bool = False
    times: PossibleTimes | None = None
    conf: Mapping[str, str] = {}


def start_spark(options: ReportOptions) -> SparkSession:
    """Start the report's own Spark, when what is asked for can be done.

    Raises:
        ConfigError: there is no PySpark, no Java or no Jinja, or a file cannot be written.
    """
    _check(options)
    # Reporters are for the applications that are reported on.
    given = {key: value for key, value in options.conf.items() if ".reporter." not in key}
    conf = {**_SPARK, **given}
    if conf["spark.master"].startswith("local"):
        # Spark's own default, 200, is for clusters.
        conf.setdefault("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = {**LOOPBACK, **conf}
    return start_session("report", conf)


def make_report(session: SparkSession, options: ReportOptions) -> Report:
    """Return the report of stored events, and write the tables if ``options.parquet`` says so.

    Raises:
        ConfigError: there is nothing at a path.
    """
    from spark_events.history.checkpoints import Sla
    from spark_events.history.history import read_history
    from spark_events.history.report import collect
    from spark_events.history.store import HistoryStore

    by_query = dict(options.sla_ms)
    default_ms = by_query.pop("", Sla().default_ms)
    sla = Sla(default_ms, by_query)
    if options.store is None:
        history, reading = read_history(
            session, options.paths, sla, options.since_ms, options.until_now, options.times
        )
        readings = [reading]
    else:
        store = HistoryStore(session, options.store, options.times)
        readings = [store.add(options.paths, sla)] if options.paths else []
        history = store.history(sla, options.since_ms, options.until_now)
    tables = history.tables()
    report = collect(history, tables, readings)
    if options.parquet:
        write_tables(tables, options.parquet)
    return report


def write_tables(tables: Tables, folder: str) -> None:
    """Write each table as Parquet into a folder of its name, in place of what is there."""
    for name, frame in tables._asdict().items():
        frame.coalesce(1).write.mode("overwrite").parquet(f"{folder.rstrip('/')}/{name}")


def write_files(report: Report, options: ReportOptions) -> list[Path]:
    """Write the page and the JSON as far as they are asked for, and return their paths."""
    written = []
    if options.json:
        options.json.write_bytes(orjson.dumps(report.as_dict(), option=orjson.OPT_INDENT_2))
        written.append(options.json)
    if options.html:
        from spark_events.history.page import page

        options.html.write_text(page(report), encoding="utf-8")
        written.append(options.html)
    return written


def _check(options: ReportOptions) -> None:
    """Find what is wrong before Spark is started and hours of events are read."""
    for path in filter(None, (options.html, options.json)):
        if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
            raise ConfigError(f"{path}: cannot be written; give a file in a folder that exists")
    if options.html:
        try:
            import jinja2  # noqa: F401
        except ModuleNotFoundError as error:
            raise ConfigError("--html needs Jinja: pip install 'spark-events[report]'") from error
