"""The command line ``spark-events``."""

from __future__ import annotations

import errno
import os
import sys

import typer

from spark_events.api import ConfigError
from spark_events.cli import check, demo, follow, installed, lineage, mcp, replay, report, run, why
from spark_events.cli.console import FAILED, WRONG, print_error, print_whatever_the_encoding
from spark_events.cli.ctas import app as ctas
from spark_events.cli.sql.main import app as sql

app = typer.Typer(
    help="Report the state of Spark applications and streaming queries as events, metrics and traces.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
    add_help_option=False,
)(run.run)
app.command()(check.check)
app.command()(installed.plugins)
app.command()(demo.demo)
app.command()(installed.paths)
app.command()(replay.replay)
app.command()(follow.follow)
app.command()(report.report)
app.command()(why.why)
app.command()(lineage.lineage)
app.command()(mcp.mcp)
app.add_typer(ctas, name="ctas")
app.add_typer(sql, name="sql")


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """Run the command line; a configuration error is one message and exit code 2."""
    print_whatever_the_encoding()
    try:
        app()
    except OSError as error:
        if error.errno not in _DISK_FULL or error.filename is not None:  # else it is the output
            raise
        print_error(f"the output cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try it once more
        sys.exit(FAILED)
    except ConfigError as error:
        for problem in error.problems:
            print_error(problem)
        sys.exit(WRONG)


if __name__ == "__main__":
    main()
