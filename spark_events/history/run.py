"""Runs a report: starts Spark, reads, computes, prints and writes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson
from rich.console import Console

from spark_events.api import ConfigError
from spark_events.history.plausible import PossibleTimes
from spark_events.spark_conf import read_conf
from spark_events.spark_session import start_session
from spark_events.texts import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_events.history.history import Tables
    from spark_events.history.report import Report

_INTERRUPTED = 130
_SPARK = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""What the report's own Spark is set to where nobody sets it; it is no cluster's business to watch it."""


class ReportOptions(NamedTuple):
    """What the command line asks for.

    Attributes:
        paths: of stored events.
        sla_ms: by query; that of all others under an empty name.
        since_ms: what was longer before the end is left out; None for all.
        html, json: files to write.
        parquet: the folder of the tables.
        store: the folder that keeps the facts.
        until_now: whether what was heard last holds until now.
        times: which can be.
        master: the cluster.
        conf: ``key=value``.
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
    master: str | None = None
    conf: tuple[str, ...] = ()


def run_report(options: ReportOptions, out: Console, err: Console) -> None:
    """Run a report.

    Args:
        options: what is asked for.
        out: gets the tables.
        err: shows that it works.

    Raises:
        ConfigError: there is no PySpark, no Java or no Jinja, nothing at a path, or a file cannot be written.
    """
    _check(options)
    with err.status("starting Spark"):
        session = start_session("report", _conf(options))
    _leave_at_ctrl_c(err)
    try:
        with err.status("reading events"):
            report = _report(session, options)
    finally:
        session.stop()
    from spark_events.history.terminal import print_report

    print_report(report, out)
    for path, data in _files(options, report):
        path.write_bytes(data)
        out.print(f"written to {plain(str(path))}", soft_wrap=True)
    if options.parquet:
        out.print(f"tables written to {plain(options.parquet)}", soft_wrap=True)


def _leave_at_ctrl_c(err: Console) -> None:
    """End at once at Ctrl-C, in place of PySpark's handler: the JVM is gone by then, each call would fail.

    Nothing is half done by that: files are written at the end, and a store takes what is whole.
    """

    def leave(number: int, frame: object) -> None:
        err.show_cursor()
        err.print("interrupted")
        os._exit(_INTERRUPTED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, leave)


def _report(session: SparkSession, options: ReportOptions) -> Report:
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


def _files(options: ReportOptions, report: Report) -> list[tuple[Path, bytes]]:
    files = []
    if options.json:
        files.append((options.json, orjson.dumps(report.as_dict(), option=orjson.OPT_INDENT_2)))
    if options.html:
        from spark_events.history.page import page

        files.append((options.html, page(report).encode()))
    return files


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


def _conf(options: ReportOptions) -> dict[str, str]:
    found, _ = read_conf(None, options.conf)
    # Reporters are for the applications that are reported on.
    conf = {**_SPARK, **{key: value for key, value in found.items() if ".reporter." not in key}}
    if options.master:
        conf["spark.master"] = options.master
    if conf["spark.master"].startswith("local"):
        # Spark's own default, 200, is for clusters.
        conf.setdefault("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", **conf}
    return conf
