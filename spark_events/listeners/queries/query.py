"""Streaming queries: a query's id stays the same across restarts; each run has a run id of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_events.api import CodePlace, Failure, JobStatus
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import assumed_of, outcome_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Place
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.issues.issue_events import IssueEvents
from spark_events.listeners.listener import Handlers
from spark_events.listeners.queries.idle_interval import IdleInterval
from spark_events.listeners.queries.micro_batch import parse_micro_batch
from spark_events.listeners.queries.query_metrics import QuerySeries
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.queries.restart_counts import RestartCounts
from spark_events.listeners.queries.streaming_query import EndAttributes, StreamingQuery
from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.record_types import (
    ApplicationDeadRecord,
    ApplicationEndRecord,
    QueryIdleRecord,
    QueryNotStartedRecord,
    QueryProgressRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
    SQLExecutionStartRecord,
)
from spark_events.listeners.run import Job, query_name
from spark_events.listeners.settings import PHASES_AND_JOBS

_MOST_ENDED = 100


class QueryListener:
    """Follows the streaming queries of one application.

    Attributes:
        idle_interval: after how long Spark says that one of them is idle.
    """

    def __init__(self, context: ListenerContext, issues: IssueEvents) -> None:
        self._context = context
        self._issues = issues
        self.idle_interval = IdleInterval()
        self._series = _AllSeries(context)
        self._restarts = RestartCounts(context.settings.state_dir, context.emitter.application.name)
        self._queries: dict[str, StreamingQuery] = {}
        # Of queries that do not run, in the order in which they ended: the ids.
        self._over: dict[str, None] = {}
        self._running: dict[str, tuple[StreamingQuery, QueryRun]] = {}

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.ENVIRONMENT_UPDATE: self.idle_interval.on_environment,
            spark_records.QUERY_STARTED: self.on_started,
            spark_records.QUERY_NOT_STARTED: self.on_not_started,
            spark_records.SQL_EXECUTION_START: self.on_sql_execution_start,
            spark_records.QUERY_PROGRESS: self.on_progress,
            spark_records.QUERY_IDLE: self.on_idle,
            spark_records.QUERY_TERMINATED: self.on_terminated,
            spark_records.APPLICATION_END: self.on_application_end,
            spark_records.APPLICATION_DEAD: self.on_application_dead,
            spark_records.APPLICATION_ALIVE: self.on_application_alive,
        }

    def on_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted; a known id means that the query has been restarted."""
        query_id, run_id = str(record["id"]), str(record[RUN_ID])
        if run_id in self._running:
            return
        name = query_name(record)
        series, last = self._series.of(name), self._last_of(name)
        query = self._queries.get(query_id)
        if query is None:
            query = StreamingQuery(self._context, self._restarts, series, self._issues, self.idle_interval)
            self._queries[query_id] = query
        self._over.pop(query_id, None)
        run = query.begin_run(record, series, time_ms, last)
        self._running[run_id] = (query, run)

    def on_not_started(self, record: QueryNotStartedRecord, time_ms: int) -> None:
        """Handle a query that could not start: its only run begins and ends at once.

        While another query of its name runs, that one's status stays what it is.
        """
        failure = parse_failure(str(record["exception"]), record.get("errorClass"))
        if record.get("place"):  # whatever was thrown below ``start``, this is where it was called
            failure = replace(failure, code=CodePlace(*record["place"]))
        run = QueryRun(self._context, record, time_ms, None)
        is_taken = any(run.name == other.name for _, other in self._running.values())
        if not is_taken:
            self._series.of(run.name).show_status(run)
            run.tracker.change(JobStatus.CREATED, time_ms)
        self._context.failures.report(failure, run.entity, run.group, time_ms, is_global=True)
        if not is_taken:
            run.tracker.change(JobStatus.FAILED, time_ms, failure=failure)
            self._series.ended(run, time_ms, on_purpose=False)

    def on_sql_execution_start(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        """Handle the SQL execution of a micro-batch, which reveals the batch before it commits."""
        batch = parse_micro_batch(record.get("description"))
        if batch is not None and batch.number is not None and batch.run_id in self._running:
            query, run = self._running[batch.run_id]
            query.begin_batch(run, batch.number, time_ms)

    def on_progress(self, record: QueryProgressRecord, time_ms: int) -> None:
        """Handle QueryProgress."""
        progress = record["progress"]
        if (run_id := str(progress[RUN_ID])) in self._running:
            query, run = self._running[run_id]
            query.take_progress(run, progress, time_ms)

    def on_idle(self, record: QueryIdleRecord, time_ms: int) -> None:
        """Handle QueryIdle: the query is alive but has nothing to do."""
        if (run_id := str(record[RUN_ID])) in self._running:
            query, run = self._running[run_id]
            query.rest(run, time_ms)

    def on_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        """Handle QueryTerminated, which does not contain a time."""
        run_id = str(record[RUN_ID])
        if run_id not in self._running:
            return
        query, run = self._running.pop(run_id)
        query.series.stopped(run)
        if thrown := record.get("exception"):
            failure = parse_failure(thrown, record.get("errorClassOnException"))
            query.fail(run, failure, time_ms)
            self._ended(query, run, time_ms, on_purpose=False)
        else:
            # Of one that was stopped from the JVM, only a batch that did not commit tells.
            reached_end = run.bounded and run.batch is None and not record.get(spark_records.STOPPED)
            self._end(query, run, JobStatus.FINISHED if reached_end else JobStatus.CANCELED, time_ms)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """End the queries that still ran when the application ended; Spark does not report their end then."""
        outcome = outcome_of(record, self._context.settings.stop_signals)
        runs_on = bool(record.get(spark_records.SPARK_RUNS_ON))
        while self._running:
            query, run = self._running.pop(next(iter(self._running)))
            query.series.stopped(run)
            if outcome.failure is not None:
                query.fail(run, outcome.failure, time_ms, outcome.attributes, runs_on)
                self._ended(query, run, time_ms, on_purpose=False)
            else:
                self._end(query, run, JobStatus.CANCELED, time_ms, outcome.attributes)

    def running(self) -> list[QueryRun]:
        """Return the runs that go on."""
        return [run for _, run in self._running.values()]

    def on_application_dead(self, record: ApplicationDeadRecord, time_ms: int) -> None:
        """Called when an unfinished event log is no longer being written: its queries count as dead."""
        occasion = f"dead since {time_ms}"
        for query, run in list(self._running.values()):
            query.series.stopped(run)
            failure = Failure(str(record["Reason"]))
            self._context.failures.report(
                failure, run.entity, run.group, time_ms, is_global=True, occasion=occasion
            )
            run.tracker.change(JobStatus.FAILED, time_ms, occasion, failure, assumed_of(record))

    def on_application_alive(self, record: dict[str, Any], time_ms: int) -> None:
        """Called when that log is written again."""
        for _, run in self._running.values():
            run.tracker.revive(time_ms)

    def tick(self, now_ms: int) -> None:
        """Report checkpoints that are now overdue, and forget queries that ended long enough ago."""
        gone = set(self._series.tick(now_ms))
        over = [query_id for query_id, query in self._queries.items() if query.name in gone]
        # Of many queries of one name, the last hundred are kept; others may use the name, so its series stay.
        for query_id in [*over, *list(self._over)[:-_MOST_ENDED]]:
            self._queries.pop(query_id, None)
            self._over.pop(query_id, None)
        for query in list(self._queries.values()):
            query.tick(now_ms)

    def place_of_job(self, job: Job) -> tuple[bool, Place | None]:
        """Return whether a job belongs to a query, and the parent of its span, or None if it has none."""
        if job.group not in self._running:
            return False, None
        if not self._context.settings.detailed(PHASES_AND_JOBS):
            return True, None
        return True, self.place_of_batch(job.group, job.batch)

    def place_of_batch(self, run_id: str, batch: str | None) -> Place | None:
        """Return the place of a micro-batch's checkpoint, or of its query; None if the query does not run."""
        if run_id not in self._running:
            return None
        return self._running[run_id][1].place_of(None if batch is None else int(batch))

    def _end(
        self,
        query: StreamingQuery,
        run: QueryRun,
        status: JobStatus,
        time_ms: int,
        attributes: EndAttributes = None,
    ) -> None:
        query.end(run, status, time_ms, attributes)
        self._ended(query, run, time_ms, on_purpose=True)

    def _runs(self, query: StreamingQuery) -> bool:
        """Return whether a run of a query goes on: one may end after the next has begun."""
        return any(query is running for running, _ in self._running.values())

    def _last_of(self, name: str) -> StreamingQuery | None:
        """Return the query that had a name last; None while one has it."""
        if any(run.name == name for _, run in self._running.values()):
            return None
        over = (self._queries.get(query_id) for query_id in reversed(self._over))
        return next((query for query in over if query is not None and query.name == name), None)

    def _ended(self, query: StreamingQuery, run: QueryRun, time_ms: int, on_purpose: bool) -> None:
        # Sessions do not know each other's names.
        others = [other for _, other in self._running.values() if other.name == run.name]
        if others and not self._runs(query):
            query.leave_name()
        series = self._series.of(run.name) if others else None
        if series is not None and series.shows(run):
            series.show(others[-1], time_ms)
        self._series.ended(run, time_ms, on_purpose)
        if not self._runs(query):
            self._over.pop(run.query_id, None)
            self._over[run.query_id] = None


class _AllSeries:
    """The metrics of all queries of one application; those of queries ended on purpose go after a while.

    Those of a failed query stay, so that somebody sees that it is down, but only for the hundred queries
    that ended last.
    """

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._series: dict[str, QuerySeries] = {}
        self._leaving: dict[str, float] = {}

    def of(self, name: str) -> QuerySeries:
        """Return the metrics of a query that is starting."""
        self._leaving.pop(name, None)
        if name not in self._series:
            self._series[name] = QuerySeries(self._context, name)
        return self._series[name]

    def ended(self, run: QueryRun, time_ms: int, on_purpose: bool) -> None:
        """Called when a run has ended, at a time in ms since the epoch."""
        series = self._series.get(run.name)
        if series is not None and series.shows(run):  # else a newer run uses the name
            due_ms = time_ms + self._context.settings.retention_ms if on_purpose else float("inf")
            self._leaving[run.name] = due_ms

    def tick(self, now_ms: int) -> list[str]:
        """Remove the series that are due to leave, and return the names of their queries."""
        gone = [name for name, due_ms in self._leaving.items() if due_ms <= now_ms]
        gone += [name for name in list(self._leaving)[:-_MOST_ENDED] if name not in gone]
        for name in gone:
            del self._leaving[name]
            self._series.pop(name).close()
        return gone
