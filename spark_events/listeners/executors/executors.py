"""Executors: how many there are, what they measure, and how each ends."""

from __future__ import annotations

from collections.abc import Iterable

from spark_events.api import Counter, Gauge
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.executors.executor import Executor
from spark_events.listeners.executors.executor_ends import (
    APPLICATION_ENDED,
    BEFORE_REGISTERING,
    REASONS,
    reason_class,
)
from spark_events.listeners.executors.executor_losses import ExecutorLosses, LostExecutor
from spark_events.listeners.executors.executor_metrics import (
    AllExecutorSeries,
    ExecutorSeries,
    Readings,
    read_gauges,
    read_totals,
)
from spark_events.listeners.executors.executor_sources import AS_HEARTBEAT
from spark_events.listeners.executors.memory_limits import (
    KEYS,
    MemoryLimits,
    memory_limits,
    settings_of_profile,
)
from spark_events.listeners.executors.undecided_removals import Removal, UndecidedRemovals
from spark_events.listeners.listener import Handlers
from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.record_fields import (
    EXECUTOR_ID,
    EXECUTOR_INFO,
    RESOURCE_PROFILE_ID,
    SPARK_PROPERTIES,
    STAGE_IDS,
)
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    EnvironmentUpdateRecord,
    ExecutorAddedRecord,
    ExecutorMetricsRecord,
    ExecutorRemovedRecord,
    ExecutorSourcesRecord,
    ExecutorTasksRecord,
    ResourceProfileAddedRecord,
)
from spark_events.runtime.log_once import logger
from spark_events.runtime.scope import ScopeGroup

DRIVER = "driver"
DRIVER_HOST = "spark.driver.host"
_MOST_GONE = 10_000
"""How many of the last executors that have gone are remembered: what is said of one again comes soon."""


class ExecutorListener:
    """Follows the executors of one application.

    Args:
        context: shared by the listeners.
        has_metrics: whether anybody reports metrics; a replay has none.
    """

    def __init__(self, context: ListenerContext, has_metrics: bool) -> None:
        self._context = context
        self._has_metrics = has_metrics
        self._executors: dict[str, Executor] = {}
        self._gone: dict[str, None] = {}
        self._driver: Executor | None = None
        self._driver_host = ""
        self._conf: dict[str, str] | None = None
        self._profiles: dict[int, dict[str, str]] = {}
        self._losses = ExecutorLosses(context)
        self._undecided = UndecidedRemovals()
        self._tasks_of_removed: ExecutorTasksRecord = {}
        # An executor has nothing to show before it has measured something.
        self._series = PassingSeries(0, context.settings.retention_ms)
        self._shown = 0
        self._too_many_said = False
        self._group = context.scopes.application()
        self._all = AllExecutorSeries(self._group, self._last_gauges)
        self._removed = {reason: self._register_removed(reason) for reason in REASONS}
        self._added = self._register_counts(self._group)

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.ENVIRONMENT_UPDATE: self.on_environment,
            spark_records.RESOURCE_PROFILE_ADDED: self.on_profile_added,
            spark_records.EXECUTOR_ADDED: self.on_added,
            spark_records.EXECUTOR_METRICS: self.on_metrics,
            spark_records.EXECUTOR_SOURCES: self.on_sources,
            spark_records.EXECUTOR_TASKS: self.on_tasks,
            spark_records.EXECUTOR_REMOVED: self.on_removed,
            spark_records.APPLICATION_END: self.on_application_end,
        }

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate, of which there may be several; the memory of executors is the first's."""
        conf = record.get(SPARK_PROPERTIES) or {}
        if self._conf is not None:
            return
        self._driver_host = str(conf.get(DRIVER_HOST) or "")
        self._conf = {key: str(conf[key]) for key in KEYS if key in conf}
        limits = memory_limits(self._conf)
        self._context.failures.limits = limits
        for name, value, described in (
            ("executorHeapLimit", limits.heap, "Heap that an executor is given."),
            (
                "executorContainerLimit",
                limits.container,
                "Memory that an executor's container is given.",
            ),
        ):
            if value is not None:
                self._group.register(name, Gauge(lambda value=value: value, "By", described))  # type: ignore[misc]

    def on_profile_added(self, record: ResourceProfileAddedRecord, time_ms: int) -> None:
        """Handle ResourceProfileAdded: executors of other profiles may be given other memory."""
        self._profiles[int(record[RESOURCE_PROFILE_ID])] = settings_of_profile(record)

    def on_added(self, record: ExecutorAddedRecord, time_ms: int) -> None:
        """Handle ExecutorAdded; one that is known was found at attach."""
        executor, info = str(record[EXECUTOR_ID]), record.get(EXECUTOR_INFO) or {}
        if executor not in self._executors:
            self._added.inc()
            self._executors[executor] = Executor(
                executor,
                str(info.get("Host") or ""),
                spark_records.total_cores(info),
                time_ms,
                int(info.get(RESOURCE_PROFILE_ID) or 0),
            )

    def on_metrics(self, record: ExecutorMetricsRecord, time_ms: int) -> None:
        """Handle what executors have measured."""
        for executor_id, values in (record.get("Heartbeats") or {}).items():
            executor = self._known(executor_id)
            if executor is not None:
                executor.beats = True
                self._take(executor, read_gauges(values), read_totals(values))
        for executor_id, values in (record.get("Task Peaks") or {}).items():
            executor = self._known(executor_id)
            if executor is not None:
                gauges = read_gauges(values)
                _raise_peaks(executor, gauges)
                if not executor.beats:
                    self._take(executor, gauges, read_totals(values))

    def on_sources(self, record: ExecutorSourcesRecord, time_ms: int) -> None:
        """Handle what Spark's metrics system has sent, from executors that run no tasks, too."""
        for executor_id, values in record["Executors"].items():
            executor = self._known(executor_id)
            if executor is None:
                continue
            if not executor.beats:
                memory = {AS_HEARTBEAT[name]: int(values[name]) for name in AS_HEARTBEAT if name in values}
                if memory:
                    self._take(executor, {**executor.gauges, **read_gauges(memory)}, executor.totals)
            if executor.series is not None:
                executor.series.take_sources(values)

    def on_tasks(self, record: ExecutorTasksRecord, time_ms: int) -> None:
        """Handle what an executor was running when it went."""
        self._tasks_of_removed = record

    def on_removed(self, record: ExecutorRemovedRecord, time_ms: int) -> None:
        """Handle ExecutorRemoved, of which there may be several; one may die before it registers."""
        executor_id = str(record[EXECUTOR_ID])
        executor = self._executors.pop(executor_id, None)
        sentence = str(record.get("Removed Reason") or "")
        reason = reason_class(sentence)
        if (decided := self._undecided.decided_by(executor_id, sentence, reason)) is not None:
            self._context.failures.executor_ends.put(executor_id, sentence, decided.time_ms)
            self._decide(decided)
            return
        if executor is None:
            if executor_id == DRIVER or executor_id in self._gone or reason not in BEFORE_REGISTERING:
                return
            executor = Executor(executor_id, "", 0, None)
        self._gone[executor_id] = None
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]
        tasks, self._tasks_of_removed = self._tasks_of_removed, {}
        if executor.series is not None:
            self._series.ended(executor.id, time_ms)
            self._shown -= 1
        of_it: ExecutorTasksRecord = tasks if tasks.get(EXECUTOR_ID) == executor.id else {}
        removal = Removal(executor, sentence, reason, of_it, time_ms)
        self._context.failures.executor_ends.put(executor.id, sentence, time_ms)
        if not self._undecided.keeps(removal):
            self._decide(removal)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd, after which Spark says nothing of the executors that lived until then."""
        self._decide_until(None)
        for executor in self._executors.values():
            if executor.id != DRIVER:
                self._report_lost(executor, APPLICATION_ENDED, "", {}, time_ms)

    def tick(self, now_ms: int) -> None:
        """Remove the series of what went a while ago, and report what nothing more was said of."""
        self._series.tick(now_ms)
        self._decide_until(now_ms)

    # -----------------------------------------------------------------------------------------------------

    def _decide_until(self, now_ms: int | None) -> None:
        for removal in self._undecided.decided_until(now_ms):
            self._decide(removal)

    def _decide(self, removal: Removal) -> None:
        """Count and report a removal whose reason is known."""
        executor, sentence, reason, tasks, time_ms = removal
        self._removed[reason].inc()
        self._report_lost(executor, reason, sentence, tasks, time_ms)

    def _known(self, executor_id: str) -> Executor | None:
        """Return an executor that lives, or the driver; None for one that is gone."""
        if executor_id == DRIVER and DRIVER not in self._executors:
            if self._driver is None:
                self._driver = Executor(DRIVER, self._driver_host, 0, None)
            return self._driver
        return self._executors.get(executor_id)

    def _report_lost(
        self, executor: Executor, reason: str, sentence: str, tasks: ExecutorTasksRecord, time_ms: int
    ) -> None:
        lost = LostExecutor(
            id=executor.id,
            host=executor.host,
            reason=reason,
            sentence=sentence,
            lifetime_ms=time_ms - executor.added_ms if executor.added_ms is not None else None,
            running_tasks=tasks.get("Running Tasks"),
            stages=tuple(tasks.get(STAGE_IDS) or ()),
            shuffle_bytes=tasks.get("Shuffle Bytes Written"),
            gauges=executor.gauges,
            peaks=executor.peaks,
        )
        self._losses.report(lost, self._limits_of(executor), time_ms)

    def _limits_of(self, executor: Executor) -> MemoryLimits | None:
        if self._conf is None:
            return None
        return memory_limits({**self._conf, **self._profiles.get(executor.profile, {})})

    def _take(self, executor: Executor, gauges: Readings, totals: Readings) -> None:
        grown = {
            measure: max(0, total - executor.totals.get(measure, 0)) for measure, total in totals.items()
        }
        executor.gauges, executor.totals = gauges, totals
        _raise_peaks(executor, gauges)
        if executor is not self._driver:
            self._all.take(gauges, grown)
        if executor.series is None and self._has_metrics and self._has_room():
            executor.series = series = ExecutorSeries(self._group_of(executor))
            self._shown += 1
            self._series.begun(executor.id, 0, lambda: series.group)
        if executor.series is not None:
            executor.series.take(gauges, grown)

    def _has_room(self) -> bool:
        most = self._context.settings.max_executors
        if self._shown >= most and not self._too_many_said:
            self._too_many_said = True
            logger.warning(
                "more than %d executors at once: further ones get no metrics of their own "
                "(spark.metrics.max-executors); the metrics of all executors together include them",
                most,
            )
        return self._shown < most

    def _group_of(self, executor: Executor) -> ScopeGroup:
        return self._context.scopes.executor_series(executor.id, executor.host)

    def _last_gauges(self) -> Iterable[Readings]:
        return [executor.gauges for executor in list(self._executors.values())]

    def _register_counts(self, group: ScopeGroup) -> Counter:
        group.register("executors", Gauge(lambda: len(self._executors), "{executor}", "Live executors."))
        described = "Cores of all live executors."
        cores = Gauge(lambda: sum(each.cores for each in list(self._executors.values())), "{core}", described)
        group.register("executorCores", cores)
        return group.register("executorsAdded", Counter("{executor}", "Executors that were added."))

    def _register_removed(self, reason: str) -> Counter:
        labeled = self._group.child(components=("removed", reason), variables={"reason": reason})
        counter = Counter("{executor}", "Lost executors, by reason.")
        return labeled.register("executorsRemoved", counter)


def _raise_peaks(executor: Executor, gauges: Readings) -> None:
    peaks = executor.peaks
    for measure, value in gauges.items():
        if value > peaks.get(measure, -1):
            peaks[measure] = value
