"""The rule about executors whose heap is much larger than they ever need."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import MEMORY, Thresholds

_HEADROOM = 1.25


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
    enough = int(highest * _HEADROOM)
    return Issue(
        MEMORY,
        MEMORY,
        None,
        (heap - enough) * len(peaks),
        f"no executor used more than {size(highest)} of its heap of {size(heap)}",
        f"Try spark.executor.memory={max(1, -(-enough >> 20))}m, a quarter more than they needed, or more "
        "tasks at once in each executor (spark.executor.cores).",
        Severity.INFO,
        {"heapHighest": highest, "heapLimit": heap, "executors": len(peaks)},
    )
