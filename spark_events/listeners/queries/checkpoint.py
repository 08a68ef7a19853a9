"""The checkpoints of a streaming query, as events and metrics.

Each is a micro-batch that committed, or failed before it could.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_events.api import Counter, Event, Failure, Gauge, Histogram, MetricGroup, Severity
from spark_events.api.event import now_ms
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.record_types import StreamingQueryProgress
from spark_events.runtime import event_names

CLASS_SCOPE = "spark_events.listeners.CheckpointStats"
_UNKNOWN = -1
_DURATION_BOUNDS_MS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 900_000)
_GAUGES = {
    "totalNumberOfCheckpoints": ("{checkpoint}", "Micro-batches that committed, failed, or are in progress."),
    "numberOfInProgressCheckpoints": ("{checkpoint}", "Micro-batches in progress."),
    "lastCompletedCheckpointId": ("", "The id of the last micro-batch that committed."),
    "lastCheckpointCompletedTimestamp": ("ms", "When the last micro-batch committed."),
    "lastCheckpointRestoreTimestamp": ("ms", "When the query last resumed from a checkpoint."),
    "lastCheckpointAge": ("ms", "How long ago the last micro-batch committed."),
    "lastCheckpointDuration": ("ms", "How long the last committed micro-batch took."),
    "lastCheckpointFullSize": ("By", "Size of all state when the last micro-batch committed."),
    "lastCheckpointSize": ("By", "Size of the state written for the last committed micro-batch."),
}


class CheckpointStats:
    """Reports one query's checkpoints as events, spans and metrics; lives across the query's runs.

    Args:
        emitter: reports the events.
        series: of the query.
        sla_ms: the longest time between two checkpoints, in ms; None if none is set.
    """

    def __init__(self, emitter: Emitter, series: MetricGroup, sla_ms: int | None) -> None:
        self._emitter = emitter
        self._sla_ms = sla_ms
        self._metrics = CheckpointMetrics(series)
        # The sizes of a failed batch are only known if the query has no state.
        self._sizes_of_failed = (_UNKNOWN, _UNKNOWN)

    def began(self) -> None:
        """Count a batch that has begun."""
        self._metrics.in_progress = 1

    def rested(self) -> None:
        """Count that no batch runs."""
        self._metrics.in_progress = 0

    def restored(self, time_ms: int) -> None:
        """Show when the query resumed from a checkpoint, in ms since the epoch."""
        self._metrics.restored_ms = time_ms

    def completed(
        self,
        run: QueryRun,
        progress: StreamingQueryProgress,
        end_ms: int,
        sizes: tuple[int, int],
        owed_ms: int,
    ) -> None:
        """Report the batch of a progress record.

        Args:
            run: the run that it belongs to.
            progress: Spark's record.
            end_ms: when it was committed.
            sizes: see ``state_sizes``.
            owed_ms: see ``CheckpointWatch.completed``.
        """
        self._sizes_of_failed = (_UNKNOWN, _UNKNOWN) if progress.get("stateOperators") else (0, 0)
        durations, batch = progress["durationMs"], int(progress["batchId"])
        duration_ms = int(durations.get("triggerExecution", 0))
        event = (
            _event(batch, "COMPLETED", *sizes)
            .set_body(f"{run.entity.title}: micro-batch {batch} committed in {duration_ms} ms")
            .set_attribute("durationMs", duration_ms)
            .set_attribute("walCommitMs", _ms(durations, "walCommit"))
            .set_attribute("commitOffsetsMs", _ms(durations, "commitOffsets", "commitBatch"))
            .set_attribute("stateCommitMs", _state_commit_ms(progress))
            .set_attribute("sinceLastMs", self._since_last(end_ms))
            .set_attribute("owedMs", owed_ms)
            .set_attribute("slaMs", self._sla_ms)
            .set_attribute("inputRows", input_rows(progress))
            .set_attribute("checkpointLocation", run.location)
        )
        self._emitter.emit(event, run.entity, run.group, end_ms, ("checkpoint", str(batch)), "COMPLETED")
        run.report_checkpoint(batch, progress, end_ms, sizes)
        self._metrics.take_completed(batch, end_ms, duration_ms, *sizes)

    def failed(self, run: QueryRun, batch: int, start_ms: int, end_ms: int, failure: Failure) -> None:
        """Report a batch that was started and did not commit."""
        event = (
            _event(batch, "FAILED", *self._sizes_of_failed)
            .set_severity(Severity.ERROR)
            .set_body(f"{run.entity.title}: micro-batch {batch} failed before it committed")
            .set_attribute("durationMs", max(0, end_ms - start_ms))
            .set_attribute("sinceLastMs", self._since_last(end_ms))
            .set_attribute("slaMs", self._sla_ms)
            .set_attribute("checkpointLocation", run.location)
        )
        self._emitter.emit(event, run.entity, run.group, end_ms, ("checkpoint", str(batch)), "FAILED")
        run.end_batch_early(end_ms, failure)
        self._metrics.take_failed()

    def _since_last(self, end_ms: int) -> int | None:
        last_ms = self._metrics.last_completed_ms
        return None if last_ms is None else max(0, end_ms - last_ms)


def is_checkpoint(progress: StreamingQueryProgress) -> bool:
    """Return whether progress is of a batch; before 3.4, Spark also reports triggers without new data."""
    return "addBatch" in (progress.get("durationMs") or {})


def _event(batch: int, status: str, full: int, written: int) -> Any:
    return (
        Event.builder(CLASS_SCOPE, event_names.CHECKPOINT)
        .set_routine(status == "COMPLETED")
        .set_attribute("checkpointId", batch)
        .set_attribute("fullSize", full)
        .set_attribute("checkpointedSize", written)
        .set_attribute("metadataSize", _UNKNOWN)
        .set_attribute("checkpointStatus", status)
        .set_attribute("isUnaligned", "false")
        .set_attribute("checkpointType", "Checkpoint")
    )


def input_rows(progress: Mapping[str, Any]) -> int:
    """Return how many rows a micro-batch has read from all its sources, by its progress."""
    return sum(int(source.get("numInputRows") or 0) for source in progress.get("sources") or ())


def state_sizes(progress: StreamingQueryProgress) -> tuple[int, int]:
    """Return the size of all state, and of what this batch wrote, in bytes; -1 if Spark does not say."""
    full = written = 0
    for operator in progress.get("stateOperators") or ():
        custom = operator.get("customMetrics") or {}
        full += int(
            custom.get("rocksdbSstFileSize")
            or custom.get("stateOnCurrentVersionSizeBytes")
            or operator.get("memoryUsedBytes", 0)
        )
        copied = custom.get("rocksdbBytesCopied")
        written = _UNKNOWN if copied is None or written == _UNKNOWN else written + int(copied)
    return full, written


def _state_commit_ms(progress: StreamingQueryProgress) -> int | None:
    """Return the commit time summed over all tasks; None without state, or if Spark does not say."""
    times = [operator.get("commitTimeMs") for operator in progress.get("stateOperators") or ()]
    known = [int(time) for time in times if time is not None]
    return sum(known) if known else None


def _ms(durations: dict[str, Any], *names: str) -> int | None:
    return next((int(durations[name]) for name in names if name in durations), None)


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
        described = "Micro-batches that committed."
        self._completed = series.register("numberOfCompletedCheckpoints", Counter("{checkpoint}", described))
        described = "Micro-batches that failed before they committed."
        self._failed = series.register("numberOfFailedCheckpoints", Counter("{checkpoint}", described))
        described = "How long committed micro-batches took, trigger to commit."
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


class SlaMetrics:
    """How many checkpoints of a query completed in time, over all its runs.

    Attributes:
        sla_ms: the longest time between two checkpoints, in ms.
        clocks: each says for how long a checkpoint is owed at a time, both in ms; there are several while
            queries of one name run in several sessions.
    """

    def __init__(self, series: MetricGroup, sla_ms: int) -> None:
        self.sla_ms = sla_ms
        # Replaced, never changed: scrapes have threads of their own.
        self.clocks: tuple[Callable[[int], int], ...] = ()
        described = "How long a commit has been due; 0 while the query is idle, or was ended on purpose."
        series.register("checkpointOwed", Gauge(self._owed_ms, "ms", described))
        described = "The longest time between two commits (spark.events.checkpoint.sla)."
        series.register("checkpointSla", Gauge(lambda: sla_ms, "ms", described))
        described = "Micro-batches that committed within the SLA."
        self.met = series.register("checkpointSlaMet", Counter("{checkpoint}", described))
        described = "Times that no micro-batch committed within the SLA."
        self.missed = series.register("checkpointSlaMissed", Counter("{checkpoint}", described))

    def _owed_ms(self) -> int:
        now = now_ms()
        return max((owed_ms(now) for owed_ms in self.clocks), default=0)
