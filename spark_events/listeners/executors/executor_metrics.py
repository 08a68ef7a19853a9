"""What executors measure: metrics of each, and of all of an application together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from spark_events.api import Counter, Gauge, MetricGroup
from spark_events.listeners.executors.executor_sources import SourceSeries
from spark_events.runtime.scope import register_below

Values = Mapping[str, int]
"""Measurements by Spark's names (``ExecutorMetricType``), in bytes and ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One measurement.

    Attributes:
        fields: Spark's names; several are added up.
        path: Flink's groups and name, below the scope of the executor.
        of_all: how the application's metrics of all executors begin; empty for none.
        unit, description: as those of its metrics.
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
Readings = Mapping[Measure, int]
"""What was measured, by what."""


def read_gauges(values: Values) -> dict[Measure, int]:
    """Return those of ``GAUGES`` that were measured; Spark measures processes only if told to."""
    has_processes = any(value for field, value in values.items() if field.startswith(_OF_PROCESSES))
    return _read(GAUGES if has_processes else _OF_THE_JVM, values)


def read_totals(values: Values) -> dict[Measure, int]:
    """Return those of ``COUNTERS`` that were measured."""
    return _read(COUNTERS, values)


def _read(measures: tuple[Measure, ...], values: Values) -> dict[Measure, int]:
    readings = {}
    for measure in measures:
        total = values.get(measure.fields[0])
        if total is not None:
            for field in measure.fields[1:]:
                total += values.get(field, 0)
            readings[measure] = total
    return readings


_OF_THE_JVM = tuple(measure for measure in GAUGES if not measure.fields[0].startswith(_OF_PROCESSES))


class ExecutorSeries:
    """The metrics of one executor.

    Args:
        group: of the executor.
    """

    def __init__(self, group: MetricGroup) -> None:
        self.group = group
        self._gauges: Readings = {}
        self._registered: set[Measure] = set()
        self._counters: dict[Measure, Counter] = {}
        self._sources = SourceSeries(group)

    def take_sources(self, values: Mapping[str, float]) -> None:
        """Show new values of Spark's metrics system."""
        self._sources.take(values)

    def take(self, gauges: Readings, grown: Readings) -> None:
        """Show new values.

        Args:
            gauges: its ``GAUGES`` now.
            grown: by how much each of its ``COUNTERS`` has grown.
        """
        self._gauges = gauges
        for measure in gauges:
            if measure not in self._registered:
                self._registered.add(measure)
                gauge = Gauge(self._reading(measure), measure.unit, measure.description)
                register_below(self.group, measure.path, gauge)
        for measure, by in grown.items():
            if measure not in self._counters:
                counter = Counter(measure.unit, measure.description)
                self._counters[measure] = register_below(self.group, measure.path, counter)
            self._counters[measure].inc(by)

    def _reading(self, measure: Measure) -> Callable[[], int | None]:
        return lambda: self._gauges.get(measure)


class AllExecutorSeries:
    """The metrics of all executors of an application together, which stay when executors come and go.

    Args:
        group: of the application.
        gauges: returns the ``GAUGES`` of each executor that lives.
    """

    def __init__(self, group: MetricGroup, gauges: Callable[[], Iterable[Readings]]) -> None:
        self._group = group
        self._gauges = gauges
        self._peaks: dict[Measure, int] = {}
        self._counters: dict[Measure, Counter] = {}

    def take(self, gauges: Readings, grown: Readings) -> None:
        """Called with the ``GAUGES`` of one executor, and by how much its ``COUNTERS`` have grown."""
        peaks = self._peaks
        for measure, value in gauges.items():
            if measure not in peaks:
                peaks[measure] = 0
                self._show(measure)
            if value > peaks[measure]:
                peaks[measure] = value
        for measure, by in grown.items():
            if by and measure.of_all:
                self._counter(measure).inc(by)

    def _show(self, measure: Measure) -> None:
        statistic: Mapping[str, tuple[Callable[[list[int]], float], str]] = {
            "Sum": (sum, "all executors together"),
            "Max": (max, "the executor with the most"),
            "Median": (statistics.median, "the median executor"),
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
            values = [gauges[measure] for gauges in self._gauges() if measure in gauges]
            return of(values) if values else None

        return read

    def _counter(self, measure: Measure) -> Counter:
        if measure not in self._counters:
            counter = Counter(measure.unit, f"{measure.description} Of all executors together.")
            self._counters[measure] = self._group.register(measure.of_all, counter)
        return self._counters[measure]
