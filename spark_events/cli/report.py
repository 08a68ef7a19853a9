"""The command line of ``report``; its dependencies are imported when it runs."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api import ConfigError
from spark_events.api.option_types import DURATION
from spark_events.api.toolkit.formatting import path_without_secrets, text_without_url_secrets
from spark_events.cli.console import INTERRUPTED, err, out, plain, say
from spark_events.cli.options import Conf, SlaOption, parse_sla
from spark_events.cli.reading_bar import reading_bar
from spark_events.cli.serve import (
    PageAccess,
    Serve,
    ServeCertificate,
    ServeClientAuthorities,
    ServeEvery,
    ServeKey,
    ServePassword,
    ServeToken,
    ServeUsername,
    serve_report,
)
from spark_events.history.options import Engine
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.history.options import ReportOptions


def report(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Stored events: files, folders or globs, on any file system of fsspec or Hadoop, of a "
            "file log, replay --on-spark or a collector's file exporter."
        ),
    ] = None,
    sla: SlaOption = None,
    since: Annotated[
        str | None, typer.Option(help="Report only this much time before the last event: 7d, 12h.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures as JSON.")] = None,
    parquet: Annotated[str | None, typer.Option(help="Write the tables as Parquet into this folder.")] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Add the events to this folder, and report on everything in it."),
    ] = None,
    retain: Annotated[
        str | None,
        typer.Option(help="With --store: drop days that ended longer before the last event than this: 400d."),
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Assume the last known state until now.")] = False,
    earliest: Annotated[
        datetime, typer.Option(help="Leave out events before this day (UTC), because their clock was wrong.")
    ] = datetime(2009, 1, 1),
    latest: Annotated[
        datetime | None, typer.Option(help="Leave out events after this time; by default a day from now.")
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Read with DuckDB in this process (local) or with Spark. auto: with Spark if --master or "
            "--conf is given, a path needs Hadoop, or there is more than 20 GiB."
        ),
    ] = Engine.AUTO,
    serve: Serve = None,
    serve_every: ServeEvery = "5s",
    serve_token: ServeToken = None,
    serve_username: ServeUsername = None,
    serve_password: ServePassword = None,
    serve_certificate: ServeCertificate = None,
    serve_key: ServeKey = None,
    serve_client_authorities: ServeClientAuthorities = None,
    master: Annotated[
        str | None, typer.Option(help="Read with Spark, on this master, as for spark-submit.")
    ] = None,
    conf: Conf = None,
) -> None:
    """Report uptime, checkpoints against an SLA and failures from stored events.

    Exits 2 for a wrong configuration, or if there is nothing to read.
    """
    from spark_events.history.options import ReportOptions

    if not paths and store is None:
        raise ConfigError("report needs the PATHs of stored events, or --store with a folder that has some")
    if retain is not None and store is None:
        raise ConfigError("--retain drops days of a store: give its folder with --store")
    options = ReportOptions(
        paths=tuple(paths or ()),
        sla=parse_sla(sla or ()),
        span_ms=None if since is None else DURATION.read("--since", since),
        html=html,
        json=json,
        parquet=parquet,
        store=store,
        retain_ms=None if retain is None else DURATION.read("--retain", retain),
        until_now=now,
        times=_times(earliest, latest),
        engine=engine,
        conf={**read_conf(None, conf or ())[0], **({"spark.master": master} if master else {})},
    )
    access = PageAccess(
        serve_token, serve_username, serve_password, serve_certificate, serve_key, serve_client_authorities
    )
    if serve is None:
        access.demand_none()
        run_report(options, told_of_spark=bool(master or conf))
    else:
        serve_report(options, serve, DURATION.read("--serve-every", serve_every), access)


def run_report(options: ReportOptions, told_of_spark: bool = False) -> None:
    """Make a report, print it, and write its files.

    Args:
        options: of the report.
        told_of_spark: whether a master or Spark's configuration was given for it.

    Raises:
        ConfigError: an option cannot be used, or there is nothing to read.
    """
    from spark_events.cli.report_tables import print_report
    from spark_events.history.reading.engine import choose
    from spark_events.history.run import check_outputs, make_report, open_database, write_files

    check_outputs(options)
    chosen, reason = choose(options, told_of_spark)
    if reason:
        say(plain(text_without_url_secrets(reason)))
    try:
        with ExitStack() as opened:
            with err.status("starting Spark" if chosen is Engine.SPARK else "starting"):
                database = opened.enter_context(open_database(options, chosen))
            if chosen is Engine.SPARK:
                _leave_at_ctrl_c()
            with reading_bar(database.progress):
                figures = make_report(database, options)
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    print_report(figures, out)
    for path in write_files(figures, options):
        say(f"written to {plain(str(path))}")
    if options.parquet:
        say(f"tables written to {plain(path_without_secrets(options.parquet))}")


def _leave_at_ctrl_c() -> None:
    """End at once at Ctrl-C, in place of PySpark's handler: the JVM is gone by then, each call would fail.

    That leaves nothing half done: files are written at the end, and a store takes whole days.
    """

    def leave(number: int, frame: object) -> None:
        err.show_cursor()
        err.print("interrupted")
        os._exit(INTERRUPTED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, leave)


def _times(earliest: datetime, latest: datetime | None) -> PossibleTimes:
    limits = [limit.replace(tzinfo=timezone.utc) for limit in (earliest, latest) if limit]
    times = PossibleTimes(*(int(limit.timestamp() * 1_000) for limit in limits))
    if times.latest_ms <= times.earliest_ms:
        raise ConfigError(f"--latest {latest}: must be after --earliest {earliest}")
    return times
