"""Makes the events of applications, streaming queries and statements (FLIP-314) of Spark's records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_events.api import (
    DataWritten,
    Failure,
    JobCreatedEvent,
    JobLineageEvent,
    JobStatus,
    JobStatusChangedEvent,
    LineageGraph,
    MetricGroup,
)
from spark_events.api.job_listener import APPLICATION, QUERY, RDD_JOB, STATEMENT
from spark_events.jobs.header_reads import with_folder
from spark_events.jobs.job_names import name_of_statement
from spark_events.jobs.plan_records import (
    QUERY_ENDED,
    QUERY_LINEAGE,
    QUERY_TAGS,
    QUERY_VERSION,
    RDD_JOB_CREATED,
    RDD_JOB_ENDED,
    STATEMENT_CREATED,
    STATEMENT_ENDED,
    STATEMENT_LINEAGE,
)
from spark_events.jobs.query_reports import QueryReports
from spark_events.jobs.tracked_job import TrackedJob, with_given
from spark_events.lineage.data_amounts import data_read, data_written
from spark_events.lineage.datasets import Catalogs
from spark_events.lineage.edges import edges_of
from spark_events.lineage.graph import GraphBuilder, merged
from spark_events.listeners import record_types
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures.failures import parse_failure, was_cancelled
from spark_events.listeners.listener import Handler, early
from spark_events.listeners.spark_records import APPLICATION_END, QUERY_PROGRESS
from spark_events.runtime.registry import Registry

_PATIENCE_MS = 10_000
_MOST_WAITING = 1_000
_EVENT_BYTES = 2_000
_INPUT_BYTES = 300


class JobEvents:
    """Follows each job by the records of its plan and by the status that the record listeners see.

    Args:
        context: what the record listeners share.
        registry: receives the events.
        catalogs: gives tables their names.
        with_plans: whether records of plans will come, so that a query waits for its own.
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
        self._statements: dict[int, TrackedJob] = {}
        self._rdd_jobs: dict[int, TrackedJob] = {}
        self._queries: dict[str, TrackedJob] = {}
        self._reports = QueryReports(context.settings.lineage_interval_ms, _PATIENCE_MS)
        self._graphs_before_start: dict[str, LineageGraph] = {}
        self._application_job: TrackedJob | None = None
        context.emitter.status_observer = self._on_status

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What it hears."""
        return {
            STATEMENT_CREATED: early(self._on_statement_created),
            STATEMENT_LINEAGE: early(self._on_statement_lineage),
            STATEMENT_ENDED: early(self._on_statement_ended),
            RDD_JOB_CREATED: early(self._on_rdd_job_created),
            RDD_JOB_ENDED: early(self._on_rdd_job_ended),
            QUERY_LINEAGE: early(self._on_query_lineage),
            QUERY_TAGS: early(self._on_query_tags),
            QUERY_VERSION: early(self._on_query_version),
            QUERY_ENDED: early(self._on_query_ended),
            QUERY_PROGRESS: early(self._on_query_progress),
            APPLICATION_END: early(self._on_application_end),
        }

    def tick(self, now_ms: int) -> None:
        """Stop waiting for plans and versions that are long overdue."""
        self._reports.tick(now_ms)
        for job in list(self._queries.values()):
            if not job.created and now_ms - job.common.time_ms > _PATIENCE_MS:
                self._create_query(job, replace(job.graph, incomplete="its plan was not read in time"))

    # -- statements ----------------------------------------------------------------------------------

    def _on_statement_created(self, record: dict[str, Any], time_ms: int) -> None:
        execution = int(record["executionId"])
        graph = with_folder(self._graph(record), record)
        variables = self._scopes.sql_execution(execution).all_variables
        self._statements[execution] = self._begin(
            record, time_ms, STATEMENT, str(execution), graph, variables, bool(graph.sinks)
        )

    def _begin(
        self,
        record: Mapping[str, Any],
        time_ms: int,
        kind: str,
        number: str,
        graph: LineageGraph,
        variables: Mapping[str, str],
        may_write: bool,
    ) -> TrackedJob:
        """Send the creation of a statement or of a job of RDDs, which runs already."""
        job_id = f"{self._application.id}/{number}"
        given = edges_of(record.get("tags") or (), job_id) if may_write else None
        name = name_of_statement(with_given(graph, given))
        common = JobStatusChangedEvent(job_id, name, kind, time_ms, self._application, variables)
        job = TrackedJob(common, self._send, given=given)
        text = str(record.get("sql") or record.get("description") or "")
        job.create(graph, self._spark_version, self._registry.redact(text), is_sql=bool(record.get("sql")))
        job.change_status(JobStatus.RUNNING, time_ms)
        return job

    def _on_rdd_job_created(self, record: dict[str, Any], time_ms: int) -> None:
        number, graph = int(record["jobId"]), self._graph(record)
        variables = self._scopes.job(number, {}).all_variables
        self._rdd_jobs[number] = self._begin(
            record, time_ms, RDD_JOB, f"job-{number}", graph, variables, may_write=True
        )

    def _on_rdd_job_ended(self, record: dict[str, Any], time_ms: int) -> None:
        self._end(self._rdd_jobs.pop(int(record["jobId"]), None), record, time_ms)

    def _on_statement_lineage(self, record: dict[str, Any], time_ms: int) -> None:
        job = self._statements.get(int(record["executionId"]))
        if job is not None:
            job.set_graph(self._graph(record), time_ms)

    def _on_statement_ended(self, record: dict[str, Any], time_ms: int) -> None:
        self._end(self._statements.pop(int(record["executionId"]), None), record, time_ms)

    def _end(self, job: TrackedJob | None, record: Mapping[str, Any], time_ms: int) -> None:
        if job is None:
            return
        thrown = record.get("failure")
        written = {str(key): int(value) for key, value in (record.get("written") or {}).items()}
        if not thrown:
            read, made = data_read(record, self._catalogs), data_written(record, self._catalogs)
            job.change_status(JobStatus.FINISHED, time_ms, written=written, read=read, made=made)
            return
        failure = parse_failure(str(thrown["text"]), thrown.get("errorClass"))
        if thrown.get("sqlState"):
            failure = replace(failure, sql_state=str(thrown["sqlState"]))
        status = JobStatus.CANCELED if was_cancelled(failure) else JobStatus.FAILED
        job.change_status(status, time_ms, self._redacted(failure))

    def _on_application_end(self, record: record_types.ApplicationEndRecord, time_ms: int) -> None:
        """End what still ran when the application ended."""
        self._reports.versioned.close()
        for job in (*self._statements.values(), *self._rdd_jobs.values()):
            job.change_status(JobStatus.CANCELED, time_ms)
        self._statements.clear()
        self._rdd_jobs.clear()

    # -- streaming queries ---------------------------------------------------------------------------

    def _on_query_lineage(self, record: dict[str, Any], time_ms: int) -> None:
        """Called before or after Spark's record of the query's start, and for what its batches write."""
        run_id, graph = str(record["runId"]), self._graph(record)
        job = self._queries.get(run_id)
        if record.get("versioned"):
            self._reports.versioned.add(run_id)
        if job is None:
            known = self._graphs_before_start.get(run_id, LineageGraph())
            self._graphs_before_start[run_id] = merged((known, graph))
            if len(self._graphs_before_start) > _MOST_WAITING:  # some come after the end
                self._graphs_before_start.pop(next(iter(self._graphs_before_start)))
        elif not job.created:
            self._create_query(job, graph)
        else:
            job.set_graph(merged((job.graph, graph)), time_ms)

    def _on_query_tags(self, record: dict[str, Any], time_ms: int) -> None:
        """Called with a query's first batch, whose tags refer to the edges that the program gave."""
        run_id = str(record["runId"])
        job, given = self._queries.get(run_id), edges_of(record.get("tags") or (), run_id)
        if job is not None and given is not None and job.given is None:
            job.given = given
            job.set_graph(job.graph, time_ms)

    def _on_query_progress(self, record: record_types.QueryProgressRecord, time_ms: int) -> None:
        """Report how far a query has come, if it is time."""
        job = self._queries.get(str(record["progress"]["runId"]))
        if job is not None and job.created:
            self._reports.add_progress(job, record["progress"], time_ms)

    def _on_query_version(self, record: dict[str, Any], time_ms: int) -> None:
        job = self._queries.get(str(record["runId"]))
        if job is not None and job.created:
            made = data_written(record, self._catalogs)
            self._reports.add_version(job, int(record["batchId"]), made, time_ms)

    def _on_query_ended(self, record: dict[str, Any], time_ms: int) -> None:
        """Called after Spark's record of the query's end, which waits for its last version."""
        run_id = str(record["runId"])
        if "batchId" in record:
            self._reports.versioned.set_version(run_id, data_written(record, self._catalogs))
        self._reports.versioned.release(run_id)

    def _create_query(self, job: TrackedJob, graph: LineageGraph) -> None:
        """Send the creation of a query that waited for its plan; the query may have ended by now."""
        job.create(graph, self._spark_version)
        if job.status.terminal:
            self._queries.pop(job.common.job_id, None)
            self._reports.end(job.common.job_id)

    # -- statuses of applications and queries ----------------------------------------------------------

    def _on_status(
        self,
        entity: Entity,
        group: MetricGroup,
        old: JobStatus | None,
        new: JobStatus,
        time_ms: int,
        failure: Failure | None,
    ) -> None:
        """Called by the record listeners when the status of an application, a query or a job changes."""
        if entity.kind == APPLICATION:
            job = self._application_job or self._begin_application(group, time_ms)
        elif entity.kind == QUERY:
            job = self._queries.get(entity.id) or self._begin_query(entity, group, old, time_ms)
        else:
            return
        redacted = self._redacted(failure)
        if not (entity.kind == QUERY and new.terminal and job.created):
            job.change_status(new, time_ms, redacted)
            return

        def end(made: tuple[DataWritten, ...]) -> None:
            job.change_status(new, time_ms, redacted, made=made)
            self._queries.pop(entity.id, None)
            self._reports.end(entity.id)

        self._reports.versioned.end(entity.id, time_ms, end)

    def _begin_application(self, group: MetricGroup, time_ms: int) -> TrackedJob:
        application = self._application
        common = JobStatusChangedEvent(
            application.id, application.name, APPLICATION, time_ms, application, group.all_variables
        )
        job = self._application_job = TrackedJob(common, self._send)
        job.create(LineageGraph(), self._spark_version)
        return job

    def _begin_query(
        self, entity: Entity, group: MetricGroup, old: JobStatus | None, time_ms: int
    ) -> TrackedJob:
        """Begin a query's job; where its plan is still to come, its creation waits for that."""
        common = JobStatusChangedEvent(
            entity.id, entity.query_name, QUERY, time_ms, self._application, group.all_variables
        )
        job = self._queries[entity.id] = TrackedJob(common, self._send, old or JobStatus.CREATED)
        if entity.id in self._graphs_before_start or not self._with_plans:
            job.create(self._graphs_before_start.pop(entity.id, LineageGraph()), self._spark_version)
        return job

    # ------------------------------------------------------------------------------------------------

    def _graph(self, record: Mapping[str, Any]) -> LineageGraph:
        lineage = record.get("lineage")
        if not lineage:
            return LineageGraph(incomplete=str(record.get("incomplete") or ""))
        bounded = bool(record.get("bounded"))
        return GraphBuilder(lineage, self._catalogs, bounded, self._registry.redact).build()

    def _redacted(self, failure: Failure | None) -> Failure | None:
        if failure is None:
            return None
        stacktrace = self._registry.redact(failure.stacktrace) if failure.stacktrace else None
        return replace(failure, message=self._registry.redact(failure.message), stacktrace=stacktrace)

    def _send(self, event: JobStatusChangedEvent) -> None:
        inputs = event.lineage.input_count if isinstance(event, JobCreatedEvent | JobLineageEvent) else 0
        self._registry.add_job_event(event, _EVENT_BYTES + inputs * _INPUT_BYTES)
