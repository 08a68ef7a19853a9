"""Hands each of Spark's records to the listeners that know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from spark_events.api import ApplicationInfo, FailureEnricher, JobStatus
from spark_events.listeners import spark_records
from spark_events.listeners.all_subtasks import AllSubtasks
from spark_events.listeners.application import ApplicationListener, application_of, register_interactive
from spark_events.listeners.application_timeline import TIMELINE_RECORDS, ApplicationTimeline
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.enrichers import Enrichers
from spark_events.listeners.executors import ExecutorListener
from spark_events.listeners.failure_events import FailureEvents
from spark_events.listeners.heartbeat import HeartbeatListener
from spark_events.listeners.issue_events import IssueEvents
from spark_events.listeners.issues import IssueListener
from spark_events.listeners.job import SparkJobListener
from spark_events.listeners.query import QueryListener
from spark_events.listeners.receiver_series import ReceiverListener
from spark_events.listeners.regressions import RegressionListener
from spark_events.listeners.scopes import Scopes
from spark_events.listeners.settings import AND_STAGES, TASKS, ListenerSettings
from spark_events.listeners.sql_execution import SqlExecutionListener
from spark_events.listeners.stage import StageListener
from spark_events.listeners.table_transaction import TableTransactionListener
from spark_events.listeners.task_reports import TaskReportListener
from spark_events.listeners.timestamps import record_time_ms
from spark_events.listeners.traces import Place, Traces
from spark_events.listeners.work import ApplicationWork
from spark_events.runtime.kinds import METRICS, SPANS
from spark_events.runtime.registry import Registry
from spark_events.task.driver_link import DriverLink

Handler = Callable[[dict[str, Any], int], None]


class ExtensionHandlers(Protocol):
    """Additional handlers of records, besides the listeners."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers, by name of the record."""

    def tick(self, now_ms: int) -> None:
        """Called as time passes."""


Extension = Callable[[ListenerContext, Registry, str], ExtensionHandlers]
"""Makes them from what the listeners share, the registry, and Spark's version."""


class SparkListeners:
    """The translator from Spark's records to events, whatever source they come from.

    Not safe to use from several threads; a source calls it from only one.

    Args:
        registry: where events, spans and metrics go.
        settings: the listeners' settings.
        enrichers: label failures.
        spark_version: of the application; an event log contains its own.
        extension: adds handlers of records, each called before the existing ones; None adds none.

    Attributes:
        stumbled: how many records could not be handled; each kind of error is logged once.
    """

    def __init__(
        self,
        registry: Registry,
        settings: ListenerSettings,
        enrichers: Sequence[FailureEnricher],
        spark_version: str = "",
        extension: Extension | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._enrichers = Enrichers(enrichers, registry.log, not registry.shares_threads)
        self._spark_version = spark_version
        self._extension = extension
        self._handlers: Mapping[str, Sequence[Handler]] = {}
        self._application: ApplicationListener | None = None
        self._tickers: Sequence[Callable[[int], None]] = ()
        self._clock_ms = 0
        self.stumbled = 0

    @property
    def wants_sums(self) -> bool:
        """Whether the sums of the tasks' metrics are needed, which spans and metrics contain."""
        return self._registry.has_reporters(SPANS) or self._registry.has_reporters(METRICS)

    @property
    def statistics_from_ms(self) -> int:
        """How long a stage lasts at least whose tasks' statistics are needed, in ms.

        A shorter one cannot have an issue; but later runs are compared with all that a run has done.
        """
        thresholds = self._settings.thresholds
        return 0 if thresholds.compares_runs else thresholds.min_time_ms

    def task_link(self, application_start: Mapping[str, Any]) -> DriverLink:
        """Return what workers have to know to compute the ids of spans, from the record of the start."""
        application = application_of(application_start)
        settings = self._settings
        link = DriverLink(
            accumulator=-1,
            application=(application.id, application.attempt_id),
            sampling_ratio=settings.sampling_ratio,
            stages_of_queries=settings.detailed(AND_STAGES),
            task_spans=settings.trace_detail == TASKS,
            local_variables=settings.failure_locals,
        )
        if not self._registry.has_reporters(SPANS):
            return link
        traces = Traces(Emitter(self._registry.root, application), settings)
        return replace(
            link,
            trace_id=traces.application.trace_id,
            span_id=traces.application.span_id,
            sampled=traces.is_sampled(traces.application.trace_id),
        )

    @property
    def clock_ms(self) -> int:
        """The latest time in any record so far, in ms since the epoch."""
        return self._clock_ms

    @property
    def ended(self) -> bool:
        """Whether the application has ended."""
        tracker = self._application.tracker if self._application else None
        return bool(tracker and tracker.status and tracker.status.terminal)

    def on_record(self, record: dict[str, Any], received_ms: int | None = None) -> None:
        """Handle one record; records must come in the order in which Spark posted them.

        Args:
            record: as ``JsonProtocol`` writes it.
            received_ms: when it arrived, in ms since the epoch, for a record without a time of its own; if
                it is None, such a record gets the time of the previous one.
        """
        name = str(record.get("Event"))
        if name == spark_records.LOG_START:
            self._spark_version = str(record.get("Spark Version") or self._spark_version)
        if name == spark_records.APPLICATION_START:
            if self._application is not None:
                return
            self._begin(record)
        if handlers := self._handlers.get(name):
            time_ms = self._time_of(name, record) or received_ms or self._clock_ms
            self._clock_ms = max(self._clock_ms, time_ms)
            stumbled = self.stumbled
            for handler in handlers:
                try:
                    handler(record, time_ms)
                except Exception as error:
                    self._stumble(name, error)
            self.stumbled = min(self.stumbled, stumbled + 1)  # a record counts once

    def close(self) -> None:
        """Release what the listeners hold besides memory; no record may come afterwards."""
        self._enrichers.close()

    def tick(self, now_ms: int) -> None:
        """Called as time passes: some events are due because something did not happen."""
        if self.ended:
            return
        for tick in self._tickers:
            try:
                tick(now_ms)
            except Exception as error:
                self._stumble("tick", error)

    def _time_of(self, name: str, record: dict[str, Any]) -> int | None:
        try:
            return record_time_ms(record)
        except Exception as error:
            self._stumble(name, error)
            return None

    def _stumble(self, name: str, error: Exception) -> None:
        self.stumbled += 1
        kind_of_error = ("listener", name, type(error).__name__)
        self._registry.log.error(kind_of_error, f"skipped a {name} record: {error!r}", error)

    def _begin(self, record: dict[str, Any]) -> None:
        context = self._context(application_of(record))
        register_interactive(context, record)
        issues = IssueEvents(context)
        queries = QueryListener(context, issues)
        self._tickers = (queries.tick,)
        self._handlers = {
            spark_records.APPLICATION_END: [queries.on_application_end],
            spark_records.ENVIRONMENT_UPDATE: [queries.idle_interval.on_environment],
            spark_records.SQL_EXECUTION_START: [queries.on_sql_execution_start],
            spark_records.QUERY_STARTED: [queries.on_started],
            spark_records.QUERY_NOT_STARTED: [queries.on_not_started],
            spark_records.QUERY_PROGRESS: [queries.on_progress],
            spark_records.QUERY_IDLE: [queries.on_idle],
            spark_records.QUERY_TERMINATED: [queries.on_terminated],
        }
        if record.get(spark_records.QUERIES_ONLY):
            heartbeat = HeartbeatListener(context, lambda: 0, queries.running)
            self._handlers = {**self._handlers, spark_records.HEARTBEAT: [heartbeat.on_heartbeat]}
        else:
            self._begin_all(context, queries, issues)
        if self._extension is not None:
            self._extend(self._extension(context, self._registry, self._spark_version))

    def _extend(self, extension: ExtensionHandlers) -> None:
        handlers = dict(self._handlers)
        for name, handler in extension.handlers.items():
            handlers[name] = (handler, *handlers.get(name, ()))
        self._handlers = handlers
        self._tickers = (*self._tickers, extension.tick)

    def _begin_all(self, context: ListenerContext, queries: QueryListener, issue_events: IssueEvents) -> None:
        """Add the listeners of everything else in an application to the query listener."""
        context.work.register(context.scopes.application())
        spans_wanted = self._registry.has_reporters(SPANS)
        timeline = ApplicationTimeline(bounded=True) if spans_wanted else None
        self._application = ApplicationListener(context, self._spark_version, timeline)
        executions = SqlExecutionListener(context)

        def place_of_job(properties: dict[str, Any]) -> Place | None:
            if not spans_wanted:
                return None
            of_query, place = queries.place_of_job(properties)
            return place if of_query else executions.place_of_job(properties) or context.traces.application

        jobs = SparkJobListener(context, place_of_job)
        stages, executors = (
            StageListener(context, jobs),
            ExecutorListener(context, self._registry.has_reporters(METRICS)),
        )

        def place_of_tasks(stage: int, properties: Mapping[str, str | None]) -> Place:
            run_id, batch = str(properties.get("spark.jobGroup.id")), properties.get("streaming.sql.batchId")
            of_batch = queries.place_of_batch(run_id, batch)
            return stages.place_of(stage) or of_batch or context.traces.application

        tasks = TaskReportListener(context, place_of_tasks)
        heartbeat = HeartbeatListener(context, lambda: jobs.running, queries.running)
        issues, tables = IssueListener(context, issue_events), TableTransactionListener(context)
        of_application = issues.application
        counters = tasks.counters
        self._tickers = (queries.tick, jobs.tick, stages.tick, executors.tick, counters.tick)
        ends = (
            tasks.on_application_end,
            counters.on_application_end,
            of_application.on_application_end,
            executors.on_application_end,
            stages.on_application_end,
            jobs.on_application_end,
            queries.on_application_end,
            executions.on_application_end,
            self._application.on_end,
        )
        started, terminated = spark_records.QUERY_STARTED, spark_records.QUERY_TERMINATED
        self._handlers = {
            **self._handlers,
            spark_records.APPLICATION_START: [
                self._application.on_start,
                of_application.on_application_start,
            ],
            spark_records.APPLICATION_END: ends,
            spark_records.APPLICATION_DEAD: [queries.on_application_dead, self._application.on_dead],
            spark_records.APPLICATION_ALIVE: [self._application.on_alive, queries.on_application_alive],
            started: [
                *self._handlers[started],
                issues.on_query_started,
                of_application.on_query_started,
                counters.on_query_started,
                tasks.on_query_started,
            ],
            terminated: [
                counters.on_query_terminated,
                issues.on_query_terminated,
                of_application.on_query_terminated,
                *self._handlers[terminated],
            ],
            spark_records.JOB_START: [issues.on_job_start, jobs.on_start, tasks.on_job_start],
            spark_records.JOB_END: [issues.on_job_end, jobs.on_end, stages.on_job_end, tasks.on_job_end],
            spark_records.STAGE_SUBMITTED: [stages.on_submitted, issues.on_stage_submitted],
            spark_records.STAGE_COMPLETED: [stages.on_completed, issues.on_stage_completed],
            spark_records.STAGE_TASKS: [stages.on_tasks, issues.on_stage_tasks],
            spark_records.SQL_EXECUTION_START: [
                queries.on_sql_execution_start,
                executions.on_start,
                issues.on_execution_start,
            ],
            spark_records.SQL_EXECUTION_END: [
                executions.on_end,
                issues.on_execution_end,
                context.work.on_execution_end,
            ],
            spark_records.TASK_REPORT: [tasks.on_report],
            spark_records.HEARTBEAT: [heartbeat.on_heartbeat],
            spark_records.TABLE_TRANSITION: [tables.on_transition],
            spark_records.RESOURCE_PROFILE_ADDED: [executors.on_profile_added],
            spark_records.EXECUTOR_ADDED: [executors.on_added, of_application.on_executor_added],
            spark_records.EXECUTOR_REMOVED: [executors.on_removed, of_application.on_executor_removed],
            spark_records.EXECUTOR_METRICS: [executors.on_metrics, of_application.on_executor_metrics],
            spark_records.EXECUTOR_SOURCES: [executors.on_sources],
            spark_records.EXECUTOR_TASKS: [executors.on_tasks],
            spark_records.ENVIRONMENT_UPDATE: [
                *self._handlers[spark_records.ENVIRONMENT_UPDATE],
                executors.on_environment,
                of_application.on_environment,
            ],
        }
        if timeline is not None:
            self._follow(timeline)
        if context.settings.thresholds.compares_runs:
            self._add_regressions(
                RegressionListener(context, issue_events, lambda: of_application.cores, self._spark_version)
            )
        if context.settings.receiver_names:
            receiver = ReceiverListener(context)
            self._handlers = {**self._handlers, spark_records.SPARK_STATUS: [receiver.on_status]}
            self._tickers = (*self._tickers, receiver.tick)

    def _follow(self, timeline: ApplicationTimeline) -> None:
        """Hand a timeline its records, before the listeners that ask it."""

        def take(record: dict[str, Any], time_ms: int) -> None:
            timeline.take(record)

        for name in TIMELINE_RECORDS:
            self._handlers = {**self._handlers, name: [take, *self._handlers.get(name, ())]}

    def _add_regressions(self, regressions: RegressionListener) -> None:
        """Add the comparison with earlier runs; its last word comes before that of the application."""
        application, before_end = self._application, self._handlers[spark_records.APPLICATION_END]
        assert application is not None

        def keep(record: dict[str, Any], time_ms: int) -> None:
            if application.tracker.status is JobStatus.FINISHED:
                regressions.keep()

        handlers: dict[str, Sequence[Handler]] = {
            name: [*self._handlers.get(name, ()), handler]
            for name, handler in {
                spark_records.APPLICATION_START: regressions.on_application_start,
                spark_records.ENVIRONMENT_UPDATE: regressions.on_environment,
                spark_records.QUERY_STARTED: regressions.on_query_started,
                spark_records.SQL_EXECUTION_START: regressions.on_execution_start,
                spark_records.SQL_EXECUTION_END: regressions.on_execution_end,
                spark_records.JOB_START: regressions.on_job_start,
                spark_records.JOB_END: regressions.on_job_end,
                spark_records.STAGE_TASKS: regressions.on_stage_tasks,
                spark_records.STAGE_COMPLETED: regressions.on_stage_completed,
            }.items()
        }
        handlers[spark_records.APPLICATION_END] = [regressions.on_application_end, *before_end, keep]
        self._handlers = {**self._handlers, **handlers}
        self._tickers = (*self._tickers, regressions.tick)

    def _context(self, application: ApplicationInfo) -> ListenerContext:
        scopes = Scopes(self._registry.root, application, self._settings.scopes)
        emitter = Emitter(scopes.events(), application)
        return ListenerContext(
            emitter=emitter,
            failures=FailureEvents(emitter, self._enrichers),
            scopes=scopes,
            settings=self._settings,
            traces=Traces(emitter, self._settings),
            work=ApplicationWork(),
            all_subtasks=AllSubtasks(),
            queries_by_run={},
        )
