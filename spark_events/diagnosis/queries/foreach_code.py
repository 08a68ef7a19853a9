"""The rule about code in ``foreachBatch`` that takes long in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import FOREACH_BATCH

_LEAST_SHARE = 0.25
_OF_DRIVER, _OF_SOURCE = ("walCommit", "queryPlanning", "commitOffsets"), ("latestOffset", "getBatch")
_OF_SPARK = 2
"""The phases of a micro-batch in which only the driver works: each SQL execution within it needs up to so
many times as long, to be planned and committed, whatever keeps the machine busy. A source that is slow to
answer does not make these slow: of its phases, as much counts as of the others."""
_LARGE_RESULT_BYTES = 1 << 20
_WORK_IN_SPARK = (
    "Only the driver works in that time: do in Spark, before the sink, what can be done per row (foreach, "
    "mapInPandas, or foreachPartition of the batch), and collect nothing large. If it writes rows to another "
    "system one by one, write many at once, and commit once for each micro-batch."
)
_COLLECT_NOTHING = (
    "Only the driver works in that time. Instead of bringing rows there (collect(), toPandas()), compute in "
    "Spark: with window functions or applyInPandas what depends on several rows of a key, with built-in "
    "functions or mapInPandas what depends on one."
)


class CodeInBatches:
    """Adds up the time that code in ``foreachBatch`` takes in the driver, besides what it runs in Spark.

    Spark measures no such time. What is left of a micro-batch without its jobs and SQL executions is the
    code's, and Spark's own: it plans these executions before they begin. How long that takes is known from
    what the driver does for the micro-batch as a whole. The first one also loads classes, and counts as much
    as a later one at most.
    """

    def __init__(self) -> None:
        self._first_ms: int | None = None
        self._first_of_spark_ms = 0
        self._most_ms: int | None = None
        self._later_ms = self._later_of_spark_ms = 0
        self._batches_ms = 0
        self._most_collected = 0

    def take(self, progress: Mapping[str, Any], own_ms: int, executions: int, collected: int) -> Issue | None:
        """Return what the code has cost so far; None if that is little, or not known.

        Args:
            progress: of a micro-batch of ``foreachBatch``.
            own_ms: how long that took besides its jobs and SQL executions.
            executions: how many these were, that of the micro-batch among them.
            collected: the size of the rows that stages have sent to the driver, in bytes.
        """
        took = progress.get("durationMs") or {}
        self._batches_ms += int(took.get("addBatch") or 0)
        self._most_collected = max(self._most_collected, collected)
        of_driver_ms, of_source_ms = (
            sum(int(took.get(phase) or 0) for phase in phases) for phases in (_OF_DRIVER, _OF_SOURCE)
        )
        of_spark_ms = _OF_SPARK * executions * (of_driver_ms + min(of_source_ms, of_driver_ms))
        if self._first_ms is None:
            self._first_ms, self._first_of_spark_ms = own_ms, of_spark_ms
            return None
        self._most_ms = max(self._most_ms or 0, own_ms)
        self._later_ms += own_ms
        self._later_of_spark_ms += of_spark_ms
        if self._later_ms <= self._later_of_spark_ms:
            return None
        return self._issue(min(self._first_ms, self._most_ms) + self._later_ms)

    def close(self) -> Issue | None:
        """Return what the code has cost if there was only one micro-batch."""
        if self._first_ms is None or self._most_ms is not None or self._first_ms <= self._first_of_spark_ms:
            return None
        return self._issue(self._first_ms)

    def _issue(self, code_ms: int) -> Issue | None:
        share = code_ms / max(1, self._batches_ms)
        if share < _LEAST_SHARE:
            return None
        collected, collects = self._most_collected, self._most_collected >= _LARGE_RESULT_BYTES
        brings = f", which bring up to {size(collected)} of rows to the driver each time" if collects else ""
        return Issue(
            FOREACH_BATCH,
            FOREACH_BATCH,
            code_ms,
            None,
            f"code in foreachBatch takes {duration(code_ms)} in the driver, besides the jobs that it runs"
            f"{brings}: {min(1.0, share):.0%} of its micro-batches' time",
            _COLLECT_NOTHING if collects else _WORK_IN_SPARK,
            evidence={
                "foreachBatch.codeMs": code_ms,
                "foreachBatch.batchesMs": self._batches_ms,
                **({"foreachBatch.collectedBytes": collected} if collects else {}),
            },
        )
