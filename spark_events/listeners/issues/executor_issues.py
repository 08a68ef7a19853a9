"""Issues of an application that its executors show: they are lost, slow, or have memory that none uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from spark_events.diagnosis.executors.cached_apart import CachedApart, LivingExecutor, locality_wait
from spark_events.diagnosis.executors.executor_churn import ExecutorChurn
from spark_events.diagnosis.executors.slow_hosts import SlowHosts
from spark_events.diagnosis.executors.unused_memory import HeapPeaks
from spark_events.diagnosis.executors.warm_executors import WarmExecutors
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.listeners.executors.executor_ends import EXPECTED, exit_code, reason_class
from spark_events.listeners.executors.executors import DRIVER
from spark_events.listeners.executors.memory_limits import memory_limits
from spark_events.listeners.issues.issue_events import TakeIssue
from spark_events.listeners.record_types import ExecutorMetricsRecord, ExecutorRemovedRecord

_HEAP = "JVMHeapMemory"
_MOST_EXECUTORS = 10_000


class ExecutorIssues:
    """Finds them, and hands each on with what it has cost so far.

    Args:
        thresholds: from which on something is an issue.
        take: takes them.
    """

    def __init__(self, thresholds: Thresholds, take: TakeIssue) -> None:
        self._thresholds = thresholds
        self._take = take
        self._slow_hosts = SlowHosts(thresholds)
        self._warm = WarmExecutors()
        self._churn = ExecutorChurn()
        self._heap_peaks = HeapPeaks()
        self._cached_apart = CachedApart()
        self._living: dict[str, LivingExecutor] = {}
        self._locality_wait = ""

    @property
    def knows_memory(self) -> bool:
        """Whether the settings of the executors are known."""
        return self._heap_peaks.heap is not None

    def configured(self, properties: Mapping[str, str]) -> None:
        """Called with Spark's properties."""
        self._locality_wait = locality_wait(properties)
        self._heap_peaks.heap = memory_limits(properties).heap

    def added(self, executor: str, host: str, cores: int, profile: int, time_ms: int) -> None:
        """Called with a new executor.

        Args:
            executor: its id.
            host: where it runs.
            cores: how many it has.
            profile: the id of its resource profile; 0 is that of the settings.
            time_ms: when it was added, in ms since the epoch.
        """
        self._churn.added(executor, cores, time_ms)
        if profile:
            self._heap_peaks.leave_out(executor)
        elif len(self._living) < _MOST_EXECUTORS:
            self._living[executor] = LivingExecutor(host, cores, time_ms)

    def removed(self, record: ExecutorRemovedRecord, time_ms: int) -> None:
        """Called with an ExecutorRemoved."""
        executor, text = str(record["Executor ID"]), str(record.get("Removed Reason") or "")
        reason = reason_class(text)
        if reason in EXPECTED:
            self._churn.gone(executor)
        else:
            self._churn.lost(executor, reason, time_ms, exit_code(text))
        self._living.pop(executor, None)

    def measured(self, record: ExecutorMetricsRecord) -> None:
        """Called with what executors have measured at the ends of tasks, which event logs have as well."""
        for executor, values in (record.get("Task Peaks") or {}).items():
            if executor != DRIVER:
                self._heap_peaks.take(executor, int(values.get(_HEAP) or 0))

    def stage_begun(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._churn.stage_begun(key, time_ms)

    def stage_ended(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has ended."""
        self._churn.stage_ended(key, time_ms)

    def warms_up(self, measured: TasksMeasured, in_python: bool) -> bool:
        """Called with a stage that has ended; see ``WarmExecutors.take``."""
        return self._warm.take(measured, in_python)

    def explains_retries(self, measured: TasksMeasured) -> bool:
        """Return whether tasks of a stage failed with executors that are lost again and again."""
        return not measured.fetch_failures and self._churn.takes_failures(measured)

    def stage_measured(self, stage: EndedStage, time_ms: int) -> None:
        """Called with a stage that has ended."""
        if (churn := self._churn.issue()) is not None:
            self._take(churn, time_ms)
        for issue in self._slow_hosts.take(stage.measured, stage.slots, stage.reads_cache):
            self._take(issue, time_ms)

    def reads_cache(
        self, stage: EndedStage, kept: Collection[int], beside: Callable[[], int], time_ms: int
    ) -> None:
        """Called with a stage that has ended, and the RDDs in it that are kept; see ``CachedApart.take``."""
        apart = self._cached_apart.take(stage, kept, self._living, self._locality_wait, beside)
        if apart is not None:
            self._take(apart, time_ms)

    def stage_succeeded(self, kept: Collection[int]) -> None:
        """Called at the end of a stage with the RDDs in it that are kept, by their ids."""
        self._cached_apart.stage_succeeded(kept)

    def unpersisted(self, rdd: int) -> None:
        """Called with the id of an RDD that is kept no longer."""
        self._cached_apart.unpersisted(rdd)

    def lost(self) -> Issue | None:
        """Return what lost executors have cost so far; None if that is nothing."""
        return self._churn.issue()

    def unused_memory(self) -> Issue | None:
        """Return the memory that nobody used; None if that is little, or unknown."""
        # Those that were lost may have died for want of memory that is no heap.
        return None if self._churn.any_lost else self._heap_peaks.issue(self._thresholds)
