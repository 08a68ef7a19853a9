"""The spans of a streaming query: Checkpoint with its phases, JobInitialization, and the query's run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import Failure, MetricGroup, Span, SpanBuilder
from spark_events.listeners.emitter import Entity
from spark_events.listeners.settings import PHASES_AND_JOBS, WITH_OPERATORS, ListenerSettings
from spark_events.listeners.traces import CLASS_SCOPE, Place, Traces, ended_span

PHASES = (
    "latestOffset",
    "walCommit",
    "getBatch",
    "queryPlanning",
    "addBatch",
    "commitBatch",
    "commitOffsets",
)
"""The phases of a micro-batch, in the order in which Spark goes through them."""
_OF_OPERATOR = {
    "operatorCommitMs": "commitTimeMs",
    "operatorUpdatesMs": "allUpdatesTimeMs",
    "operatorRemovalsMs": "allRemovalsTimeMs",
    "operatorRows": "numRowsTotal",
    "operatorMemoryBytes": "memoryUsedBytes",
}


class QuerySpans:
    """Reports the spans of one run of a query."""

    def __init__(
        self, traces: Traces, settings: ListenerSettings, entity: Entity, group: MetricGroup
    ) -> None:
        self._traces = traces
        self._settings = settings
        self._entity = entity
        self._group = group
        self._place = traces.below(traces.application, "Query", entity)
        self._initialization = traces.below(self._place, "JobInitialization", entity)

    @property
    def place(self) -> Place:
        """The place of the run's own span."""
        return self._place

    def checkpoint_place(self, batch: int) -> Place:
        """Return the place of a checkpoint's span, the parent of the micro-batch's jobs."""
        return self._traces.own_trace("Checkpoint", self._entity, str(batch))

    def completed(self, batch: int, progress: Mapping[str, Any], end_ms: int, sizes: tuple[int, int]) -> None:
        """Report a completed checkpoint from its progress; sizes: all state and bytes written."""
        durations = progress.get("durationMs") or {}
        start_ms = end_ms - int(durations.get("triggerExecution", 0))
        span = self._checkpoint(batch, "COMPLETED", start_ms, end_ms)
        span.set_attribute("fullSize", sizes[0]).set_attribute("checkpointedSize", sizes[1])
        for phase in PHASES:
            span.set_attribute(f"{phase}Ms", durations.get(phase))
        if self._settings.detailed(WITH_OPERATORS):
            _add_operators(span, progress.get("stateOperators") or ())
        if self._settings.detailed(PHASES_AND_JOBS):
            _add_phases(span, durations, start_ms)
        self._traces.report(span, self.checkpoint_place(batch), self._entity, self._group)

    def ended_early(self, batch: int, start_ms: int, end_ms: int, failure: Failure | None) -> None:
        """Report a micro-batch that failed or was stopped before its commit, as parent of its jobs' spans."""
        status = "FAILED" if failure else "IN_PROGRESS"
        span = self._checkpoint(batch, status, start_ms, end_ms, failure)
        self._traces.report(span, self.checkpoint_place(batch), self._entity, self._group)

    def initialized(
        self, start_ms: int, end_ms: int, batch: int | None, full_size: int, failure: Failure | None = None
    ) -> None:
        """Report Flink's JobInitialization: from the start of the run to its first progress, or its failure.

        Args:
            start_ms: when the run began, in ms since the epoch.
            end_ms: when initialization ended, in ms since the epoch.
            batch: the batch that the run resumes from; None if it starts from scratch.
            full_size: the size of all state, in bytes; negative if unknown.
            failure: why initialization failed.
        """
        span = (
            ended_span("JobInitialization", start_ms, end_ms, failure)
            .set_attribute("checkpointId", batch)
            .set_attribute("fullSize", full_size if full_size >= 0 else None)
            .set_attribute("initializationStatus", "FAILED" if failure else "COMPLETED")
            .set_routine(False)
        )
        self._traces.report(span, self._initialization, self._entity, self._group)

    def ended(self, start_ms: int, end_ms: int, status: str, failure: Failure | None) -> None:
        """Report the whole run."""
        span = ended_span("Query", start_ms, end_ms, failure).set_routine(False)
        span.set_attribute("jobStatus", status)
        self._traces.report(span, self._place, self._entity, self._group)

    def _checkpoint(
        self, batch: int, status: str, start_ms: int, end_ms: int, failure: Failure | None = None
    ) -> SpanBuilder:
        span = ended_span("Checkpoint", start_ms, end_ms, failure)
        span.set_attribute("checkpointId", batch).set_attribute("checkpointStatus", status)
        span.set_attribute("isUnaligned", "false").set_attribute("checkpointType", "Checkpoint")
        return span.add_link(self._initialization.trace_id, self._initialization.span_id)


def _add_operators(span: SpanBuilder, operators: Any) -> None:
    """Add what the stateful operators did, one list per attribute, as Flink does for tasks."""
    if operators:
        names = tuple(str(operator.get("operatorName", "")) for operator in operators)
        span.set_attribute("operators", names)
        for attribute, field in _OF_OPERATOR.items():
            span.set_attribute(attribute, tuple(int(operator.get(field) or 0) for operator in operators))


def _add_phases(span: SpanBuilder, durations: Mapping[str, Any], start_ms: int) -> None:
    """Add a child for each phase, laid end to end: Spark says how long each took, but not when."""
    for phase in PHASES:
        if phase in durations:
            until = start_ms + int(durations[phase])
            span.add_child(Span.builder(CLASS_SCOPE, phase).set_times_ms(start_ms, until))
            start_ms = until
