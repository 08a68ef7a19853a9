"""A bar on the terminal while a database reads events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from spark_events.cli.terminal.console import err

_LOOK_EVERY_S = 0.2


@contextmanager
def reading_bar(progress: Callable[[], float | None]) -> Iterator[None]:
    """Show how far reading is, on a terminal; nothing elsewhere.

    Args:
        progress: returns how much of the running statement is done, in percent; None if that is not known.
    """
    if not err.is_terminal:
        yield
        return
    ended = threading.Event()
    columns = (SpinnerColumn(), TextColumn("reading events"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def look() -> None:
            while not ended.wait(_LOOK_EVERY_S):
                percent = progress()
                if percent is None:
                    bar.update(task, total=None)
                else:
                    bar.update(task, total=100, completed=percent)

        watcher = threading.Thread(target=look, name="spark-events-reading-bar", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
