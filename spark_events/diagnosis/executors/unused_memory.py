"""The rule about executors whose heap is much larger than they ever need."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import MEMORY, Thresholds

_HEADROOM = 1.25
_LEAST_HEAP = 450 << 20
"""Spark starts no executor with less: half as much again as it keeps for itself (UnifiedMemoryManager)."""
_MOST_EXECUTORS = 10_000


class HeapPeaks:
    """The most of its heap that each executor used while it ran tasks.

    Attributes:
        heap: what each was given, in bytes; None if unknown.
    """

    def __init__(self) -> None:
        self.heap: int | None = None
        self._peaks: dict[str, int] = {}
        self._other_profiles: set[str] = set()

    def leave_out(self, executor: str) -> None:
        """Leave out an executor of another resource profile: it may have been given another heap."""
        if len(self._other_profiles) < _MOST_EXECUTORS:
            self._other_profiles.add(executor)

    def take(self, executor: str, used: int) -> None:
        """Take how much of its heap an executor has used, in bytes."""
        known = self._peaks.get(executor)
        if executor in self._other_profiles or (known is None and len(self._peaks) >= _MOST_EXECUTORS):
            return
        self._peaks[executor] = max(used, known or 0)

    def issue(self, thresholds: Thresholds) -> Issue | None:
        """Return that it is too large, if so."""
        return unused_memory(self._peaks, self.heap, thresholds) if self.heap is not None else None


def unused_memory(peaks: Mapping[str, int], heap: int, thresholds: Thresholds) -> Issue | None:
    """Return that no executor ever used more than a part of its heap, if so.

    Args:
        peaks: the most of its heap that each executor used while it ran tasks, in bytes.
        heap: what each was given, in bytes.
        thresholds: how small that part is at most.
    """
    if not peaks or not heap:
        return None
    highest = max(peaks.values())
    if highest >= thresholds.memory_unused * heap:
        return None
    enough = max(_LEAST_HEAP, int(highest * _HEADROOM))
    if enough >= heap:
        return None
    than_needed = "a quarter more than they needed" if enough > _LEAST_HEAP else "the least that Spark takes"
    return Issue(
        MEMORY,
        MEMORY,
        None,
        (heap - enough) * len(peaks),
        f"no executor was seen to use more than {size(highest)} of its heap of {size(heap)}",
        f"Try spark.executor.memory={-(-enough >> 20)}m, {than_needed}, or more tasks at once in each "
        "executor (spark.executor.cores).",
        Severity.INFO,
        {"heapUsed.highest": highest, "memoryLimit.heap": heap, "executors": len(peaks)},
    )
