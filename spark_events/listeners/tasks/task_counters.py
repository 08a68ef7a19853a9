"""Reports what tasks have counted as events, too: of metrics, nothing is stored with the events."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import Event, MetricGroup
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
)
from spark_events.runtime import event_names
from spark_events.runtime.log_once import logger

CLASS_SCOPE = "spark_events.listeners.TaskCounters"
_MOST_AT_ONCE = 100
Labels = tuple[tuple[str, str], ...]


class _Job:
    """A run of a query, or the application, and by how much its counters have grown since the last event."""

    def __init__(self, entity: Entity, group: MetricGroup) -> None:
        self.entity = entity
        self.group = group
        self.growth: dict[tuple[str, Labels], float] = {}


class TaskCounters:
    """Reports by how much each counter of a job has grown: from time to time, and when the job ends.

    The listener of what tasks report hands it what it hears.

    Args:
        context: what the listeners share.
    """

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._interval_ms = context.settings.task_counters_interval_ms
        self._jobs: dict[str, _Job] = {}
        self._query_ids: dict[str, str] = {}
        self._warned = False
        self._due_ms: int | None = None

    def grow(self, name: str, labels: Labels, by: float, run_id: str, of_query: Mapping[str, str]) -> None:
        """Called with what a task has counted.

        Args:
            name: of the counter.
            labels: of the counter.
            by: how much.
            run_id: of the query that the task belongs to.
            of_query: the query's variables; empty for a task that belongs to none.
        """
        if not self._interval_ms or not by:
            return
        key = run_id if of_query else ""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job(*self.subject(key, of_query))
        job.growth[name, labels] = job.growth.get((name, labels), 0) + by

    def tick(self, now_ms: int) -> None:
        """Report the growth if the interval is over."""
        if self._due_ms is None and self._jobs:
            self._due_ms = now_ms + self._interval_ms
        elif self._due_ms is not None and now_ms >= self._due_ms:
            self._due_ms = None
            for key in list(self._jobs):
                self._report(key, now_ms)

    def on_query_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted."""
        self._query_ids[str(record[RUN_ID])] = str(record["id"])

    def on_query_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        """Handle QueryTerminated: report the rest of that run."""
        run_id = str(record[RUN_ID])
        self._report(run_id, time_ms)
        self._query_ids.pop(run_id, None)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd: report all the rest."""
        for key in list(self._jobs):
            self._report(key, time_ms)

    def subject(self, run_id: str, of_query: Mapping[str, str]) -> tuple[Entity, MetricGroup]:
        """Return a run of a query and its group, or the application and its group."""
        scopes, name = self._context.scopes, of_query.get("query_name", "")
        if name:
            entity = Entity("query", run_id, f"query {name!r}", name)
            return entity, scopes.query_run(name, self._query_ids.get(run_id, ""), run_id)
        application = self._context.emitter.application
        entity = Entity("application", "", f"application {application.name!r}")
        return entity, scopes.application_run()

    def _report(self, key: str, time_ms: int) -> None:
        job = self._jobs.pop(key, None)
        if job is None:
            return
        largest = sorted(job.growth.items(), key=lambda item: (-item[1], item[0]))
        for (name, labels), grown in largest[:_MOST_AT_ONCE]:
            by = round(grown)  # in metrics with its fraction
            if not by:
                continue
            text = ", ".join(f"{label}={value}" for label, value in labels)
            event = (
                Event.builder(CLASS_SCOPE, event_names.TASK_COUNTER)
                .set_routine(True)
                .set_body(f"{job.entity.title} counted {by:,} {name}{f' ({text})' if text else ''}")
                .set_attribute("counter", name)
                .set_attribute("labels", text or None)
                .set_attribute("count", by)
            )
            occasion = (name, text, str(time_ms))
            self._context.emitter.emit(event, job.entity, job.group, time_ms, occasion)
        if len(largest) > _MOST_AT_ONCE and not self._warned:
            self._warned = True
            logger.warning(
                "%s has %s counters that have grown; events report the %s that have grown most, metrics all",
                job.entity.title,
                f"{len(largest):,}",
                _MOST_AT_ONCE,
            )
