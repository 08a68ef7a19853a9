"""The checkpoints of a streaming query: each micro-batch that committed, or failed before it could."""

from __future__ import annotations

from typing import Any

from spark_events.api import Event, Failure, MetricGroup, Severity
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.queries.checkpoint_metrics import CheckpointMetrics
from spark_events.listeners.queries.micro_batch import input_rows
from spark_events.listeners.queries.query_run import QueryRun

CLASS_SCOPE = "spark_events.listeners.CheckpointStats"
_UNKNOWN = -1


class CheckpointStats:
    """Reports one query's checkpoints as events, spans and metrics; lives across the query's runs."""

    def __init__(self, emitter: Emitter, series: MetricGroup) -> None:
        self._emitter = emitter
        self.metrics = CheckpointMetrics(series)
        # The sizes of a failed batch are only known if the query has no state.
        self._sizes_of_failed = (_UNKNOWN, _UNKNOWN)

    def completed(
        self,
        run: QueryRun,
        progress: dict[str, Any],
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
            .set_body(f"{run.entity.title} completed checkpoint {batch} in {duration_ms} ms")
            .set_attribute("durationMs", duration_ms)
            .set_attribute("walCommitMs", _ms(durations, "walCommit"))
            .set_attribute("commitOffsetsMs", _ms(durations, "commitOffsets", "commitBatch"))
            .set_attribute("stateCommitMs", _state_commit_ms(progress))
            .set_attribute("sinceLastMs", self._since_last(end_ms))
            .set_attribute("owedMs", owed_ms)
            .set_attribute("numInputRows", input_rows(progress))
            .set_attribute("checkpointLocation", run.location)
        )
        self._emitter.emit(event, run.entity, run.group, end_ms, ("checkpoint", str(batch)), "COMPLETED")
        run.spans.completed(batch, progress, end_ms, sizes)
        self.metrics.take_completed(batch, end_ms, duration_ms, *sizes)

    def failed(self, run: QueryRun, batch: int, start_ms: int, end_ms: int, failure: Failure) -> None:
        """Report a batch that was started and did not commit."""
        event = (
            _event(batch, "FAILED", *self._sizes_of_failed)
            .set_severity(Severity.ERROR)
            .set_body(f"{run.entity.title} failed before checkpoint {batch} completed")
            .set_attribute("durationMs", max(0, end_ms - start_ms))
            .set_attribute("sinceLastMs", self._since_last(end_ms))
            .set_attribute("checkpointLocation", run.location)
        )
        self._emitter.emit(event, run.entity, run.group, end_ms, ("checkpoint", str(batch)), "FAILED")
        run.spans.ended_early(batch, start_ms, end_ms, failure)
        self.metrics.take_failed()

    def _since_last(self, end_ms: int) -> int | None:
        last_ms = self.metrics.last_completed_ms
        return None if last_ms is None else max(0, end_ms - last_ms)


def is_checkpoint(progress: dict[str, Any]) -> bool:
    """Return whether progress is of a batch; before 3.4, Spark also reports triggers without new data."""
    return "addBatch" in (progress.get("durationMs") or {})


def _event(batch: int, status: str, full: int, written: int) -> Any:
    return (
        Event.builder(CLASS_SCOPE, "CheckpointEvent")
        .set_routine(status == "COMPLETED")
        .set_attribute("checkpointId", batch)
        .set_attribute("fullSize", full)
        .set_attribute("checkpointedSize", written)
        .set_attribute("metadataSize", _UNKNOWN)
        .set_attribute("checkpointStatus", status)
        .set_attribute("isUnaligned", "false")
        .set_attribute("checkpointType", "Checkpoint")
    )


def state_sizes(progress: dict[str, Any]) -> tuple[int, int]:
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


def _state_commit_ms(progress: dict[str, Any]) -> int | None:
    """Return the commit time summed over all tasks; None without state, or if Spark does not say."""
    times = [operator.get("commitTimeMs") for operator in progress.get("stateOperators") or ()]
    known = [int(time) for time in times if time is not None]
    return sum(known) if known else None


def _ms(durations: dict[str, Any], *names: str) -> int | None:
    return next((int(durations[name]) for name in names if name in durations), None)
