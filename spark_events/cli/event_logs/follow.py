"""The command ``follow``; what it needs is imported when it runs."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.cli.terminal.console import INTERRUPTED, err, log_to_terminal, plain, print_warnings, say
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.sources.event_log.follow import Follower


def follow(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="A folder of Spark event logs: a local path or any fsspec URL."
        ),
    ],
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that stores how far each log was read; by default below ~/.local/state.",
        ),
    ] = None,
    complete_too: Annotated[
        bool,
        typer.Option(
            "--complete-too", help="On the first start, also report logs that are already complete."
        ),
    ] = False,
) -> None:
    """Report all applications that write Spark event logs into a folder, until you stop it.

    A restart continues where it stopped. An application whose log has no end and does not grow for
    spark.events.event-log.idle-timeout is reported as FAILED.
    """
    from spark_events.sources.event_log.follow import Follower
    from spark_events.sources.event_log.reading.log_positions import LogPositions, default_path

    given, _ = read_conf(properties_file, conf or ())
    log_to_terminal(logging.INFO)
    positions = LogPositions(state or default_path(folder))
    follower = Follower(folder, given, positions, complete_too)
    print_warnings(follower.warnings)
    begins = f"following {plain(path_without_secrets(folder))}; positions in {plain(str(positions.path))}"
    raise typer.Exit(_run_until_signal(follower, begins))


def _run_until_signal(follower: Follower, begins: str) -> int:
    """Return the exit code: 0 after SIGTERM, 130 after SIGINT.

    Args:
        begins: the line to show when a signal would end it well.
    """
    code = 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal code
        code = INTERRUPTED if number == signal.SIGINT else 0
        follower.stop()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        say(begins, err)
        follower.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code
