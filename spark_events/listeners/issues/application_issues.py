"""Diagnoses of an application as a whole: its driver, its SQL, and what its executors and RDDs show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.called_too_often import CalledTooOften
from spark_events.diagnosis.repeated_work.growing_plans import GrowingPlans
from spark_events.diagnosis.repeated_work.pivot_values import PivotValues
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.held_cores import HeldCores, cores_of_task
from spark_events.diagnosis.stages.tiny_tasks import TinyTasks, TinyTasksOfRun
from spark_events.diagnosis.thresholds import IDLE_CORES
from spark_events.diagnosis.times.driver_time import DriverTime
from spark_events.diagnosis.times.pauses import WorkDone
from spark_events.diagnosis.times.slow_listeners import slow_listeners
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.executors.executors import DRIVER
from spark_events.listeners.executors.memory_limits import MASTER
from spark_events.listeners.issues.executor_issues import ExecutorIssues
from spark_events.listeners.issues.issue_events import GrowingIssues, IssueEvents, Subject
from spark_events.listeners.issues.rdd_issues import RddIssues
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    ApplicationStartRecord,
    EnvironmentUpdateRecord,
    ExecutorAddedRecord,
    ExecutorMetricsRecord,
    ExecutorRemovedRecord,
    ListenerQueuesRecord,
    LogReadRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
    SQLExecutionEndRecord,
    SQLExecutionStartRecord,
    UnpersistRDDRecord,
)

_SHELLS = ("Spark shell", "PySparkShell")
"""What Spark's own prompts call their applications: an event log does not say who types."""
_MOST_FAILURES = "spark.task.maxFailures"
_ARROW, _ARROW_BY_DEFAULT = "spark.sql.execution.arrow.pyspark.enabled", (4, 2)
"""Whether Arrow brings the rows of ``toPandas``, which it does by default since that version."""
_REUSE = "spark.python.worker.reuse"
_OF_FILES = re.compile(r"\bcompression\b")
_LEVELS_OF_ORC = (4, 0)
"""Since that version, ORC knows a level of zstd, and uses that by default."""
_LOCAL_ONCE = re.compile(r"local(?:\[[^,\]]*\])?")
"""Only with a second number in the brackets, such as ``local[2,4]``, a local mode tries a task again."""


class ApplicationIssues(Timeless):
    """Reports each issue of an application when it has become clear, or at its end.

    Attributes:
        executors: finds those that its executors show.
        rdds: finds those that its stages outside SQL show.
        retries_tasks: whether Spark tries a task again that has failed.
        reuses_workers: whether Python workers are kept for the next task.
        of_files: the settings of how files are compressed.
        levels_of_orc: whether ORC compresses at the level that is configured.
    """

    def __init__(self, context: ListenerContext, events: IssueEvents, spark_version: str = "") -> None:
        self._context = context
        self._spark_version = spark_version
        self._events = events
        self._thresholds = context.settings.thresholds
        plans = GrowingPlans()
        self._driver = DriverTime(self._thresholds, plans)
        self._growing = GrowingIssues(events, events.claims)
        self.executors = ExecutorIssues(self._thresholds, self._take)
        self.rdds = RddIssues(self._take, lambda: self._driver.cores)
        self._pivot_values = PivotValues()
        self._recomputation = Recomputation(growing=plans)
        self._called_too_often = CalledTooOften()
        self._tiny_tasks = TinyTasksOfRun()
        self._held_cores = HeldCores()
        self._begun_ms: int | None = None
        self._is_typed = False
        self.retries_tasks = self.reuses_workers = True
        self.of_files: dict[str, str] = {}
        self.levels_of_orc = False

    @property
    def cores(self) -> int:
        """The cores of all executors that live."""
        return self._driver.cores

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.APPLICATION_START: self.on_application_start,
            spark_records.APPLICATION_END: early(self.on_application_end),
            spark_records.ENVIRONMENT_UPDATE: self.on_environment,
            spark_records.EXECUTOR_ADDED: self.on_executor_added,
            spark_records.EXECUTOR_REMOVED: self.on_executor_removed,
            spark_records.EXECUTOR_METRICS: self.on_executor_metrics,
            spark_records.UNPERSIST_RDD: self.on_unpersist,
            spark_records.LISTENER_QUEUES: self.on_listener_queues,
            spark_records.SQL_EXECUTION_START: self.on_execution_start,
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.QUERY_STARTED: self.on_query_started,
            spark_records.QUERY_TERMINATED: early(self.on_query_terminated),
            spark_records.LOG_READ: self.on_log_read,
        }

    def on_application_start(self, record: ApplicationStartRecord, time_ms: int) -> None:
        """Handle ApplicationStart."""
        self._begun_ms = time_ms
        self._is_typed = bool(record.get(spark_records.INTERACTIVE)) or record.get("App Name") in _SHELLS

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate; executors have the memory of the first."""
        properties = record.get("Spark Properties") or {}
        if not self.executors.knows_memory and MASTER in properties:
            self.retries_tasks = _retries_tasks(str(properties[MASTER]), properties.get(_MOST_FAILURES))
            self._held_cores = HeldCores(cores_of_task(properties))
            self.of_files = {key: str(value) for key, value in properties.items() if _OF_FILES.search(key)}
            self.levels_of_orc = _since(self._spark_version, _LEVELS_OF_ORC)
            self.reuses_workers = str(properties.get(_REUSE)).lower() != "false"
            arrow = by_arrow(properties)
            self._driver.results.by_arrow = (
                _since(self._spark_version, _ARROW_BY_DEFAULT) if arrow is None else arrow
            )
            self.executors.configured({key: str(value) for key, value in properties.items()})

    def on_executor_added(self, record: ExecutorAddedRecord, time_ms: int) -> None:
        """Handle ExecutorAdded."""
        executor, info = str(record["Executor ID"]), record.get("Executor Info") or {}
        cores = spark_records.total_cores(info)
        if executor == DRIVER and self._begun_ms is not None:
            self._driver.spark_started(max(0, time_ms - self._begun_ms))
        if time_ms:  # in a damaged log, no record may have had a time so far: nothing began in 1970
            self._driver.executor_added(executor, cores, time_ms)
        profile = int(info.get("Resource Profile Id") or 0)
        self.executors.added(executor, str(info.get("Host") or ""), cores, profile, time_ms)

    def on_executor_removed(self, record: ExecutorRemovedRecord, time_ms: int) -> None:
        """Handle ExecutorRemoved."""
        self.executors.removed(record, time_ms)
        self._driver.executor_removed(str(record["Executor ID"]), time_ms)

    def on_executor_metrics(self, record: ExecutorMetricsRecord, time_ms: int) -> None:
        """Handle what executors have measured at the ends of tasks."""
        self.executors.measured(record)

    def on_query_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted."""
        self._driver.query_started(str(record["runId"]), time_ms)

    def on_query_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        """Handle QueryTerminated."""
        self._driver.query_ended(str(record["runId"]), time_ms)

    def stage_submitted(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self.executors.stage_begun(key, time_ms)
        self._driver.stage_submitted(key, time_ms)

    def stage_completed(self, key: tuple[int, int], work: WorkDone, time_ms: int) -> None:
        """Called when a stage attempt has ended; see ``DriverTime``."""
        self.executors.stage_ended(key, time_ms)
        self._driver.stage_completed(key, work, time_ms)
        self._take_driver_time(time_ms)

    def of_sql(self, stage: EndedStage, time_ms: int) -> None:
        """Called with a stage of SQL that has ended; see ``HeldCores.take``."""
        if (held := self._held_cores.take(stage)) is not None:
            self._take(held, time_ms, (stage.measured.first_ms, stage.measured.last_ms))

    def has_tiny_tasks(self, place: str, tiny: TinyTasks, lost_in: tuple[int, int], time_ms: int) -> None:
        """Called with a stage that has ended and has far too many tasks.

        Args:
            place: in the user's code, or the stage's name.
            tiny: its tasks.
            lost_in: when they ran, from and until, in ms since the epoch.
            time_ms: now, in ms since the epoch.
        """
        self._take(self._tiny_tasks.take(place, tiny, self.cores), time_ms, lost_in)

    def on_unpersist(self, record: UnpersistRDDRecord, time_ms: int) -> None:
        """Handle UnpersistRDD."""
        self.rdds.unpersisted(int(record["RDD ID"]))
        self.executors.unpersisted(int(record["RDD ID"]))
        self._recomputation.unpersisted(int(record["RDD ID"]))

    def on_listener_queues(self, record: ListenerQueuesRecord, time_ms: int) -> None:
        """Handle what Spark's listeners have taken so far."""
        queues = record.get("Dropped") or {}, record.get("Waiting") or {}, record.get("Listeners") or {}
        if (slow := slow_listeners(*queues, self._lasted_ms(time_ms))) is not None:
            self._take(slow, time_ms)

    def on_execution_start(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        """Handle SQLExecutionStart."""
        self._driver.executions(int(record["executionId"]) in self._context.run.executions, time_ms)

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd."""
        self._driver.executions(-(int(record["executionId"]) in self._context.run.executions), time_ms)

    def execution_ended(self, ended: EndedExecution, place: str, time_ms: int) -> None:
        """Called with an SQL execution that has ended, and the place in the code that it was for."""
        self._driver.execution_planned(ended)
        self.rdds.execution_ended(ended, time_ms)
        pivot = self._pivot_values.take(ended, place)
        if pivot is not None:
            self._take(pivot, time_ms, (ended.begun_ms, ended.ended_ms))
            return
        for issue in self._called_too_often.take(ended, place):
            self._take(issue, time_ms, (ended.begun_ms, ended.ended_ms))
        if self._recomputation.take(ended, place):
            for issue in self._recomputation.issues():
                self._take(issue, time_ms, (ended.begun_ms, ended.ended_ms))

    def driver_time_told(self, issue: Issue) -> None:
        """Called before the end of an SQL execution with an issue that tells for what its driver worked."""
        self._driver.told_elsewhere(issue.driver_ms, *issue.driver_span_ms)

    def cache_may_be_read(self) -> None:
        """Called when something may have read a cache, and nobody knows which."""
        self._recomputation.read_elsewhere()

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd."""
        self._driver.end(time_ms)
        self._take_driver_time(time_ms)
        if self._context.run.executions or self._context.run.jobs:  # what they read is not known
            self._recomputation.read_elsewhere()
        at_end = [self.executors.lost(), *self.rdds.end(), *self._recomputation.never_read()]
        if self._lasted_ms(time_ms) >= self._thresholds.min_time_ms:
            at_end.append(self.executors.unused_memory())
        for issue in at_end:
            if issue is not None:
                self._take(issue, time_ms)
        self._growing.close(time_ms)

    def on_log_read(self, record: LogReadRecord, time_ms: int) -> None:
        """Handle LogRead."""
        self._take_driver_time(time_ms)
        self._growing.tell(time_ms)

    def _take_driver_time(self, time_ms: int) -> None:
        for issue in self._driver.issues(time_ms):
            # Who types a program reads what it shows, and thinks: nothing is lost by that.
            if not (self._is_typed and issue.kind == IDLE_CORES):
                self._take(issue, time_ms)

    def _take(
        self,
        issue: Issue,
        time_ms: int,
        lost_in: tuple[int, int] | None = None,
        of: tuple[str, int] | None = None,
    ) -> None:
        """Take what an issue has cost so far, of the whole application or another whole, in ms.

        See ``GrowingIssues.take``.
        """
        whole, whole_ms = of or ("the application so far", self._lasted_ms(time_ms))
        name = self._context.emitter.application.name
        subject = Subject(
            Entity("application", "", f"application {name!r}"),
            self._context.scopes.application_run(),
            whole,
            whole_ms,
            {},
        )
        self._growing.take(issue, subject, time_ms, lost_in)

    def _lasted_ms(self, time_ms: int) -> int:
        return max(0, time_ms - self._begun_ms) if self._begun_ms is not None else 0


def by_arrow(properties: Mapping[str, Any]) -> bool | None:
    """Return whether Arrow is to bring rows to Python, by settings; None if they do not say it."""
    enabled = properties.get(_ARROW)
    return None if enabled is None else str(enabled).lower() == "true"


def _since(spark_version: str, since: tuple[int, int]) -> bool:
    match = re.match(r"(\d+)\.(\d+)", spark_version, re.ASCII)
    return match is not None and (int(match[1]), int(match[2])) >= since


def _retries_tasks(master: str, most_failures: object) -> bool:
    return str(most_failures) != "1" and not _LOCAL_ONCE.fullmatch(master)
