"""Diagnoses of an application as a whole: slow hosts, idle cores, memory that nobody uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from spark_events.diagnosis.executors.cached_apart import CachedApart, LivingExecutor, locality_wait
from spark_events.diagnosis.executors.executor_churn import ExecutorChurn
from spark_events.diagnosis.executors.slow_hosts import SlowHosts
from spark_events.diagnosis.executors.unused_memory import HeapPeaks
from spark_events.diagnosis.executors.warm_executors import WarmExecutors
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.pivot_values import PivotValues
from spark_events.diagnosis.plans.recomputation import Recomputation
from spark_events.diagnosis.rdds.computed_again import RddsComputedAgain
from spark_events.diagnosis.rdds.evicted_rdds import EvictedRdds
from spark_events.diagnosis.rdds.fitted_again import FittedAgain
from spark_events.diagnosis.rdds.listed_again import ListedAgain, Listing
from spark_events.diagnosis.rdds.one_by_one import Fetch, OneByOne
from spark_events.diagnosis.rdds.repeated_stages import WorkMadeAgain
from spark_events.diagnosis.rdds.schema_reads import SchemaRead, SchemaReads
from spark_events.diagnosis.rdds.sorted_again import SortedAgain
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.held_cores import HeldCores, cores_of_task
from spark_events.diagnosis.stages.tiny_tasks import TinyTasks, TinyTasksOfRun
from spark_events.diagnosis.times.driver_time import DriverTime, WorkDone
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.executors.executor_ends import EXPECTED, exit_code, reason_class
from spark_events.listeners.executors.executors import DRIVER
from spark_events.listeners.executors.memory_limits import MASTER, memory_limits
from spark_events.listeners.issues.issue_events import GrowingIssues, IssueEvents, Subject
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    ApplicationStartRecord,
    EnvironmentUpdateRecord,
    ExecutorAddedRecord,
    ExecutorMetricsRecord,
    ExecutorRemovedRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
    SQLExecutionEndRecord,
    SQLExecutionStartRecord,
    UnpersistRDDRecord,
)

_HEAP = "JVMHeapMemory"
_MOST_EXECUTORS = 10_000
_MOST_FAILURES = "spark.task.maxFailures"
_ARROW, _ARROW_BY_DEFAULT = "spark.sql.execution.arrow.pyspark.enabled", (4, 2)
"""Whether Arrow brings the rows of ``toPandas``, which it does by default since that version."""
_REUSE = "spark.python.worker.reuse"
_LOCAL_ONCE = re.compile(r"local(?:\[[^,\]]*\])?")
"""Only with a second number in the brackets, such as ``local[2,4]``, a local mode tries a task again."""


class ApplicationIssues(Timeless):
    """Reports each issue of an application when it has become clear, or at its end.

    Attributes:
        retries_tasks: whether Spark tries a task again that has failed.
    """

    def __init__(self, context: ListenerContext, events: IssueEvents, spark_version: str = "") -> None:
        self._context = context
        self._spark_version = spark_version
        self._events = events
        self._thresholds = context.settings.thresholds
        self._driver = DriverTime(self._thresholds)
        self._slow_hosts = SlowHosts(self._thresholds)
        self._growing = GrowingIssues(events, events.claims)
        self._warm = WarmExecutors()
        self._pivot_values = PivotValues()
        self._recomputation = Recomputation()
        self._one_by_one = OneByOne()
        self._schema_reads = SchemaReads()
        self._listed_again = ListedAgain()
        self._evicted = EvictedRdds()
        self._sorted_again = SortedAgain()
        self._computed_again = RddsComputedAgain()
        self._churn = ExecutorChurn()
        self._made_again = WorkMadeAgain()
        self._tiny_tasks = TinyTasksOfRun()
        self._held_cores = HeldCores()
        self._fitted_again = FittedAgain()
        self._begun_ms: int | None = None
        self._heap_peaks = HeapPeaks()
        self._cached_apart = CachedApart()
        self._executors: dict[str, LivingExecutor] = {}
        self._locality_wait = ""
        self.retries_tasks = self.reuses_workers = True

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
            spark_records.SQL_EXECUTION_START: self.on_execution_start,
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.QUERY_STARTED: self.on_query_started,
            spark_records.QUERY_TERMINATED: early(self.on_query_terminated),
        }

    def on_application_start(self, record: ApplicationStartRecord, time_ms: int) -> None:
        """Handle ApplicationStart."""
        self._begun_ms = time_ms

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate; executors have the memory of the first."""
        properties = record.get("Spark Properties") or {}
        if self._heap_peaks.heap is None and MASTER in properties:
            self.retries_tasks = _retries_tasks(str(properties[MASTER]), properties.get(_MOST_FAILURES))
            self._locality_wait = locality_wait(properties)
            self._held_cores = HeldCores(cores_of_task(properties))
            self.reuses_workers = str(properties.get(_REUSE)).lower() != "false"
            arrow = by_arrow(properties)
            self._driver.by_arrow = _arrow_by_default(self._spark_version) if arrow is None else arrow
            limits = memory_limits({key: str(value) for key, value in properties.items()})
            self._heap_peaks.heap = limits.heap

    def on_executor_added(self, record: ExecutorAddedRecord, time_ms: int) -> None:
        """Handle ExecutorAdded."""
        executor, info = str(record["Executor ID"]), record.get("Executor Info") or {}
        cores = spark_records.total_cores(info)
        if executor == DRIVER and self._begun_ms is not None:
            self._driver.spark_started(max(0, time_ms - self._begun_ms))
        self._driver.executor_added(executor, cores, time_ms)
        self._churn.added(executor, cores, time_ms)
        of_profile = int(info.get("Resource Profile Id") or 0)
        if not of_profile and len(self._executors) < _MOST_EXECUTORS:
            self._executors[executor] = LivingExecutor(str(info.get("Host") or ""), cores, time_ms)
        if of_profile:
            self._heap_peaks.leave_out(executor)

    def on_executor_removed(self, record: ExecutorRemovedRecord, time_ms: int) -> None:
        """Handle ExecutorRemoved."""
        text = str(record.get("Removed Reason") or "")
        reason = reason_class(text)
        if reason in EXPECTED:
            self._churn.gone(str(record["Executor ID"]))
        else:
            self._churn.lost(str(record["Executor ID"]), reason, time_ms, exit_code(text))
        self._driver.executor_removed(str(record["Executor ID"]), time_ms)
        self._executors.pop(str(record["Executor ID"]), None)

    def on_executor_metrics(self, record: ExecutorMetricsRecord, time_ms: int) -> None:
        """Handle what executors have measured at the ends of tasks, which event logs have as well."""
        for executor, values in (record.get("Task Peaks") or {}).items():
            if executor != DRIVER:
                self._heap_peaks.take(executor, int(values.get(_HEAP) or 0))

    def on_query_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted."""
        self._driver.query_started(str(record["runId"]), time_ms)

    def on_query_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        """Handle QueryTerminated."""
        self._driver.query_ended(str(record["runId"]), time_ms)

    def stage_submitted(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._churn.stage_begun(key, time_ms)
        self._driver.stage_submitted(key, time_ms)

    def stage_completed(self, key: tuple[int, int], work: WorkDone, time_ms: int) -> None:
        """Called when a stage attempt has ended; see ``DriverTime``."""
        self._churn.stage_ended(key, time_ms)
        self._driver.stage_completed(key, work, time_ms)
        self._take_driver_time(time_ms)

    def fetches(self, place: str, fetch: Fetch, beside_ms: int) -> int:
        """Called with a stage that has succeeded, and computed one of many partitions that are fetched.

        Args:
            place: in the user's code, or the stage's name.
            fetch: it.
            beside_ms: for how long other stages ran at the same time.

        Returns:
            How much of its time is told as an issue of the application, in ms.
        """
        if (lost := self._one_by_one.take(place, fetch, beside_ms, self.cores)) is None:
            return 0
        issue, told_ms = lost
        self._take(issue, fetch.ended_ms)
        return told_ms

    def reads_schema(self, read: SchemaRead, time_ms: int) -> int:
        """The same of a stage that has read files for their schema."""
        for issue in self._schema_reads.take(read):
            self._take(issue, time_ms)
        return read.wall_ms

    def lists_files(
        self, lists: Listing, job: int, begun_ms: int, ended_ms: int, beside_ms: int
    ) -> tuple[int, int]:
        """Called with a stage that has listed files; see ``ListedAgain.take``.

        Returns:
            How much of its time is told as an issue of the application, and how much before it, in ms.
        """
        again = self._listed_again.take(lists, job, begun_ms, ended_ms, beside_ms)
        if again is None:
            return 0, 0
        self._take(again.issue, ended_ms, (again.since_ms, again.until_ms))
        return max(0, ended_ms - begun_ms - beside_ms), begun_ms - again.since_ms

    def warms_up(self, measured: TasksMeasured, in_python: bool) -> bool:
        """Called with a stage that has ended; see ``WarmExecutors.take``."""
        return self._warm.take(measured, in_python)

    def explains_retries(self, measured: TasksMeasured) -> bool:
        """Return whether tasks of a stage failed with executors that are lost again and again."""
        return not measured.fetch_failures and self._churn.takes_failures(
            measured.failed, measured.failed_ms, measured.first_ms
        )

    def rdds_read(
        self, info: Mapping[str, Any], stage: EndedStage, beside: Callable[[], int], time_ms: int
    ) -> int:
        """Called with a stage that has ended and belongs to no SQL execution.

        Args:
            info: its ``Stage Info``.
            stage: it.
            beside: returns for how long other stages ran at the same time, in ms.
            time_ms: now, in ms since the epoch.

        Returns:
            How much of its time is told as what RDDs cost that were computed again, in ms.
        """
        if info.get("Failure Reason") or stage.repeats:
            return 0
        again = self._evicted.take(info, stage.measured, stage.slots)

        def alone_ms() -> int:
            return max(0, stage.wall_ms - beside())

        if (shared := self._computed_again.take(info, stage.wall_ms, alone_ms)) is not None:
            self._take(shared, time_ms)
        again = again or self._sorted_again.take(info, alone_ms)
        if again is None:
            return 0
        issue, lost_ms = again
        self._take(issue, time_ms)
        return lost_ms

    def reads_checkpoint(self, info: Mapping[str, Any], time_ms: int) -> None:
        """Called with the ``Stage Info`` of a stage that has ended: it may read what was written before."""
        if (written := self._computed_again.checkpoints(info)) is not None:
            self._take(written, time_ms)

    def stage_measured(self, stage: EndedStage, time_ms: int) -> None:
        """Called with a stage that has ended."""
        if (churn := self._churn.issue()) is not None:
            self._take(churn, time_ms)
        for issue in self._slow_hosts.take(stage.measured, stage.slots, stage.reads_cache):
            self._take(issue, time_ms)

    def of_sql(self, stage: EndedStage, time_ms: int) -> None:
        """Called with a stage of SQL that has ended; see ``HeldCores.take``."""
        if (held := self._held_cores.take(stage)) is not None:
            self._take(held, time_ms, (stage.measured.first_ms, stage.measured.last_ms))

    def of_library(self, name: str, measured: TasksMeasured, beside: Callable[[], int], time_ms: int) -> None:
        """Called with a stage that has succeeded, by its name: it may be one of MLlib's.

        Args:
            name: Spark's, of the stage.
            measured: what its tasks measured.
            beside: returns for how long other stages ran at the same time, in ms.
            time_ms: now, in ms since the epoch.
        """
        begun_ms, ended_ms = measured.first_ms, measured.last_ms
        again = self._fitted_again.take(
            name, measured.rows.total, lambda: max(0, ended_ms - begun_ms - beside())
        )
        if again is not None:
            self._take(again, time_ms, (begun_ms, ended_ms))

    def has_tiny_tasks(self, place: str, tiny: TinyTasks, lost_in: tuple[int, int], time_ms: int) -> None:
        """Called with a stage that has ended and has far too many tasks.

        Args:
            place: in the user's code, or the stage's name.
            tiny: its tasks.
            lost_in: when they ran, from and until, in ms since the epoch.
            time_ms: now, in ms since the epoch.
        """
        self._take(self._tiny_tasks.take(place, tiny, self.cores), time_ms, lost_in)

    def makes_again(
        self, place: str, measured: TasksMeasured, beside_ms: int, job_begun_ms: int, time_ms: int
    ) -> None:
        """Called with a stage attempt that has ended and made again what was lost.

        Args:
            place: in the user's code, or the stage's name.
            measured: what its tasks measured.
            beside_ms: for how long other stages ran at the same time.
            job_begun_ms: when its job began, in ms since the epoch.
            time_ms: now, in ms since the epoch.
        """
        ran = measured.first_ms, measured.last_ms
        lost_ms = max(0, ran[1] - ran[0] - beside_ms)
        issue = self._made_again.take(place, measured, lost_ms, job_begun_ms)
        # In an application that runs for days, it matters to these jobs.
        self._take(issue, time_ms, ran, ("the jobs that it is about", self._made_again.jobs_ms))

    def reads_cache(
        self, stage: EndedStage, kept: Collection[int], beside: Callable[[], int], time_ms: int
    ) -> None:
        """Called with a stage that has ended, and the RDDs in it that are kept; see ``CachedApart.take``."""
        apart = self._cached_apart.take(stage, kept, self._executors, self._locality_wait, beside)
        if apart is not None:
            self._take(apart, time_ms)

    def stage_succeeded(self, kept: Collection[int]) -> None:
        """Called at the end of a stage with the RDDs in it that are kept, by their ids."""
        self._cached_apart.stage_succeeded(kept)

    def on_unpersist(self, record: UnpersistRDDRecord, time_ms: int) -> None:
        """Handle UnpersistRDD."""
        self._evicted.unpersisted(int(record["RDD ID"]))
        self._cached_apart.unpersisted(int(record["RDD ID"]))
        self._recomputation.unpersisted(int(record["RDD ID"]))

    def on_execution_start(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        """Handle SQLExecutionStart."""
        self._driver.executions(int(record["executionId"]) in self._context.run.executions, time_ms)

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd."""
        self._driver.executions(-(int(record["executionId"]) in self._context.run.executions), time_ms)

    def execution_ended(self, ended: EndedExecution, place: str, time_ms: int) -> None:
        """Called with an SQL execution that has ended, and the place in the code that it was for."""
        self._driver.execution_planned(ended)
        self._listed_again.execution_ended(ended)
        for issue in self._schema_reads.execution_ended(ended):
            self._take(issue, time_ms)
        pivot = self._pivot_values.take(ended, place)
        if pivot is not None:
            self._take(pivot, time_ms, (ended.begun_ms, ended.ended_ms))
        elif self._recomputation.take(ended, place):
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
        at_end = (*self._schema_reads.end(), *self._recomputation.never_read())
        for issue in (self._churn.issue(), *at_end):
            if issue is not None:
                self._take(issue, time_ms)
        # Those that were lost may have died for want of memory that is no heap.
        if self._lasted_ms(time_ms) >= self._thresholds.min_time_ms and not self._churn.any_lost:
            unused = self._heap_peaks.issue(self._thresholds)
            if unused is not None:
                self._take(unused, time_ms)
        self._growing.close(time_ms)

    def _take_driver_time(self, time_ms: int) -> None:
        for issue in self._driver.issues(time_ms):
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


def _arrow_by_default(spark_version: str) -> bool:
    match = re.match(r"(\d+)\.(\d+)", spark_version, re.ASCII)
    return match is not None and (int(match[1]), int(match[2])) >= _ARROW_BY_DEFAULT


def _retries_tasks(master: str, most_failures: object) -> bool:
    return str(most_failures) != "1" and not _LOCAL_ONCE.fullmatch(master)
