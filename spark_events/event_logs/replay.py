"""Runs a replay on this machine, with a progress bar, and prints what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from spark_events.event_logs.summary import Summary, print_delivered
from spark_events.sources.event_log.files import LogFiles
from spark_events.sources.event_log.replay import Replay, StalledError
from spark_events.texts import plain, plain_lines

LOST = 1
INTERRUPTED = 130


def run_replay(paths: Sequence[str], conf: Mapping[str, str], out: Console, err: Console) -> int:
    """Replay logs to the reporters that a configuration names.

    Args:
        paths: logs, folders or globs.
        conf: Spark's configuration.
        out: gets the summary.
        err: gets the progress, and what is wrong.

    Returns:
        The exit code: 0, LOST where something was lost or could not be read, or INTERRUPTED.

    Raises:
        ConfigError: the configuration is wrong, or there is nothing at a path.
    """
    replaying = Replay(conf)
    for warning in replaying.warnings:
        err.print(f"[bold yellow]warning[/] {plain(warning)}", soft_wrap=True)
    places = [(files, files.find()) for files in map(LogFiles, paths)]
    total = sum(log.size for _, logs in places for log in logs)
    summary, began, code, stopped = Summary(), time.monotonic(), 0, ""
    again = "run it again: ids are the same, so that nothing is doubled"
    try:
        with _progress(err) as progress:
            task = progress.add_task("", total=total)
            for files, logs in places:
                for step in replaying.run(files, logs):
                    if isinstance(step, int):
                        progress.advance(task, step)
                    else:
                        summary.add(step)
    except StalledError as error:
        code, stopped = LOST, f"{error}; {again}"
    except KeyboardInterrupt:
        code, stopped = INTERRUPTED, f"interrupted; {again}"
    if stopped and replaying.last is not None:
        summary.add(replaying.last)
    summary.print(out)
    complete = print_delivered(replaying.delivered, out)
    out.print(f"[dim]{total / 1e6:,.1f} MB in {time.monotonic() - began:.1f} s[/]", soft_wrap=True)
    if not stopped and not summary.logs:
        stopped = f"there is no event log at {', '.join(paths)}"
    if stopped:
        err.print(f"[bold red]error[/] {plain_lines(stopped)}", soft_wrap=True)
    return code or (0 if complete and summary.logs and not summary.unreadable else LOST)


def _progress(err: Console) -> Progress:
    return Progress(
        TextColumn("replaying"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
