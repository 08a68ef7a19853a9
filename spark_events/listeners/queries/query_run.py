"""One run of a streaming query, from its start to its end, and its spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import Failure, JobStatus, MetricGroup, Span, SpanBuilder
from spark_events.listeners.application.job_status import JobStatusTracker
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import SPAN_SCOPE, Entity, Place, Traces, ended_span
from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.record_types import QueryNotStartedRecord, QueryStartedRecord
from spark_events.listeners.run import query_name
from spark_events.listeners.settings import PHASES_AND_JOBS, WITH_OPERATORS, ListenerSettings
from spark_events.listeners.spark_records import FOUND_RUNNING

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


class QueryRun:
    """What is known about a run.

    Args:
        context: what the listeners share.
        started: Spark's QueryStarted.
        start_ms: when it began, in ms since the epoch.
        before: the run that it continues; None if this process knows of none.

    Attributes:
        query_id: the query's id, which is the same in all its runs.
        location: where the checkpoints are; None if unknown.
        bounded: whether it ends by itself; any other run ends only when somebody stops it.
        continuous: whether it has a continuous trigger: Spark reports no progress of it.
        trigger_interval_ms: its trigger's interval; None if it has none, or it is unknown.
        was_running: whether it ran already when somebody began to listen.
        first_batch: the id of the batch that it began with; None before that batch, or if it was found.
        batch: the id of the running batch, and when it began, in ms since the epoch.
        last_batch: the id of the last batch that this run has completed; -1 before the first.
        last_checkpoint: the id of the last completed batch, of this run or of those before it, and when it
            completed; -1 and 0 if none is known.
    """

    def __init__(
        self,
        context: ListenerContext,
        started: QueryStartedRecord | QueryNotStartedRecord,
        start_ms: int,
        before: QueryRun | None,
    ) -> None:
        self.query_id, self.run_id = str(started["id"]), str(started[RUN_ID])
        self.name = query_name(started)
        self.start_ms = start_ms
        self.location: str | None = started.get("checkpointLocation")
        self.bounded, self.continuous = bool(started.get("bounded")), bool(started.get("continuous"))
        self.trigger_interval_ms: int | None = started.get("triggerIntervalMs")
        self.entity = Entity("query", self.run_id, f"query {self.name!r}", self.name)
        self.group: MetricGroup = context.scopes.query_run(self.name, self.query_id, self.run_id)
        self._spans = _Spans(context.traces, context.settings, self.entity, self.group)
        self.tracker: JobStatusTracker = JobStatusTracker(
            context.emitter, self.entity, self.group, before.tracker if before is not None else None
        )
        self.was_running = bool(started.get(FOUND_RUNNING))
        self.first_batch: int | None = None
        self.batch: tuple[int, int] | None = None
        self.last_batch = -1
        self.last_checkpoint: tuple[int, int] = before.last_checkpoint if before is not None else (-1, 0)
        self._initialized = False

    def initialize(self, end_ms: int, full_size: int, failure: Failure | None = None) -> None:
        """Report, once, that the run is initialized, or could not be.

        Args:
            end_ms: when, in ms since the epoch.
            full_size: the size of all state, in bytes; negative if unknown.
            failure: why initialization failed.
        """
        if not self._initialized:
            self._initialized = True
            restored = self.first_batch - 1 if self.first_batch else None
            self._spans.initialized(self.start_ms, end_ms, restored, full_size, failure)

    def place_of(self, batch: int | None) -> Place:
        """Return the place of a micro-batch's checkpoint, the parent of its jobs; without one, of the run."""
        return self._spans.place if batch is None else self._spans.checkpoint_place(batch)

    def batch_began(self, batch: int, time_ms: int) -> None:
        """Called when a micro-batch has begun."""
        self.batch = (batch, time_ms)

    def batch_committed(self, batch: int, time_ms: int) -> None:
        """Called when a micro-batch has committed, before it is reported."""
        self.batch, self.last_batch, self.last_checkpoint = None, batch, (batch, time_ms)

    def report_checkpoint(
        self, batch: int, progress: Mapping[str, Any], end_ms: int, sizes: tuple[int, int]
    ) -> None:
        """Report the span of a completed checkpoint; sizes: all state and bytes written."""
        self._spans.completed(batch, progress, end_ms, sizes)

    def end_batch_early(self, end_ms: int, failure: Failure | None) -> None:
        """Report the span of the micro-batch that runs, if one does: it failed, or was stopped."""
        if self.batch is not None:
            self._spans.ended_early(*self.batch, end_ms, failure)

    def end(self, status: JobStatus, end_ms: int, failure: Failure | None = None) -> None:
        """Report the span of the whole run."""
        self._spans.ended(self.start_ms, end_ms, status.value, failure)


class _Spans:
    """Reports the spans of one run of a query."""

    def __init__(
        self, traces: Traces, settings: ListenerSettings, entity: Entity, group: MetricGroup
    ) -> None:
        self._traces = traces
        self._with_operators = settings.detailed(WITH_OPERATORS)
        self._with_phases = settings.detailed(PHASES_AND_JOBS)
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
        if self._with_operators:
            _add_operators(span, progress.get("stateOperators") or ())
        if self._with_phases:
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
            span.add_child(Span.builder(SPAN_SCOPE, phase).set_times_ms(start_ms, until))
            start_ms = until
