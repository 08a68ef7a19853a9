"""Runs the daemon that follows event logs, until a signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from rich.console import Console

from spark_events.sources.event_log.cursor import Cursors, default_path
from spark_events.sources.event_log.follow import Follower
from spark_events.texts import plain

_INTERRUPTED = 130


def run_follow(
    folder: str, conf: Mapping[str, str], state: Path | None, complete_too: bool, err: Console
) -> int:
    """Follow the logs of a folder until SIGTERM or SIGINT.

    Args:
        folder: of event logs.
        conf: Spark's configuration.
        state: where the cursors are kept; None takes the default place.
        complete_too: whether, at the first start, complete logs are reported, too.
        err: gets what is to be said.

    Returns:
        The exit code: 0 after SIGTERM, 130 after SIGINT.

    Raises:
        ConfigError: the configuration is wrong, or there is no such folder.
    """
    cursors = Cursors(state or default_path(folder))
    follower = Follower(folder, conf, cursors, complete_too)
    for warning in follower.warnings:
        err.print(f"[bold yellow]warning[/] {plain(warning)}", soft_wrap=True)
    code = 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal code
        code = _INTERRUPTED if number == signal.SIGINT else 0
        follower.stop()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    err.print(f"follows {plain(folder)}; cursors in {plain(str(cursors.path))}", soft_wrap=True)
    try:
        follower.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code
