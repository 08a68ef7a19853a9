"""One streaming query over all its runs: what happens in a run, and what outlives it."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import AttributeValue, Failure, JobStatus
from spark_events.api.toolkit.formatting import duration
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.failures.failures import thrown_by_task
from spark_events.listeners.issues.issue_events import IssueEvents
from spark_events.listeners.queries.batch_durations import BatchDurations
from spark_events.listeners.queries.checkpoint import SlaMetrics, input_rows, is_checkpoint, state_sizes
from spark_events.listeners.queries.idle_interval import IdleInterval
from spark_events.listeners.queries.query_metrics import QuerySeries
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.queries.restart_counts import RestartCounts
from spark_events.listeners.queries.watches import CheckpointWatch, SourceWatch
from spark_events.listeners.record_types import QueryStartedRecord, StreamingQueryProgress
from spark_events.listeners.spark_records import RESUMED_AFTER, parse_timestamp_ms
from spark_events.runtime.log_once import logger

EndAttributes = Mapping[str, AttributeValue | None] | None
"""What is known of the end of the application with which a run ends; None if it ends by itself."""


class StreamingQuery:
    """A query, identified by its id. It owns its watches, and counts its restarts.

    With another checkpoint, a query has another id and the same name. By the name, it is the same query, so
    its clock goes on.

    Each method gets the run that a record belongs to: a run that ends late may not be the newest.
    """

    def __init__(
        self,
        context: ListenerContext,
        restarts: RestartCounts,
        series: QuerySeries,
        issues: IssueEvents,
        idle_interval: IdleInterval,
    ) -> None:
        self._context = context
        self._restarts = restarts
        self._newest: QueryRun | None = None
        self.series = series
        self._idle_interval = idle_interval
        self._watch = self._new_watch(None)
        self._sources = SourceWatch(context.emitter, context.settings.source_idle_ms_for(series.name))
        self._durations = BatchDurations(context, issues)

    @property
    def name(self) -> str:
        """The name of the newest run."""
        return self._newest.name if self._newest is not None else ""

    def begin_run(
        self,
        started: QueryStartedRecord,
        series: QuerySeries,
        time_ms: int,
        last: StreamingQuery | None = None,
    ) -> QueryRun:
        """Begin a run from its QueryStarted: CREATED, or RESTARTING if the query ran before.

        One with a continuous trigger is RUNNING at once, and owes nothing: Spark reports no progress of it.

        Args:
            started: its record.
            series: those of its name.
            time_ms: when it started, in ms since the epoch.
            last: the query that had this name last, if none has it now: this one continues it.
        """
        before = self._newest
        self._take_watch(series, last, time_ms)
        self._newest = run = QueryRun(self._context, started, time_ms, before)
        series.show(run)
        # Asked of the driver: a query that was found running may have been restarted long ago.
        resumes = started.get(RESUMED_AFTER) is not None and not run.was_running
        if before is None and not resumes and not self._restarts.known(run.query_id):
            self._restarts.started(run.query_id, run.name)
            run.tracker.change(JobStatus.CREATED, time_ms)
        else:
            self._restart(run, time_ms)
        series.show_restarts(self._restarts.count(run.name))
        if before is None:
            self._warn_of_rare_triggers(run)
        if run.continuous:
            run.initialize(time_ms, -1)
            run.tracker.change(JobStatus.RUNNING, time_ms)
            self._watch.stop(run, time_ms)
        else:
            self._watch.start(time_ms)
            self._sources.start(time_ms)
        return run

    def begin_batch(self, run: QueryRun, batch: int, time_ms: int) -> None:
        """Called when a micro-batch has begun; a call for the running batch changes nothing.

        Nor does one for a batch that has completed: code in ``foreachBatch`` may have left a thread.
        """
        if run.batch is not None or batch <= run.last_batch:
            return
        run.batch_began(batch, time_ms)
        self.series.batch_began()
        self._restart_if_resumed(run, batch, time_ms)
        self._watch.begun(run, time_ms)
        self._sources.begun(run, time_ms)
        self._durations.begun(batch, time_ms, self._watch.due_ms)

    def take_progress(self, run: QueryRun, progress: StreamingQueryProgress, time_ms: int) -> None:
        """Handle Spark's progress of one trigger, which is a checkpoint if there was something to do."""
        self.series.progressed(progress, time_ms)
        if not is_checkpoint(progress):
            self.rest(run, time_ms)
            return
        batch, trigger_ms = int(progress["batchId"]), parse_timestamp_ms(progress["timestamp"])
        self._restart_if_resumed(run, batch, time_ms)
        run.batch_committed(batch, time_ms)
        self._durations.completed(run, progress, time_ms)
        owed_ms = self._watch.completed(run, batch, trigger_ms, time_ms)
        self._sources.completed(run, batch, input_rows(progress), trigger_ms, time_ms)
        sizes = state_sizes(progress)
        run.initialize(time_ms, sizes[0])
        self.series.checkpoints.completed(run, progress, time_ms, sizes, owed_ms)
        run.tracker.change(JobStatus.RUNNING, time_ms)

    def rest(self, run: QueryRun, time_ms: int) -> None:
        """Called when the run is alive but has nothing to do."""
        run.batch = None
        self._durations.ended()
        self.series.rested()
        run.initialize(time_ms, -1)
        run.tracker.change(JobStatus.RUNNING, time_ms)
        self._watch.stop(run, time_ms)
        self._sources.rest(run, time_ms)

    def fail(
        self,
        run: QueryRun,
        failure: Failure,
        time_ms: int,
        attributes: EndAttributes = None,
        runs_on: bool = False,
    ) -> None:
        """End a run with a failure; the query still owes its next checkpoint.

        If Spark itself runs on, as after an exception of the program, the micro-batch may still commit.
        """
        self._durations.failed(run, time_ms)
        self._watch.down(run, time_ms)
        self._sources.ended(run, time_ms)
        if run.batch is not None and not runs_on:
            self.series.checkpoints.failed(run, *run.batch, time_ms, failure)
        else:
            run.end_batch_early(time_ms, None)
        self._context.failures.report(
            failure, run.entity, run.group, time_ms, is_global=not thrown_by_task(failure)
        )
        run.tracker.change(JobStatus.FAILED, time_ms, failure=failure, attributes=attributes)
        run.initialize(time_ms, -1, failure)
        run.end(JobStatus.FAILED, time_ms, failure)

    def end(self, run: QueryRun, status: JobStatus, time_ms: int, attributes: EndAttributes = None) -> None:
        """End a run on purpose: FINISHED or CANCELED."""
        self._durations.ended()
        owed = self._watch.owed_at_stop(time_ms)
        run.tracker.change(status, time_ms, attributes={**owed, **(attributes or {})})
        run.end_batch_early(time_ms, None)
        run.end(status, time_ms)
        self._watch.stop(run, time_ms)
        self._sources.ended(run, time_ms)

    def tick(self, now_ms: int) -> None:
        """Report a checkpoint that is now overdue, or will be, and data that does not come."""
        if self._newest is not None:
            self._durations.tick(self._newest, now_ms)
            self._watch.tick(self._newest, now_ms)
            self._sources.tick(self._newest, now_ms)

    def leave_name(self) -> None:
        """Called when it does not run, and another query of its name does: it owes nothing by itself."""
        self._watch.leave()

    def _take_watch(self, series: QuerySeries, last: StreamingQuery | None, time_ms: int) -> None:
        """Let the clock of a name go on in the query that has the name now."""
        self._check(time_ms)
        if series is not self.series:  # which is another name's
            self._watch.leave()
            self.series = series
        if last is not None:
            self._watch = last._hand_over_watch(time_ms)
        elif self._watch.sla is not series.sla:
            self._watch = self._new_watch(series.sla)

    def _warn_of_rare_triggers(self, run: QueryRun) -> None:
        """Warn of an SLA that triggers cannot keep: whether there is data is only known when there is one."""
        sla, interval_ms = self._watch.sla, run.trigger_interval_ms
        if sla is not None and interval_ms is not None and interval_ms >= sla.sla_ms:
            logger.warning(
                "%s has a trigger each %s and an SLA of %s: pauses between triggers may count as times "
                "without data; give it a longer SLA (spark.events.checkpoint.query-sla.%s), or more triggers",
                run.entity.title,
                duration(interval_ms),
                duration(sla.sla_ms),
                run.name or "<query>",
            )

    def _hand_over_watch(self, time_ms: int) -> CheckpointWatch:
        self._check(time_ms)
        watch, self._watch = self._watch, self._new_watch(None)
        return watch

    def _check(self, time_ms: int) -> None:
        """Report what was overdue by then, as of the run before."""
        if self._newest is not None:
            self._watch.check(self._newest, time_ms)

    def _new_watch(self, sla: SlaMetrics | None) -> CheckpointWatch:
        return CheckpointWatch(self._context.emitter, sla, self._idle_interval)

    def _restart_if_resumed(self, run: QueryRun, batch: int, time_ms: int) -> None:
        """Keep the run's first batch; if it is not 0, the run resumes an earlier driver's checkpoint."""
        if run.was_running:
            return
        run.first_batch = batch if run.first_batch is None else run.first_batch
        if batch > 0 and run.tracker.status is JobStatus.CREATED:
            self._restart(run, time_ms)

    def _restart(self, run: QueryRun, time_ms: int) -> None:
        self._restarts.restarted(run.query_id, run.name)
        self.series.show_restarts(self._restarts.count(run.name))
        self.series.restored(time_ms)
        run.tracker.change(JobStatus.RESTARTING, time_ms)
