"""One run of a streaming query, from its start to its end."""

from __future__ import annotations

from typing import Any

from spark_events.api import Failure, MetricGroup
from spark_events.listeners.application.job_status import JobStatusTracker
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.queries.query_spans import QuerySpans
from spark_events.listeners.run import query_name
from spark_events.listeners.spark_records import FOUND_RUNNING


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
        was_running: whether it ran already when somebody began to listen.
        first_batch: the id of the batch that it began with; None before that batch, or if it was found.
        batch: the id of the running batch, and when it began, in ms since the epoch.
        last_checkpoint: the id of the last completed batch, and when it completed; -1 and 0 if none is known.
    """

    def __init__(
        self, context: ListenerContext, started: dict[str, Any], start_ms: int, before: QueryRun | None
    ) -> None:
        self.query_id, self.run_id = str(started["id"]), str(started["runId"])
        self.name = query_name(started)
        self.start_ms = start_ms
        self.location: str | None = started.get("checkpointLocation")
        self.bounded = bool(started.get("bounded"))
        self.entity = Entity("query", self.run_id, f"query {self.name!r}", self.name)
        self.group: MetricGroup = context.scopes.query_run(self.name, self.query_id, self.run_id)
        self.spans = QuerySpans(context.traces, context.settings, self.entity, self.group)
        self.tracker: JobStatusTracker = JobStatusTracker(
            context.emitter, self.entity, self.group, before.tracker if before is not None else None
        )
        self.was_running = bool(started.get(FOUND_RUNNING))
        self.first_batch: int | None = None
        self.batch: tuple[int, int] | None = None
        self.last_checkpoint: tuple[int, int] = before.last_checkpoint if before is not None else (-1, 0)
        self._initialized = False

    def initialize(self, end_ms: int, full_size: int, failure: Failure | None = None) -> None:
        """Report, once, that the run is initialized; see ``QuerySpans.initialized``."""
        if not self._initialized:
            self._initialized = True
            restored = self.first_batch - 1 if self.first_batch else None
            self.spans.initialized(self.start_ms, end_ms, restored, full_size, failure)
