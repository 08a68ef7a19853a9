"""The checkpoints of a streaming query as metrics, with Flink's names."""

from __future__ import annotations

from collections.abc import Callable

from spark_events.api import Counter, Gauge, Histogram, MetricGroup
from spark_events.api.event import now_ms

_DURATION_BOUNDS_MS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 900_000)
_GAUGES = {
    "totalNumberOfCheckpoints": ("{checkpoint}", "Checkpoints that completed, failed, or are in progress."),
    "numberOfInProgressCheckpoints": ("{checkpoint}", "Micro-batches in progress."),
    "lastCompletedCheckpointId": ("", "The batch id of the last completed checkpoint."),
    "lastCheckpointCompletedTimestamp": ("ms", "When the last checkpoint completed."),
    "lastCheckpointRestoreTimestamp": ("ms", "When the query last resumed from a checkpoint."),
    "lastCheckpointAge": ("ms", "How long ago the last checkpoint completed."),
    "lastCheckpointDuration": ("ms", "How long the last completed checkpoint took."),
    "lastCheckpointFullSize": ("By", "Size of all state at the last completed checkpoint."),
    "lastCheckpointSize": ("By", "Size of the state written for the last completed checkpoint."),
}


class CheckpointMetrics:
    """The series of one query's checkpoints, over all its runs.

    Attributes:
        in_progress: how many batches are running: 0 or 1.
        last_completed_ms: when the last one completed; None before the first.
        restored_ms: when the query last resumed from a checkpoint; None if never.
    """

    def __init__(self, series: MetricGroup) -> None:
        self.in_progress = 0
        self.restored_ms: int | None = None
        self._last_id: int | None = None
        self.last_completed_ms: int | None = None
        self._last_duration_ms: int | None = None
        self._last_full: int | None = None
        self._last_written: int | None = None
        described = "Checkpoints that completed."
        self._completed = series.register("numberOfCompletedCheckpoints", Counter("{checkpoint}", described))
        described = "Micro-batches that failed before they committed."
        self._failed = series.register("numberOfFailedCheckpoints", Counter("{checkpoint}", described))
        described = "How long completed checkpoints took, trigger to commit."
        self._durations = series.register(
            "checkpointDuration", Histogram(_DURATION_BOUNDS_MS, "ms", described)
        )
        for name, read in self._reads().items():
            series.register(name, Gauge(read, *_GAUGES[name]))

    def take_completed(self, batch: int, end_ms: int, duration_ms: int, full: int, written: int) -> None:
        """Count a completed checkpoint; times in ms, sizes in bytes, negative if unknown."""
        self.in_progress = 0
        self._completed.inc()
        self._durations.update(duration_ms)
        self._last_id, self.last_completed_ms, self._last_duration_ms = batch, end_ms, duration_ms
        self._last_full, self._last_written = (size if size >= 0 else None for size in (full, written))

    def take_failed(self) -> None:
        """Count a batch that failed before its commit."""
        self.in_progress = 0
        self._failed.inc()

    def _reads(self) -> dict[str, Callable[[], int | None]]:
        return {
            "totalNumberOfCheckpoints": lambda: self._completed.count + self._failed.count + self.in_progress,
            "numberOfInProgressCheckpoints": lambda: self.in_progress,
            "lastCompletedCheckpointId": lambda: self._last_id,
            "lastCheckpointCompletedTimestamp": lambda: self.last_completed_ms,
            "lastCheckpointRestoreTimestamp": lambda: self.restored_ms,
            "lastCheckpointAge": self._age_ms,
            "lastCheckpointDuration": lambda: self._last_duration_ms,
            "lastCheckpointFullSize": lambda: self._last_full,
            "lastCheckpointSize": lambda: self._last_written,
        }

    def _age_ms(self) -> int | None:
        return None if self.last_completed_ms is None else max(0, now_ms() - self.last_completed_ms)
