"""The command ``run``."""

from __future__ import annotations

import sys

import typer

from spark_events.cli.terminal.console import out
from spark_events.submit.spark_submit import HELP, asks_for_help, submit


def run(context: typer.Context) -> None:
    """Submit an application with reporters attached: run [spark-submit options] app.py [arguments]."""
    if asks_for_help(context.args):
        out.print(f"{HELP}spark-submit says:\n", markup=False, soft_wrap=True)
        sys.stdout.flush()
    submit(context.args)
