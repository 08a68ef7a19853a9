"""Streaming queries: an id lives across restarts, a run id is one run."""

from __future__ import annotations

import re
from typing import Any

from spark_events.api import Failure, JobStatus, MetricGroup
from spark_events.listeners.checkpoint import is_checkpoint, state_sizes
from spark_events.listeners.checkpoint_watch import CheckpointWatch
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_failure, thrown_by_task
from spark_events.listeners.job_status import JobStatusTracker
from spark_events.listeners.long_texts import LONGEST_NAME, cut
from spark_events.listeners.query_series import AllQuerySeries, QuerySeries
from spark_events.listeners.query_spans import QuerySpans
from spark_events.listeners.settings import PHASES_AND_JOBS
from spark_events.listeners.traces import Place

# How Spark describes the SQL execution of a micro-batch: name, "id = …", "runId = …", "batch = …".
_BATCH = re.compile(r"\nrunId = (?P<run>\S+)\nbatch = (?P<batch>\d+)")


class _Run:
    """One run of a query."""

    def __init__(
        self, context: ListenerContext, record: dict[str, Any], series: QuerySeries, start_ms: int
    ) -> None:
        self.query_id, self.run_id = str(record["id"]), str(record["runId"])
        self.name = _name(record)
        self.series = series
        self.start_ms = start_ms
        self.location: str | None = record.get("checkpointLocation")
        # A bounded trigger ends by itself; any other query ends only when somebody stops it.
        self.bounded = record.get("bounded")
        self.entity = Entity("query", self.run_id, f"query {self.name!r}", self.name)
        self.group: MetricGroup = context.scopes.query_run(self.name, self.query_id, self.run_id)
        self.spans = QuerySpans(context.traces, context.settings, self.entity, self.group)
        self.tracker = JobStatusTracker(context.emitter, self.entity, self.group)
        self.initialized = False
        self.first_batch: int | None = None
        self.batch: tuple[int, int] | None = None
        self.watch = CheckpointWatch(context.emitter, self.entity, series.sla)
        series.status.follow(self.tracker)
        series.show_run(self.query_id, self.run_id)
        series.metrics.trigger_interval_ms = record.get("triggerIntervalMs")

    def initialize(self, end_ms: int, full_size: int, failure: Failure | None = None) -> None:
        """Report the end of the run's beginning, once."""
        if not self.initialized:
            self.initialized = True
            before = self.first_batch - 1 if self.first_batch else None
            self.spans.initialized(self.start_ms, end_ms, before, full_size, failure)


def _name(record: dict[str, Any]) -> str:
    return cut(str(record.get("name") or record["id"]), LONGEST_NAME)


class QueryListener:
    """Follows the streaming queries of one application."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._series = AllQuerySeries(context)
        self._runs: dict[str, _Run] = {}
        self._last_run: dict[str, _Run] = {}

    def on_started(self, record: dict[str, Any], time_ms: int) -> None:
        """Take QueryStarted; a query whose id is known has been restarted."""
        if str(record["runId"]) in self._runs:
            return
        run = _Run(self._context, record, self._series.of(_name(record)), time_ms)
        before = self._last_run.get(run.query_id)
        self._runs[run.run_id] = self._last_run[run.query_id] = run
        self._context.queries_by_run[run.run_id] = {"query_name": run.name}
        self._begin(run, before, time_ms)
        self._watch(run, before, time_ms)

    def on_sql_execution_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Take the SQL execution of a micro-batch, by which a batch is known before it commits."""
        match = _BATCH.search(record.get("description") or "")
        run = self._runs.get(match.group("run")) if match else None
        if match is None or run is None or run.batch is not None:
            return
        batch = int(match.group("batch"))
        run.batch = (batch, time_ms)
        run.series.checkpoints.metrics.in_progress = 1
        self._resumed(run, batch, time_ms)
        run.watch.start(time_ms)

    def on_progress(self, record: dict[str, Any], time_ms: int) -> None:
        """Take QueryProgress."""
        progress = record["progress"]
        run = self._runs.get(str(progress["runId"]))
        if run is None:
            return
        run.series.metrics.update(progress)
        if not is_checkpoint(progress):
            self._idle(run, time_ms)
            return
        batch = int(progress["batchId"])
        self._resumed(run, batch, time_ms)
        run.batch = None
        owed_ms = run.watch.completed(batch, time_ms, run.group)
        sizes = state_sizes(progress)
        run.initialize(time_ms, sizes[0])
        run.series.checkpoints.completed(run, progress, time_ms, sizes, owed_ms)
        run.tracker.change(JobStatus.RUNNING, time_ms)

    def on_idle(self, record: dict[str, Any], time_ms: int) -> None:
        """Take QueryIdle: the query lives, and has nothing to do."""
        run = self._runs.get(str(record["runId"]))
        if run is not None:
            self._idle(run, time_ms)

    def on_terminated(self, record: dict[str, Any], time_ms: int) -> None:
        """Take QueryTerminated, which says nothing of when."""
        run = self._runs.pop(str(record["runId"]), None)
        if run is None:
            return
        self._context.queries_by_run.pop(run.run_id, None)
        run.series.checkpoints.metrics.in_progress = 0
        if record.get("exception"):
            self._fail(run, parse_failure(record["exception"], record.get("errorClassOnException")), time_ms)
        else:
            self._end(run, JobStatus.FINISHED if run.bounded else JobStatus.CANCELED, time_ms)

    def on_application_end(self, record: dict[str, Any], time_ms: int) -> None:
        """End the queries that the application took with it; Spark reports no end of theirs then."""
        failed = record.get("ExitCode") or record.get("Exception")
        for run_id in list(self._runs):
            run = self._runs.pop(run_id)
            if failed:
                self._fail(run, Failure("the application failed while the query ran"), time_ms)
            else:
                self._end(run, JobStatus.CANCELED, time_ms)

    def on_application_dead(self, record: dict[str, Any], time_ms: int) -> None:
        """Take that an event log without an end is no longer written: its queries run no longer."""
        occasion = f"dead since {time_ms}"
        for run in list(self._runs.values()):
            failure = Failure("the application died while the query ran")
            self._context.failures.report(
                failure, run.entity, run.group, time_ms, is_global=True, occasion=occasion
            )
            run.tracker.change(JobStatus.FAILED, time_ms, occasion, failure)

    def on_application_alive(self, record: dict[str, Any], time_ms: int) -> None:
        """Take that it is written again."""
        for run in self._runs.values():
            run.tracker.status = JobStatus.FAILED
            run.tracker.change(JobStatus.RUNNING, time_ms, f"alive since {time_ms}")

    def tick(self, now_ms: int) -> None:
        """Report checkpoints that are overdue now, and forget what has ended for long enough."""
        gone = self._series.tick(now_ms)
        for query_id, run in list(self._last_run.items()):
            if run.name in gone:
                del self._last_run[query_id]
            else:
                run.watch.tick(now_ms, run.group)

    def place_of_job(self, properties: dict[str, Any]) -> tuple[bool, Place | None]:
        """Tell whether a job works for a query, and below which span its own is; None is below none."""
        run = self._runs.get(str(properties.get("spark.jobGroup.id")))
        if run is None:
            return False, None
        if not self._context.settings.detailed(PHASES_AND_JOBS):
            return True, None
        batch = properties.get("streaming.sql.batchId")
        return True, run.spans.place if batch is None else run.spans.checkpoint_place(int(batch))

    # ------------------------------------------------------------------------------------------------

    def _begin(self, run: _Run, before: _Run | None, time_ms: int) -> None:
        restarts = self._context.restarts
        if before is None and not restarts.known(run.query_id):
            restarts.started(run.query_id)
            run.tracker.change(JobStatus.CREATED, time_ms)
        else:
            if before is not None:
                run.tracker.status, run.tracker.since_ms = before.tracker.status, before.tracker.since_ms
            self._restart(run, time_ms)
        run.series.restarts = restarts.count(run.query_id)

    def _restart(self, run: _Run, time_ms: int) -> None:
        self._context.restarts.restarted(run.query_id)
        run.series.restarts = self._context.restarts.count(run.query_id)
        run.series.checkpoints.metrics.restored_ms = time_ms
        run.tracker.change(JobStatus.RESTARTING, time_ms)

    def _resumed(self, run: _Run, batch: int, time_ms: int) -> None:
        """A first run that does not begin with batch 0 goes on from the checkpoint of an earlier driver."""
        run.first_batch = batch if run.first_batch is None else run.first_batch
        if batch > 0 and run.tracker.status is JobStatus.CREATED:
            self._restart(run, time_ms)

    def _watch(self, run: _Run, before: _Run | None, time_ms: int) -> None:
        if before is not None:
            run.watch, run.watch.entity = before.watch, run.entity
        run.watch.start(time_ms)

    def _idle(self, run: _Run, time_ms: int) -> None:
        run.batch = None
        run.series.checkpoints.metrics.in_progress = 0
        run.initialize(time_ms, -1)
        run.tracker.change(JobStatus.RUNNING, time_ms)
        run.watch.stop()

    def _fail(self, run: _Run, failure: Failure, time_ms: int) -> None:
        if run.batch is not None:
            run.series.checkpoints.failed(run, *run.batch, time_ms, failure)
        self._context.failures.report(
            failure, run.entity, run.group, time_ms, is_global=not thrown_by_task(failure)
        )
        run.tracker.change(JobStatus.FAILED, time_ms, failure=failure)
        run.initialize(time_ms, -1, failure)
        run.spans.ended(run.start_ms, time_ms, JobStatus.FAILED.value, failure)
        self._leave(run, time_ms, on_purpose=False)

    def _end(self, run: _Run, status: JobStatus, time_ms: int) -> None:
        run.tracker.change(status, time_ms)
        if run.batch is not None:
            run.spans.left(*run.batch, time_ms)
        run.spans.ended(run.start_ms, time_ms, status.value, None)
        self._leave(run, time_ms, on_purpose=True)
        run.watch.stop()

    def _leave(self, run: _Run, time_ms: int, on_purpose: bool) -> None:
        if run.series.status.follows(run.tracker):  # or another run goes on under the same name
            self._series.ended(run.name, time_ms, on_purpose)
