"""What executors measure: metrics of each, and of all of an application together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from spark_events.api import Counter, Gauge, MetricGroup
from spark_events.api.metric_group import M
from spark_events.listeners.executor_sources import SourceSeries

Values = Mapping[str, int]
"""Measurements by Spark's names (``ExecutorMetricType``), in bytes and ms."""


class Measure(NamedTuple):
    """One measurement.

    Attributes:
        fields: Spark's names; several are added up.
        path: Flink's groups and name, below the scope of the executor.
        of_all: how the application's metrics of all executors begin; empty for none.
    """

    fields: tuple[str, ...]
    path: tuple[str, ...]
    of_all: str
    unit: str
    description: str


def _memory(field: str, path: str, of_all: str, description: str) -> Measure:
    return Measure((field,), tuple(path.split(".")), of_all, "By", description)


_TREE = "Resident memory, from /proc, of "
_MANAGED = "Status.Spark.Memory"
GAUGES = (
    _memory("JVMHeapMemory", "Status.JVM.Memory.Heap.Used", "executorHeapUsed", "Heap in use."),
    _memory(
        "JVMOffHeapMemory",
        "Status.JVM.Memory.NonHeap.Used",
        "executorNonHeapUsed",
        "JVM memory outside the heap: classes, compiled code.",
    ),
    _memory(
        "DirectPoolMemory", "Status.JVM.Memory.Direct.MemoryUsed", "executorDirectUsed", "Direct buffers."
    ),
    _memory(
        "MappedPoolMemory", "Status.JVM.Memory.Mapped.MemoryUsed", "executorMappedUsed", "Mapped buffers."
    ),
    Measure(
        ("OnHeapExecutionMemory", "OffHeapExecutionMemory"),
        (*_MANAGED.split("."), "Execution", "Used"),
        "executorExecutionUsed",
        "By",
        "Spark's memory for sorting, joining and aggregating.",
    ),
    Measure(
        ("OnHeapStorageMemory", "OffHeapStorageMemory"),
        (*_MANAGED.split("."), "Storage", "Used"),
        "executorStorageUsed",
        "By",
        "Spark's memory for cached blocks and broadcasts.",
    ),
    _memory(
        "ProcessTreeJVMRSSMemory",
        "Status.Process.Memory.JVM.Used",
        "executorProcessJvmUsed",
        f"{_TREE}the JVM.",
    ),
    _memory(
        "ProcessTreePythonRSSMemory",
        "Status.Process.Memory.Python.Used",
        "executorProcessPythonUsed",
        f"{_TREE}Python workers.",
    ),
    _memory(
        "ProcessTreeOtherRSSMemory",
        "Status.Process.Memory.Other.Used",
        "executorProcessOtherUsed",
        f"{_TREE}other processes that it started.",
    ),
)
"""Each is the highest value since the one before."""
_GC = ("Status", "JVM", "GarbageCollector")
COUNTERS = (
    Measure(("TotalGCTime",), (*_GC, "All", "Time"), "executorGcTime", "ms", "Time in garbage collection."),
    Measure(
        ("MinorGCCount", "MajorGCCount", "ConcurrentGCCount"),
        (*_GC, "All", "Count"),
        "executorGcCount",
        "{collection}",
        "Garbage collections.",
    ),
    *(
        Measure((f"{kind}GC{what}",), (*_GC, kind, what), "", unit, f"{said} of {kind.lower()} collections.")
        for kind in ("Minor", "Major", "Concurrent")
        for what, unit, said in (("Time", "ms", "Time"), ("Count", "{collection}", "Number"))
    ),
)
"""Each adds up from the start of the JVM."""
_OF_PROCESSES = "ProcessTree"


def measured(measure: Measure, values: Values) -> int | None:
    """Return a measurement, or None where it was not made; Spark measures processes only if told to."""
    present = [values[field] for field in measure.fields if field in values]
    if not present or (measure.fields[0].startswith(_OF_PROCESSES) and not _has_processes(values)):
        return None
    return sum(present)


def _has_processes(values: Values) -> bool:
    return any(value for field, value in values.items() if field.startswith(_OF_PROCESSES))


def growth(before: Values, now: Values) -> dict[Measure, int]:
    """Return by how much each of ``COUNTERS`` has grown."""
    grown = {}
    for measure in COUNTERS:
        value = measured(measure, now)
        if value is not None:
            grown[measure] = max(0, value - (measured(measure, before) or 0))
    return grown


class ExecutorSeries:
    """The metrics of one executor.

    Args:
        group: of the executor.
    """

    def __init__(self, group: MetricGroup) -> None:
        self.group = group
        self._values: Values = {}
        self._registered: set[tuple[str, ...]] = set()
        self._counters: dict[tuple[str, ...], Counter] = {}
        self._sources = SourceSeries(group)

    def take_sources(self, values: Mapping[str, float]) -> None:
        """Show new values of Spark's metrics system."""
        self._sources.take(values)

    def take(self, values: Values, grown: Mapping[Measure, int]) -> None:
        """Show new values.

        Args:
            values: what it has now.
            grown: by how much each of ``COUNTERS`` has grown.
        """
        self._values = values
        for measure in GAUGES:
            if measure.path not in self._registered and measured(measure, values) is not None:
                self._registered.add(measure.path)
                self._register(measure, Gauge(self._reading(measure), measure.unit, measure.description))
        for measure, by in grown.items():
            if measure.path not in self._counters:
                counter = Counter(measure.unit, measure.description)
                self._counters[measure.path] = self._register(measure, counter)
            self._counters[measure.path].inc(by)

    def _reading(self, measure: Measure) -> Callable[[], int | None]:
        return lambda: measured(measure, self._values)

    def _register(self, measure: Measure, metric: M) -> M:
        group = self.group
        for name in measure.path[:-1]:
            group = group.add_group(name)
        return group.register(measure.path[-1], metric)


class AllExecutorSeries:
    """The metrics of all executors of an application together, which stay when executors come and go.

    Args:
        group: of the application.
        values: returns what each executor that lives has measured last.
    """

    def __init__(self, group: MetricGroup, values: Callable[[], Iterable[Values]]) -> None:
        self._group = group
        self._values = values
        self._peaks: dict[Measure, int] = {}
        self._counters: dict[Measure, Counter] = {}

    def take(self, values: Values, grown: Mapping[Measure, int]) -> None:
        """Called with what one executor has measured, and by how much its ``COUNTERS`` have grown."""
        for measure in GAUGES:
            value = measured(measure, values)
            if value is not None:
                self._show(measure)
                self._peaks[measure] = max(value, self._peaks[measure])
        for measure, by in grown.items():
            if measure.of_all:
                self._counter(measure).inc(by)

    def _show(self, measure: Measure) -> None:
        if measure in self._peaks:
            return
        self._peaks[measure] = 0
        statistic: Mapping[str, tuple[Callable[[list[int]], float], str]] = {
            "Sum": (sum, "all executors together"),
            "Max": (max, "the executor with most"),
            "Median": (statistics.median, "the executor in the middle"),
        }
        for name, (of, whose) in statistic.items():
            described = f"{measure.description} Of {whose}."
            self._group.register(
                f"{measure.of_all}{name}", Gauge(self._reading(measure, of), measure.unit, described)
            )
        highest = Gauge(
            lambda: self._peaks[measure], measure.unit, f"{measure.description} The highest so far."
        )
        self._group.register(f"{measure.of_all}Peak", highest)

    def _reading(self, measure: Measure, of: Callable[[list[int]], float]) -> Callable[[], float | None]:
        def read() -> float | None:
            values = [value for each in self._values() if (value := measured(measure, each)) is not None]
            return of(values) if values else None

        return read

    def _counter(self, measure: Measure) -> Counter:
        if measure not in self._counters:
            counter = Counter(measure.unit, f"{measure.description} Of all executors together.")
            self._counters[measure] = self._group.register(measure.of_all, counter)
        return self._counters[measure]
