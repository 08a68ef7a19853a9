"""Tells the job status listeners of applications, streaming queries and statements (FLIP-314)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from spark_events.api import (
    ExecutionMode,
    Failure,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobLineageEvent,
    JobStatus,
    JobStatusChangedEvent,
    LineageGraph,
    MetricGroup,
)
from spark_events.api.job_listener import APPLICATION, QUERY, STATEMENT
from spark_events.jobs.job_names import name_of_statement
from spark_events.lineage.datasets import Catalogs
from spark_events.lineage.edges import GivenEdges, edges_of
from spark_events.lineage.graph import GraphBuilder, merged
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_failure, was_cancelled
from spark_events.listeners.spark_records import APPLICATION_END
from spark_events.listeners.translator import Handler
from spark_events.runtime.registry import Registry

STATEMENT_CREATED = "SparkEventsStatementCreated"
STATEMENT_LINEAGE = "SparkEventsStatementLineage"
STATEMENT_ENDED = "SparkEventsStatementEnded"
QUERY_LINEAGE = "SparkEventsQueryLineage"
QUERY_TAGS = "SparkEventsQueryTags"
LINEAGE_ENDED = "SparkEventsLineageEnded"
"""Records of ``LineageListener.java``."""
_PATIENCE_MS = 10_000
_EVENT_BYTES = 2_000
_INPUT_BYTES = 300


@dataclass(slots=True)
class _Job:
    """A job that runs.

    Attributes:
        event: what all its events say.
        status: its status now.
        graph: what is known of its lineage.
        given: what the program says of it.
        created: whether its creation was told.
        waiting: changes of its status that wait for that.
    """

    event: JobStatusChangedEvent
    status: JobStatus = JobStatus.CREATED
    graph: LineageGraph = field(default_factory=LineageGraph)
    given: GivenEdges | None = None
    created: bool = False
    waiting: list[JobExecutionStatusEvent] = field(default_factory=list)


class JobListeners:
    """Makes the events of jobs, from Spark's records and from what the listeners make of them.

    Args:
        context: what the listeners share.
        registry: where the job status listeners are.
        spark_version: what runs the jobs.
        catalogs: where tables have their names.
        with_plans: whether records of plans come, so that a query waits for its own.
    """

    def __init__(
        self,
        context: ListenerContext,
        registry: Registry,
        spark_version: str,
        catalogs: Catalogs,
        with_plans: bool,
    ) -> None:
        self._registry = registry
        self._application = context.emitter.application
        self._scopes = context.scopes
        self._spark_version = spark_version
        self._catalogs = catalogs
        self._with_plans = with_plans
        self._statements: dict[int, _Job] = {}
        self._queries: dict[str, _Job] = {}
        self._early: dict[str, LineageGraph] = {}
        self._job_of_application: _Job | None = None
        context.emitter.status_observer = self._on_status

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What takes a record, by its name."""
        return {
            STATEMENT_CREATED: self._on_statement_created,
            STATEMENT_LINEAGE: self._on_statement_lineage,
            STATEMENT_ENDED: self._on_statement_ended,
            QUERY_LINEAGE: self._on_query_lineage,
            QUERY_TAGS: self._on_query_tags,
            APPLICATION_END: self._on_application_end,
        }

    def tick(self, now_ms: int) -> None:
        """Wait no longer for plans that have not come for some time."""
        for job in list(self._queries.values()):
            if not job.created and now_ms - job.event.time_ms > _PATIENCE_MS:
                self._create(job, replace(job.graph, incomplete="its plan was not read in time"))

    # -- statements ----------------------------------------------------------------------------------

    def _on_statement_created(self, record: dict[str, Any], time_ms: int) -> None:
        execution = int(record["executionId"])
        graph = self._graph(record)
        job_id = f"{self._application.id}/{execution}"
        given = edges_of(record.get("tags") or (), job_id) if graph.sinks else None
        shown = _shown(graph, given)
        variables = self._scopes.sql_execution(execution).all_variables
        job = _Job(self._event(job_id, name_of_statement(shown), STATEMENT, time_ms, variables), given=given)
        self._statements[execution] = job
        statement = str(record.get("sql") or record.get("description") or "")
        self._create(job, graph, self._registry.redact(statement), is_sql=bool(record.get("sql")))
        self._change(job, JobStatus.RUNNING, time_ms)

    def _on_statement_lineage(self, record: dict[str, Any], time_ms: int) -> None:
        job = self._statements.get(int(record["executionId"]))
        if job is not None:
            self._set_graph(job, self._graph(record), time_ms)

    def _on_statement_ended(self, record: dict[str, Any], time_ms: int) -> None:
        job = self._statements.pop(int(record["executionId"]), None)
        if job is None:
            return
        thrown = record.get("failure")
        written = {str(key): int(value) for key, value in (record.get("written") or {}).items()}
        if not thrown:
            self._change(job, JobStatus.FINISHED, time_ms, written=written)
            return
        failure = parse_failure(str(thrown["text"]), thrown.get("errorClass"))
        if thrown.get("sqlState"):
            failure = replace(failure, sql_state=str(thrown["sqlState"]))
        status = JobStatus.CANCELED if was_cancelled(failure) else JobStatus.FAILED
        self._change(job, status, time_ms, failure)

    def _on_application_end(self, record: dict[str, Any], time_ms: int) -> None:
        """End the statements that the application took with it."""
        for job in self._statements.values():
            self._change(job, JobStatus.CANCELED, time_ms)
        self._statements.clear()

    # -- streaming queries ---------------------------------------------------------------------------

    def _on_query_lineage(self, record: dict[str, Any], time_ms: int) -> None:
        """Take what a query's plan says; it may come before Spark's record of the query's start, or after."""
        run_id, graph = str(record["runId"]), self._graph(record)
        job = self._queries.get(run_id)
        if job is None:
            self._early[run_id] = merged((self._early.get(run_id, LineageGraph()), graph))
        elif not job.created:
            self._create(job, graph)
        else:
            self._set_graph(job, merged((job.graph, graph)), time_ms)

    def _on_query_tags(self, record: dict[str, Any], time_ms: int) -> None:
        """Take the tags of a query, which Spark tells with its first batch."""
        run_id = str(record["runId"])
        job, given = self._queries.get(run_id), edges_of(record.get("tags") or (), run_id)
        if job is not None and given is not None and job.given is None:
            job.given = given
            self._set_graph(job, job.graph, time_ms)

    def _on_status(
        self,
        entity: Entity,
        group: MetricGroup,
        old: JobStatus | None,
        new: JobStatus,
        time_ms: int,
        failure: Failure | None,
    ) -> None:
        """Take what the listeners found out of an application or a query."""
        if entity.kind == APPLICATION:
            self._on_application_status(group, new, time_ms, failure)
        elif entity.kind == QUERY:
            self._on_query_status(entity, group, old, new, time_ms, failure)

    def _on_query_status(
        self,
        entity: Entity,
        group: MetricGroup,
        old: JobStatus | None,
        new: JobStatus,
        time_ms: int,
        failure: Failure | None,
    ) -> None:
        job = self._queries.get(entity.id)
        if job is None:
            event = self._event(entity.id, entity.query_name, QUERY, time_ms, group.all_variables)
            job = self._queries[entity.id] = _Job(event, old or JobStatus.CREATED)
            if entity.id in self._early or not self._with_plans:
                self._create(job, self._early.pop(entity.id, LineageGraph()))
        self._change(job, new, time_ms, failure)
        if new.terminal and job.created:
            del self._queries[entity.id]

    def _on_application_status(
        self, group: MetricGroup, new: JobStatus, time_ms: int, failure: Failure | None
    ) -> None:
        job = self._job_of_application
        if job is None:
            application = self._application
            event = self._event(application.id, application.name, APPLICATION, time_ms, group.all_variables)
            job = self._job_of_application = _Job(event)
            self._create(job, LineageGraph())
        if new is not JobStatus.CREATED:
            self._change(job, new, time_ms, failure)

    # ------------------------------------------------------------------------------------------------

    def _graph(self, record: Mapping[str, Any]) -> LineageGraph:
        found = record.get("lineage")
        if not found:
            return LineageGraph(incomplete=str(record.get("incomplete") or ""))
        return GraphBuilder(found, self._catalogs, bool(record.get("bounded"))).build()

    def _event(
        self, job_id: str, name: str, kind: str, time_ms: int, variables: Mapping[str, str]
    ) -> JobStatusChangedEvent:
        return JobStatusChangedEvent(job_id, name, kind, time_ms, self._application, variables)

    def _create(self, job: _Job, graph: LineageGraph, statement: str = "", is_sql: bool = False) -> None:
        job.created, job.graph = True, graph
        shown = _shown(graph, job.given)
        mode = ExecutionMode.STREAMING if job.event.job_kind == QUERY else ExecutionMode.BATCH
        event = JobCreatedEvent(
            **_fields(job.event),
            lineage=shown,
            execution_mode=mode,
            statement=statement,
            is_sql=is_sql,
            spark_version=self._spark_version,
        )
        self._send(event, shown)
        for change in job.waiting:
            self._send(change)
        if job.waiting and job.waiting[-1].new_status.terminal:
            self._queries.pop(job.event.job_id, None)
        job.waiting = []

    def _set_graph(self, job: _Job, graph: LineageGraph, time_ms: int) -> None:
        """Tell that more is known than when the job was created."""
        if graph == job.graph and not job.given:
            return
        job.graph = graph
        shown = _shown(graph, job.given)
        self._send(JobLineageEvent(**{**_fields(job.event), "time_ms": time_ms}, lineage=shown), shown)

    def _change(
        self,
        job: _Job,
        new: JobStatus,
        time_ms: int,
        failure: Failure | None = None,
        written: Mapping[str, int] | None = None,
    ) -> None:
        if new is job.status:
            return
        change = JobExecutionStatusEvent(
            **{**_fields(job.event), "time_ms": time_ms},
            old_status=job.status,
            new_status=new,
            exception=self._redacted(failure),
            written=written or {},
        )
        job.status = new
        if job.created:
            self._send(change)
        else:
            job.waiting.append(change)

    def _redacted(self, failure: Failure | None) -> Failure | None:
        if failure is None:
            return None
        stacktrace = self._registry.redact(failure.stacktrace) if failure.stacktrace else None
        return replace(failure, message=self._registry.redact(failure.message), stacktrace=stacktrace)

    def _send(self, event: JobStatusChangedEvent, graph: LineageGraph | None = None) -> None:
        inputs = graph.input_count if graph else 0
        self._registry.add_job_event(event, _EVENT_BYTES + inputs * _INPUT_BYTES)


def _shown(graph: LineageGraph, given: GivenEdges | None) -> LineageGraph:
    """Return a graph with what the program says, where it says something."""
    return given.applied_to(graph) if given else graph


def _fields(event: JobStatusChangedEvent) -> dict[str, Any]:
    return {one.name: getattr(event, one.name) for one in fields(event)}
