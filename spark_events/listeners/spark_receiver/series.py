"""The metrics of the OpenTelemetry Collector's apachesparkreceiver, with its names and attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from spark_events.api import Counter, Gauge, Metric, MetricGroup, own_unit
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.listener import Handlers
from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.record_types import SparkStatusRecord
from spark_events.listeners.spark_receiver.names import (
    FREE_STORAGE,
    IN_ALL_STORAGE,
    OF_EXECUTORS,
    OF_JOBS,
    OF_STAGES,
    OF_THE_DRIVER,
    STAGE_STATUS,
    STAGE_STATUSES,
    ReceiverMetric,
)
from spark_events.runtime.log_once import logger
from spark_events.runtime.scope import ScopeGroup

MOST_STAGES = MOST_JOBS = 200
_MEBIBYTE = 1 << 20
_HEAP = "ExecutorMetrics.JVMHeapMemory"
_RUNNING = ("ACTIVE", "PENDING", "RUNNING")
Figures = Mapping[str, float | int]


class ReceiverSeries:
    """The metrics of the driver, an executor, a stage or a job.

    Args:
        metrics: those that there may be; each appears with its first figure.
    """

    def __init__(self, metrics: Sequence[ReceiverMetric]) -> None:
        self._metrics = metrics
        self._figures: Figures = {}
        self._counters: dict[ReceiverMetric, Counter] = {}
        self._group: ScopeGroup | None = None
        self._shown: set[str] = set()
        self._status = ""
        self._of_status: MetricGroup | None = None

    def take(self, figures: Figures, status: str = "") -> None:
        """Take new figures, by their names.

        Args:
            figures: those that were measured.
            status: of a stage, as the receiver's attributes have it; empty for what has none.
        """
        for metric in self._metrics:
            value = figures.get(metric.source)
            if metric.grows and value is not None:
                if metric not in self._counters:
                    self._counters[metric] = Counter(metric.unit, _described(metric))
                grown = int(value) - int(self._figures.get(metric.source, 0))
                self._counters[metric].inc(max(0, grown))
        self._figures = figures
        self._register()
        if status != self._status:
            self._status = status
            self._show_status()

    def show(self, group: ScopeGroup) -> ScopeGroup:
        """Register what there is in a group, and later on what is new; return the group."""
        self._group = group
        self._register()
        self._show_status()
        return group

    def _register(self) -> None:
        if self._group is None:
            return
        for metric in self._metrics:
            if metric.source in self._figures and metric.source not in self._shown:
                self._shown.add(metric.source)
                shown = self._counters.get(metric) or Gauge(
                    self._reading(metric), metric.unit, _described(metric)
                )
                _register(self._group, metric, shown)

    def _reading(self, metric: ReceiverMetric) -> Callable[[], float | int | None]:
        return lambda: self._figures.get(metric.source)

    def _show_status(self) -> None:
        if self._group is None or not self._status:
            return
        if self._of_status is not None:
            self._of_status.close()
        attributes = {status: str(status == self._status).lower() for status in STAGE_STATUSES}
        self._of_status = self._group.child("", (self._status,), attributes)
        described = "Always 1; its attributes are the status of the stage."
        self._of_status.register(STAGE_STATUS, Gauge(lambda: 1, "{ status }", described))


def _described(metric: ReceiverMetric) -> str:
    return f"{metric.source.removesuffix('.count')}, as Spark's REST API has it."


def _register(group: ScopeGroup, metric: ReceiverMetric, shown: Metric) -> None:
    """Register a metric in the groups that its name has, with its attributes."""
    *groups, name = metric.name.split(".")
    for part in groups:
        group = group.add_group(part)
    if metric.attributes:
        group = group.child("", tuple(metric.attributes.values()), metric.attributes)
    shown.shown_in = own_unit(metric.unit)
    group.register(name, shown)


class _Passing:
    """The series of all executors, all stages or all jobs.

    Args:
        title: what they are, in a message.
        metrics: of each.
        series: when they come and go.
    """

    def __init__(self, title: str, metrics: Sequence[ReceiverMetric], series: PassingSeries) -> None:
        self._title = title
        self._metrics = metrics
        self._series = series
        self._known: dict[Hashable, ReceiverSeries] = {}
        self._ended: set[Hashable] = set()
        self._too_many_said = False

    def take(
        self,
        key: Hashable,
        figures: Figures,
        begun_ms: int,
        make_group: Callable[[], ScopeGroup],
        status: str = "",
    ) -> None:
        """Take figures of one that runs, or of one that has run until now."""
        series = self._known.get(key)
        if series is None:
            series = self._known[key] = ReceiverSeries(self._metrics)
            self._series.begun(key, begun_ms, lambda: series.show(make_group()))
        series.take(figures, status)

    def ended(self, key: Hashable, time_ms: int) -> None:
        """Called when one has ended, but there may be further figures."""
        if key in self._known and key not in self._ended:
            self._ended.add(key)
            self._series.ended(key, time_ms)

    def keep(self, keys: Iterable[Hashable], time_ms: int) -> None:
        """Forget all others: there will be no more figures of them."""
        for key in self._known.keys() - set(keys):
            self.ended(key, time_ms)
            self._ended.discard(key)
            del self._known[key]

    def tick(self, now_ms: int) -> None:
        """Add and remove what is due."""
        self._series.tick(now_ms)
        if self._series.full and self._series.waiting and not self._too_many_said:
            self._too_many_said = True
            logger.warning(
                "more %s at once than may have metrics under the names of apachesparkreceiver: further ones "
                "get theirs when others have gone",
                self._title,
            )


class ReceiverListener:
    """Shows what Spark's status store and the driver's metrics know, as the collector's receiver does."""

    def __init__(self, context: ListenerContext) -> None:
        self._scopes = context.scopes
        after_ms, retention_ms = context.settings.min_job_duration_ms, context.settings.retention_ms
        self._driver = ReceiverSeries(OF_THE_DRIVER)
        self._driver.show(self._scopes.receiver_driver())
        at_once = PassingSeries(0, retention_ms, context.settings.max_executors)
        self._executors = _Passing("executors", OF_EXECUTORS, at_once)
        self._stages = _Passing("stages", OF_STAGES, PassingSeries(after_ms, retention_ms, MOST_STAGES))
        self._jobs = _Passing("jobs", OF_JOBS, PassingSeries(after_ms, retention_ms, MOST_JOBS))

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.SPARK_STATUS: self.on_status,
        }

    def on_status(self, record: SparkStatusRecord, time_ms: int) -> None:
        """Handle a reading of all that runs, and of what has ended since the reading before."""
        executors = {key: _with_free(values) for key, values in (record.get("Executors") or {}).items()}
        for executor, values in executors.items():
            self._take_executor(executor, values, time_ms)
        self._executors.keep(executors, time_ms)
        self._driver.take(_of_the_driver(record.get("Driver") or {}, list(executors.values())))
        self._take_passing(self._stages, record.get("Stages") or (), self._stage, time_ms)
        self._take_passing(self._jobs, record.get("Jobs") or (), self._job, time_ms)

    def tick(self, now_ms: int) -> None:
        """Add the series of what has run for a while, and remove those of what ended a while ago."""
        for passing in (self._executors, self._stages, self._jobs):
            passing.tick(now_ms)

    def _take_executor(self, executor: str, values: Mapping[str, Any], time_ms: int) -> None:
        host = str(values.get("hostPort") or "").rpartition(":")[0]
        self._executors.take(
            executor, values, time_ms, lambda: self._scopes.receiver_executor(executor, host)
        )

    def _take_passing(
        self,
        passing: _Passing,
        all_values: Iterable[Mapping[str, Any]],
        place: Callable[[Mapping[str, Any]], tuple[Hashable, Callable[[], ScopeGroup]]],
        time_ms: int,
    ) -> None:
        keys = []
        for values in sorted(all_values, key=lambda values: int(values.get("submissionTime") or time_ms)):
            key, make_group = place(values)
            status = str(values["status"])
            begun_ms = int(values.get("submissionTime") or time_ms)
            shown = status.lower() if passing is self._stages else ""
            passing.take(key, values, begun_ms, make_group, shown)
            if status not in _RUNNING:
                passing.ended(key, time_ms)
            keys.append(key)
        passing.keep(keys, time_ms)

    def _stage(self, values: Mapping[str, Any]) -> tuple[Hashable, Callable[[], ScopeGroup]]:
        stage, attempt = str(values["stageId"]), str(values["attemptId"])
        return (stage, attempt), lambda: self._scopes.receiver_stage(stage, attempt)

    def _job(self, values: Mapping[str, Any]) -> tuple[Hashable, Callable[[], ScopeGroup]]:
        job = str(values["jobId"])
        return job, lambda: self._scopes.receiver_job(job)


def _with_free(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an executor's figures, with the storage memory that is free, where both others are known."""
    free = {
        name: max(0, values[total] - values[used])
        for name, (total, used) in FREE_STORAGE.items()
        if total in values and used in values
    }
    return {**values, **free}


def _of_the_driver(values: Mapping[str, Any], executors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the driver's figures: a heap of 0 means that nothing was measured yet."""
    measured = {
        name: value
        for name, value in values.items()
        if value is not None and (values.get(_HEAP) or not name.startswith("ExecutorMetrics."))
    }
    for name in IN_ALL_STORAGE:
        known = [values[name] for values in executors if name in values]
        if known:
            measured[name] = sum(known) // _MEBIBYTE
    return measured
