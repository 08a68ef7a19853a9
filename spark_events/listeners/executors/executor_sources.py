"""Metrics of Spark's own metrics system, as its GraphiteSink sends them, under names like Flink's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from spark_events.api import Gauge, MetricGroup
from spark_events.runtime.scope import register_below

_MEMORY = ("Status", "JVM", "Memory")
_MEANT = {"heap": "Heap", "non-heap": "NonHeap", "total": "Total"}
_AREA = re.compile(r"jvm\.(heap|non-heap|total)\.(committed|max|init|used)")
_POOL = re.compile(r"jvm\.pools\.(.+)\.(used|committed|max|init|usage|used-after-gc)")
_BUFFERS = re.compile(r"jvm\.(direct|mapped)\.(count|capacity|used)")
_COLLECTOR = re.compile(r"jvm\.([^.]+)\.(count|time)")
# Prometheus reserves the suffix _count.
_OF_BUFFERS = {"count": ("Number", ""), "capacity": ("TotalCapacity", "By"), "used": ("MemoryUsed", "By")}
_COUNT = re.compile(r"Count$")
_MEBIBYTES = "_MB"
_CPU_TIME = "JVMCPU.jvmCpuTime"
_TOLD_BY_HEARTBEATS = "ExecutorMetrics."
AS_HEARTBEAT = {
    "jvm.heap.used": "JVMHeapMemory",
    "jvm.non-heap.used": "JVMOffHeapMemory",
    "jvm.direct.used": "DirectPoolMemory",
    "jvm.mapped.used": "MappedPoolMemory",
}
"""What a heartbeat tells as well, under which name; executors that run no tasks send none."""


class SourceName(NamedTuple):
    """Where a metric has its place: groups and name, below the executor's scope, and its unit."""

    path: tuple[str, ...]
    unit: str


def source_name(name: str) -> SourceName | None:
    """Return the place of a metric of Spark's metrics system; None if another metric says the same.

    Args:
        name: such as ``jvm.heap.committed``, or ``executor.bytesRead.count``.
    """
    if name in AS_HEARTBEAT or name.startswith(_TOLD_BY_HEARTBEATS):
        return None
    if match := _AREA.fullmatch(name):
        return SourceName((*_MEMORY, _MEANT[match.group(1)], match.group(2).capitalize()), "By")
    if match := _POOL.fullmatch(name):
        pool, what = match.groups()
        groups = (*_MEMORY, *(() if pool == "Metaspace" else ("Pools",)), pool)
        return SourceName((*groups, what.title().replace("-", "")), "1" if what == "usage" else "By")
    if match := _BUFFERS.fullmatch(name):
        what, unit = _OF_BUFFERS[match.group(2)]
        return SourceName((*_MEMORY, match.group(1).capitalize(), what), unit)
    if match := _COLLECTOR.fullmatch(name):
        collector, what = match.groups()
        named, unit = ("Time", "ms") if what == "time" else ("Number", "")
        return SourceName(("Status", "JVM", "GarbageCollector", collector, named), unit)
    if name == _CPU_TIME:
        return SourceName(("Status", "JVM", "CPU", "Time"), "ns")
    unit = "MiBy" if name.endswith(_MEBIBYTES) else ""
    # Spark's counters have that suffix, too.
    name = _COUNT.sub("Number", name.removesuffix(".count").removesuffix(_MEBIBYTES))
    parts = tuple(part for part in name.split(".") if part)
    return SourceName(parts, unit) if parts else None


class SourceSeries:
    """The metrics of one executor that Spark's metrics system sends.

    Args:
        group: of the executor.
    """

    def __init__(self, group: MetricGroup) -> None:
        self._group = group
        self._values: dict[str, float] = {}
        self._paths: set[tuple[str, ...]] = set()

    def take(self, values: Mapping[str, float]) -> None:
        """Show new values, by Spark's names."""
        new = [name for name in values if name not in self._values]
        self._values.update(values)
        for name in new:
            place = source_name(name)
            if place is not None and place.path not in self._paths:
                self._paths.add(place.path)
                self._register(name, place)

    def _register(self, name: str, place: SourceName) -> None:
        described = f"{name} of Spark's metrics system."
        register_below(self._group, place.path, Gauge(lambda: self._values[name], place.unit, described))
