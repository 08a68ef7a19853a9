"""The command lines of ``replay`` and ``follow``; what they need is imported when they run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from spark_events.spark_conf import read_conf

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)
Paths = Annotated[
    list[str], typer.Argument(help="An event log, a folder of them, or a glob; local or any fsspec URL.")
]
PropertiesFile = Annotated[
    Path | None, typer.Option(help="A spark-defaults.conf; by default the one that spark-submit reads.")
]
Conf = Annotated[list[str] | None, typer.Option(help="key=value, as for spark-submit; repeatable.")]


def replay(
    paths: Paths,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Report the events and spans of applications that have run, from their event logs.

    They are those that were, or would have been, reported live, under the same ids: a replay may be repeated.
    Exits 1 if something was lost or could not be read, 2 on a wrong configuration.
    """
    from spark_events.event_logs.replay import run_replay

    found, _ = read_conf(properties_file, conf or ())
    _log_to(_err)
    raise typer.Exit(run_replay(paths, found, _out, _err))


def _log_to(console: Console) -> None:
    """Let warnings of the framework and of reporters go to a console."""
    logger = logging.getLogger("spark_events")
    logger.addHandler(RichHandler(console=console, show_path=False, show_time=False, markup=False))
    logger.propagate = False
