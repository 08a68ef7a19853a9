"""A bound on how many series a metric reporter gets, and one overflow series for those above it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Generic, TypeVar

from spark_events.api import Counter, Histogram, HistogramSnapshot, Meter, Metric, MetricGroup, MetricType
from spark_events.api.toolkit.read_only import ReadOnly
from spark_events.runtime.log_once import logger
from spark_events.runtime.scope import ReporterGroupView

OVERFLOW = {"otel.metric.overflow": "true"}
"""The only variable of an overflow series, by OpenTelemetry's name."""
_MOST_OVERFLOWS = 100
"""How many names have an overflow series: more differ in whatever should be a variable."""
T = TypeVar("T", bound=Metric)
Tell = Callable[[str, Metric, str, MetricGroup], None]
ADDED, REMOVED = "notify_of_added_metric", "notify_of_removed_metric"


class _Sum(Generic[T]):
    """The common part of overflow metrics: their current metrics, and the counts of removed ones."""

    def __init__(self) -> None:
        self._parts: dict[int, T] = {}
        self._parts_lock = threading.RLock()

    def add(self, part: T) -> None:
        """Add a metric to the sum."""
        with self._parts_lock:
            self._parts[id(part)] = part

    def remove(self, part: T) -> None:
        """Remove a metric; its count stays in the sum."""
        with self._parts_lock:
            if self._parts.pop(id(part), None) is not None:
                self._keep(part)

    def _keep(self, part: T) -> None:
        raise NotImplementedError


class OverflowCounter(_Sum[Counter], Counter):
    """The sum of many counters."""

    def __init__(self, first: Counter) -> None:
        Counter.__init__(self, first.unit, first.description)
        _Sum.__init__(self)

    def _keep(self, part: Counter) -> None:
        self.inc(part.count)

    @property
    def count(self) -> int:
        """The sum."""
        with self._parts_lock:
            return self._count + sum(part.count for part in self._parts.values())


class OverflowMeter(_Sum[Meter], Meter):
    """The sum of many meters."""

    def __init__(self, first: Meter) -> None:
        Meter.__init__(self, unit=first.unit, description=first.description)
        _Sum.__init__(self)

    def _keep(self, part: Meter) -> None:
        self._count += part.count

    @property
    def count(self) -> int:
        """The sum."""
        with self._parts_lock:
            return self._count + sum(part.count for part in self._parts.values())

    @property
    def rate(self) -> float:
        """The sum of the rates."""
        with self._parts_lock:
            return sum(part.rate for part in self._parts.values())


class OverflowHistogram(_Sum[Histogram], Histogram):
    """The values of many histograms, in the buckets of the first one."""

    def __init__(self, first: Histogram) -> None:
        Histogram.__init__(self, first.bounds, first.unit, first.description)
        _Sum.__init__(self)
        self._left = Histogram.snapshot(self)

    def _keep(self, part: Histogram) -> None:
        self._left = self._left.plus(self._values_of(part))

    def snapshot(self) -> HistogramSnapshot:
        """Return the combined values of all histograms."""
        with self._parts_lock:
            return reduce(HistogramSnapshot.plus, map(self._values_of, self._parts.values()), self._left)

    def _values_of(self, part: Histogram) -> HistogramSnapshot:
        snapshot = part.snapshot()
        return snapshot if part.bounds == self.bounds else snapshot.with_bounds(part.bounds, self.bounds)


_OVERFLOWS: Mapping[MetricType, Callable[[Any], _Sum[Any]]] = {
    MetricType.COUNTER: OverflowCounter,
    MetricType.METER: OverflowMeter,
    MetricType.HISTOGRAM: OverflowHistogram,
}


class OverflowGroup(ReporterGroupView):
    """The group of an overflow series, in the logical scope of the series that it sums up."""

    @property
    def scope_components(self) -> tuple[str, ...]:
        """The logical scope, because nothing else is the same in all of them."""
        return (*self.logical_scope, "overflow")


class SeriesLimit:
    """The series that one metric reporter gets, within a limit.

    Args:
        title: the reporter's name in messages.
        most: the most series there may be.
        most_of_metric: the most series of a single metric.
        tell: passes a call to the reporter, given its method, the metric, its name and its group.
        variables: of overflow series, besides the one that marks them: what all of the series have.
    """

    def __init__(
        self,
        title: str,
        most: int,
        most_of_metric: int,
        tell: Tell,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._title = title
        self._most = most
        self._most_of_metric = most_of_metric
        self._tell = tell
        self._overflow_variables = ReadOnly({**(variables or {}), **OVERFLOW})
        self._count_of: dict[tuple[tuple[str, ...], str], int] = {}
        self._overflows: dict[tuple[tuple[str, ...], str], _Sum[Any] | None] = {}
        self._shown: list[tuple[Metric, str, MetricGroup]] = []
        self._above: set[tuple[int, str]] = set()
        self._has_many_names = False
        self.count = 0

    @property
    def above(self) -> int:
        """How many series the reporter does not get."""
        return len(self._above)

    def added(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Called when a metric is added."""
        key = (group.logical_scope, name)
        of_metric = self._count_of.get(key, 0)
        if self.count >= self._most or of_metric >= self._most_of_metric:
            self._add_above(metric, name, group)
            return
        self.count += 1
        self._count_of[key] = of_metric + 1
        self._tell(ADDED, metric, name, group)

    def removed(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Called when a metric is removed."""
        key = (group.logical_scope, name)
        if (id(group), name) in self._above:
            self._above.discard((id(group), name))
            overflow = self._overflows.get(key)
            if overflow is not None:
                overflow.remove(metric)
            return
        self.count -= 1
        self._count_of[key] -= 1
        if not self._count_of[key]:
            del self._count_of[key]
        self._tell(REMOVED, metric, name, group)

    def close(self) -> None:
        """Remove the overflow series, which nothing else removes."""
        for series in self._shown:
            self._tell(REMOVED, *series)
        self._shown.clear()

    def _add_above(self, metric: Metric, name: str, group: MetricGroup) -> None:
        key = (group.logical_scope, name)
        self._above.add((id(group), name))
        if key not in self._overflows and len(self._overflows) >= _MOST_OVERFLOWS:
            if not self._has_many_names:
                self._has_many_names = True
                logger.warning(
                    "%s has reached max-series with ever new names, such as %s: all further names are left "
                    "out; what differs should be a variable",
                    self._title,
                    ".".join((*group.logical_scope, name)),
                )
            return
        if key not in self._overflows:
            make = _OVERFLOWS.get(metric.type)  # none for gauges, whose values have no sum
            self._overflows[key] = overflow = make(metric) if make else None
            logger.warning(
                "%s has reached max-series or max-series-per-metric: further series of %s %s",
                self._title,
                ".".join((*group.logical_scope, name)),
                "are left out" if overflow is None else "share one with otel.metric.overflow=true",
            )
            if isinstance(overflow, Metric):
                overflow.shown_in = metric.shown_in
                series = overflow, name, OverflowGroup(group, self._overflow_variables, ".")
                self._shown.append(series)
                self._tell(ADDED, *series)
        overflow = self._overflows[key]
        if isinstance(overflow, Metric) and overflow.type is metric.type:
            overflow.add(metric)
