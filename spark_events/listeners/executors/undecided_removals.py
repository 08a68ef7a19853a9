"""Executors that the driver has removed, while it is not known yet whether it wanted that.

Where the heartbeats of an executor cease, Spark has it killed, and may say of it first that it was "killed by
driver", as of one that is idle; that its heartbeat timed out, it says some ms later (``HeartbeatReceiver``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_events.listeners.executors.executor import Executor
from spark_events.listeners.executors.executor_ends import HEARTBEAT_TIMEOUT, KILLED_BY_DRIVER
from spark_events.listeners.record_types import ExecutorTasksRecord

_UNDECIDED_MS = 1_000


class Removal(NamedTuple):
    """A removal as Spark has told it.

    Attributes:
        executor: which has gone.
        sentence: why, in Spark's words.
        reason: the same in one word.
        tasks: what it was running.
        time_ms: when, in ms since the epoch.
    """

    executor: Executor
    sentence: str
    reason: str
    tasks: ExecutorTasksRecord
    time_ms: int


class UndecidedRemovals:
    """Keeps them for a second."""

    def __init__(self) -> None:
        self._kept: dict[str, Removal] = {}

    def keeps(self, removal: Removal) -> bool:
        """Keep a removal if more may be said of it, and return whether it is kept."""
        if removal.reason != KILLED_BY_DRIVER:
            return False
        self._kept[removal.executor.id] = removal
        return True

    def decided_by(self, executor_id: str, sentence: str, reason: str) -> Removal | None:
        """Return what is kept of an executor, with a second reason; None if that decides nothing."""
        if reason != HEARTBEAT_TIMEOUT or executor_id not in self._kept:
            return None
        return self._kept.pop(executor_id)._replace(sentence=sentence, reason=reason)

    def decided_until(self, now_ms: int | None) -> Iterator[Removal]:
        """Yield those of which nothing else has come in time; all of them without a time."""
        for removal in list(self._kept.values()):
            if now_ms is None or now_ms > removal.time_ms + _UNDECIDED_MS:
                yield self._kept.pop(removal.executor.id)
