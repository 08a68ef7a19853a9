"""Streaming queries that write versions of a table, and whose end tells the last one."""

from __future__ import annotations

from collections.abc import Callable

from spark_events.api import DataWritten

_Made = tuple[DataWritten, ...]
_MOST_TOLD = 1_000
"""Of so many runs that have ended, what comes later is ignored."""


class VersionedQueries:
    """The last version of each such query's table, and the ends of runs that wait for it.

    Spark tells the end of a run while the version of its last micro-batch is still being looked up.

    Args:
        patience_ms: how long an end waits at most.
    """

    def __init__(self, patience_ms: int) -> None:
        self._patience_ms = patience_ms
        self._made: dict[str, _Made] = {}
        self._ends: dict[str, tuple[int, Callable[[_Made], None]]] = {}
        self._known: set[str] = set()
        self._over: dict[str, None] = {}
        self._is_closed = False

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._made

    def add(self, run_id: str) -> None:
        """Expect versions of a run."""
        if run_id not in self._over:
            self._made.setdefault(run_id, ())

    def set_version(self, run_id: str, made: _Made) -> None:
        """Take the version that a run has written last; it may be unknown, or come after the end was told."""
        if run_id not in self._over:
            self._made[run_id] = made

    def end(self, run_id: str, now_ms: int, tell: Callable[[_Made], None]) -> None:
        """Tell the end of a run, with its last version, once that is known."""
        if self._is_closed or run_id in self._known or run_id not in self._made:
            self._tell(run_id, tell)
        else:
            self._ends[run_id] = now_ms, tell

    def release(self, run_id: str) -> None:
        """Tell the end that waits, or that is still to come: its last version is known."""
        if run_id in self._ends:
            _, tell = self._ends.pop(run_id)
            self._tell(run_id, tell)
        elif run_id in self._made:
            self._known.add(run_id)

    def tick(self, now_ms: int) -> None:
        """Tell the ends that have waited too long."""
        for run_id, (since_ms, _) in list(self._ends.items()):
            if now_ms - since_ms > self._patience_ms:
                self.release(run_id)

    def close(self) -> None:
        """Tell all ends that wait; those to come will not."""
        self._is_closed = True
        for run_id in list(self._ends):
            self.release(run_id)

    def _tell(self, run_id: str, tell: Callable[[_Made], None]) -> None:
        self._known.discard(run_id)
        self._over[run_id] = None
        if len(self._over) > _MOST_TOLD:
            del self._over[next(iter(self._over))]
        tell(self._made.pop(run_id, ()))
