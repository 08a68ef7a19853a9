"""The command line of ``report``; its dependencies are imported when it runs."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api.toolkit.formatting import path_without_secrets, some_names, text_without_url_secrets
from spark_events.cli.reports.options import (
    Earliest,
    EventPaths,
    Latest,
    Now,
    Retain,
    SelectionAsked,
    Since,
    Store,
    report_options,
)
from spark_events.cli.terminal.console import FAILED, INTERRUPTED, err, out, plain, print_error, say
from spark_events.cli.terminal.options import App, Conf, From, Html, Json, Query, SlaOption, Until
from spark_events.cli.terminal.outputs import STDOUT, check_files, write_file
from spark_events.cli.terminal.reading_bar import reading_bar
from spark_events.history.options import Engine
from spark_events.history.verdict import broken_rules, check_comparable, read_rules
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.history.options import ReportOptions
    from spark_events.history.report import Report

FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="Exit 1 if this rule is broken. `down`: at the end of the report, something is down, silent or "
        "lost, or its last run failed. `failures`: something failed. `sla`: a commit was late. `overdue`: at "
        "the end, a query that runs, or is down after a commit, has not committed in time. `issues`: "
        "something was slow. `slower`: a run took much longer than usual. Repeatable, or with commas.",
    ),
]


def report(
    paths: EventPaths = None,
    sla: SlaOption = None,
    app: App = None,
    query: Query = None,
    since: Since = None,
    begin: From = None,
    until: Until = None,
    now: Now = False,
    fail_on: FailOn = None,
    html: Html = None,
    json: Json = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write the tables as Parquet into this folder.")
    ] = None,
    store: Store = None,
    retain: Retain = None,
    earliest: Earliest = None,
    latest: Latest = None,
    engine: Annotated[
        Engine,
        typer.Option(
            metavar="ENGINE",
            help="Read with DuckDB in this process (local), with Spark (spark), or (auto) with Spark if "
            "--master or --conf is given, a path needs Hadoop, or there is more than 20 GiB.",
        ),
    ] = Engine.AUTO,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Read with Spark, on this master, as for spark-submit.")
    ] = None,
    conf: Conf = None,
) -> None:
    """Report uptime, commits against an SLA and failures from stored events.

    spark-events serve shows the same report in a browser, always up to date. Exits 1 if a rule of --fail-on
    is broken, 4 if there is nothing to read.
    """
    check_files({"--html": html, "--json": json})
    rules = read_rules(fail_on or ())
    asked = SelectionAsked(app, query, since, begin, until, now)
    options = replace(
        report_options(paths, sla, asked, store, retain, earliest, latest),
        html=html,
        json=json,
        parquet=parquet,
        engine=engine,
        conf={**read_conf(None, conf or ())[0], **({"spark.master": master} if master else {})},
    )
    figures = run_report(options, told_of_spark=bool(master or conf))
    check_comparable(figures, rules, app or "")
    broken = broken_rules(figures, rules)
    for rule, names in broken.items():
        print_error(f"--fail-on {rule}: {some_names(names)}")
    if broken:
        raise typer.Exit(FAILED)


def run_report(options: ReportOptions, told_of_spark: bool = False) -> Report:
    """Make a report, print it, write its files, and return it.

    Args:
        options: of the report.
        told_of_spark: whether a master or Spark's configuration was given for it.

    Raises:
        ConfigError: an option cannot be used, or there is nothing to read.
    """
    from spark_events.cli.reports.tables import print_report
    from spark_events.history.reading.engine import choose
    from spark_events.history.run import check_outputs, files_of, make_report, open_database

    check_outputs(options)
    chosen, reason = choose(options, told_of_spark)
    if reason:
        say(plain(text_without_url_secrets(reason)), err)
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
    if STDOUT not in (options.html, options.json):
        print_report(figures, out)
    for path, contents in files_of(figures, options).items():
        write_file(path, contents)
    if options.parquet:
        say(f"tables written to {plain(path_without_secrets(options.parquet))}", err)
    return figures


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
