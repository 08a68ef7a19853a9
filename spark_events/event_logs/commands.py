"""The command lines of ``replay`` and ``follow``; what they need is imported when they run."""

from __future__ import annotations

import enum
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from spark_events.api import ConfigError
from spark_events.command_options import Conf, PropertiesFile
from spark_events.spark_conf import read_conf

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


class Format(enum.Enum):
    """In which files the events of a fleet are written."""

    PARQUET = "parquet"
    JSON = "json"


class Mode(enum.Enum):
    """What to do where there are files already: Spark's save modes."""

    ERROR = "error"
    OVERWRITE = "overwrite"
    APPEND = "append"


Paths = Annotated[
    list[str], typer.Argument(help="An event log, a folder of them, or a glob; local or any fsspec URL.")
]


def replay(
    paths: Paths,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark", help="Run as a PySpark job, one task a log, and write the events as files."
        ),
    ] = False,
    output: Annotated[
        str | None, typer.Option(help="With --on-spark: the folder or URL where the events go.")
    ] = None,
    file_format: Annotated[
        Format, typer.Option("--format", help="With --on-spark: the format of the files.")
    ] = Format.PARQUET,
    mode: Annotated[
        Mode, typer.Option(help="With --on-spark: what to do where the output is there already.")
    ] = Mode.ERROR,
    master: Annotated[
        str | None, typer.Option(help="With --on-spark: the cluster, as for spark-submit.")
    ] = None,
) -> None:
    """Report the events and spans of applications that have run, from their event logs.

    They are those that were, or would have been, reported live, under the same ids: a replay may be repeated.
    Exits 1 if something was lost or could not be read, 2 on a wrong configuration.
    """
    found, _ = read_conf(properties_file, conf or ())
    _log_to(_err)
    if on_spark != (output is not None):
        raise ConfigError("--on-spark and --output go together: events of a fleet are written, not sent")
    if output is not None:
        from spark_events.event_logs.on_spark import Target, run_on_spark

        spark_conf = {**found, "spark.master": master} if master else found
        target = Target(output, file_format.value, mode.value)
        raise typer.Exit(run_on_spark(paths, found, spark_conf, target, _out))
    from spark_events.event_logs.replay import run_replay

    raise typer.Exit(run_replay(paths, found, _out, _err))


def follow(
    folder: Annotated[str, typer.Argument(help="A folder of event logs; local or any fsspec URL.")],
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Where to keep how far each log is read; by default below ~/.local/state."),
    ] = None,
    complete_too: Annotated[
        bool,
        typer.Option(
            "--complete-too", help="At the first start, also report logs that are complete by then."
        ),
    ] = False,
) -> None:
    """Report all applications whose event logs are in a folder, live, until it is stopped.

    A restart goes on where it left off. An application whose log has no end, and is not written for
    spark.events.eventlog.dead.after, is reported FAILED.
    """
    from spark_events.event_logs.follow import run_follow

    found, _ = read_conf(properties_file, conf or ())
    _log_to(_err, logging.INFO)
    raise typer.Exit(run_follow(folder, found, state, complete_too, _err))


def _log_to(console: Console, level: int = logging.WARNING) -> None:
    """Let what the framework and its reporters say go to a console; plain lines where it is no terminal."""
    logger = logging.getLogger("spark_events")
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    if console.is_terminal:
        handler = RichHandler(console=console, show_path=False, markup=False)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
