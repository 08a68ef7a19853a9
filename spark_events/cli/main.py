"""The command line ``spark-events``."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Annotated

import typer

from spark_events import __version__
from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.cli import check, demo, doctor, init, installed, mcp, pack, run, show, status
from spark_events.cli.ctas import app as ctas
from spark_events.cli.event_logs import follow, replay
from spark_events.cli.lineage.command import lineage
from spark_events.cli.reports import report, serve
from spark_events.cli.sql.main import app as sql
from spark_events.cli.terminal.commands import Group
from spark_events.cli.terminal.console import (
    CONFIGURATION,
    FAILED,
    NOTHING_TO_READ,
    USAGE,
    open_what_is_closed,
    print_error,
    print_whatever_the_encoding,
    say,
)
from spark_events.cli.terminal.registering import command
from spark_events.cli.why.command import why

TAGLINE = "Know what your PySpark jobs and streaming queries are doing, without opening the Spark UI."
LIVE, PAST, SET_UP, DATA = "Report live", "See what happened", "Set up", "Tables and queries"

app = typer.Typer(
    cls=Group,
    help=TAGLINE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"spark-events {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set in spark_events.__main__
        signal.signal(signal.SIGINT, signal.default_int_handler)


command(
    app,
    panel=LIVE,
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
    add_help_option=False,
)(run.run)
command(
    app,
    "spark-events follow hdfs:///spark-history",
    "spark-events follow /var/log/spark/eventlogs --state /var/lib/spark-events/positions",
    panel=LIVE,
)(follow.follow)
command(
    app,
    "spark-events show /var/log/spark-reports",
    "spark-events show /var/log/spark-reports --follow --query orders",
    "spark-events show /var/log/spark-reports --name JobFailureEvent --json",
    panel=PAST,
)(show.show)
command(
    app,
    "spark-events status /var/log/spark-reports",
    "spark-events status http://driver:9249 --query orders",
    panel=PAST,
)(status.status)
command(
    app,
    "spark-events report /var/log/spark-reports --sla 60s --since 7d",
    "spark-events report /var/log/spark-reports --now --fail-on down,sla --json - > report.json",
    "spark-events report /var/log/spark-reports --now --html report.html",
    panel=PAST,
)(report.report)
command(
    app,
    "spark-events serve /var/log/spark-reports --now --sla 60s",
    "TOKEN=… spark-events serve /var/log/spark-reports --listen 0.0.0.0:8080 --token env:TOKEN",
    panel=PAST,
)(serve.serve)
command(
    app,
    "spark-events why /var/log/spark/eventlogs/app-20260101120000-0001",
    "spark-events why today.log --against yesterday.log --html why.html",
    panel=PAST,
)(why)
command(
    app,
    "spark-events replay /var/log/spark/eventlogs",
    "spark-events replay s3a://logs/spark --on-spark --output s3a://logs/events",
    panel=PAST,
)(replay.replay)
command(
    app,
    "spark-events lineage /var/log/spark-lineage",
    "spark-events lineage /var/log/spark-lineage --of shop.orders --columns",
    "spark-events lineage /var/log/spark-lineage --impact shop.orders.amount --html impact.html",
    "spark-events lineage plan tables.sql queries --impact orders.amount --fail-on impact",
    panel=PAST,
)(lineage)
command(app, "spark-events mcp --events /var/log/spark-reports --sla 60s", panel=PAST)(mcp.mcp)
command(app, "spark-events demo", "spark-events demo --output demo", panel=SET_UP)(demo.demo)
command(
    app,
    "spark-events init",
    "spark-events init --to files,prometheus --folder /var/log/spark-reports --sla 60s",
    panel=SET_UP,
)(init.init)
command(
    app,
    "spark-events check --connect",
    "spark-events check --conf spark.events.checkpoint.sla=60s",
    panel=SET_UP,
)(check.check)
command(app, "spark-events doctor", "spark-events doctor --json", panel=SET_UP)(doctor.doctor)
command(
    app,
    "spark-events pack",
    "spark-events pack /tmp/environment.tar.gz --node-python /usr/bin/python3.11",
    panel=SET_UP,
)(pack.pack)
command(app, "spark-events plugins", "spark-events plugins --json", panel=SET_UP)(installed.plugins)
command(
    app,
    "spark-events paths",
    "cp $(spark-events paths conf)/spark-defaults.conf $SPARK_HOME/conf/",
    panel=SET_UP,
)(installed.paths)
app.add_typer(ctas, name="ctas", rich_help_panel=DATA)
app.add_typer(sql, name="sql", rich_help_panel=DATA)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """Run the command line; an error of the user's is one message and an exit code of its kind."""
    open_what_is_closed()
    print_whatever_the_encoding()
    try:
        app()
    except OSError as error:
        if error.filename is not None:
            is_denied = isinstance(error, PermissionError)
            access = "; give the user who runs this command access to it" if is_denied else ""
            print_error(f"{os.fsdecode(error.filename)}: {error.strerror}{access}")
            sys.exit(CONFIGURATION if is_denied else FAILED)
        if _is_nowhere():
            print_error("the working folder is gone: it was removed; change to another one")
            sys.exit(FAILED)
        if error.errno not in _DISK_FULL:  # else it is the output
            raise
        print_error(f"the output cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try it once more
        sys.exit(FAILED)
    except ConfigError as error:
        for problem in error.problems:
            print_error(problem)
        sys.exit(_exit_code(error))


def _is_nowhere() -> bool:
    """Return whether the folder in which the command runs was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _exit_code(error: ConfigError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    return NOTHING_TO_READ if isinstance(error, NothingToReadError) else CONFIGURATION


if __name__ == "__main__":
    main()
