"""A bound on how many series a metric reporter is told of, and one series for those above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spark_events.api import (
    Counter,
    ExponentialSnapshot,
    Histogram,
    HistogramSnapshot,
    Meter,
    Metric,
    MetricGroup,
    at_scale,
)
from spark_events.runtime.log_once import logger
from spark_events.runtime.scope import ReporterGroupView

OVERFLOW = {"otel.metric.overflow": "true"}
"""The only variable of an overflow series, by OpenTelemetry's name."""
Tell = Callable[[str, Metric, str, MetricGroup], None]
ADDED, REMOVED = "notify_of_added_metric", "notify_of_removed_metric"


class OverflowCounter(Counter):
    """The sum of many counters."""

    def __init__(self, first: Counter) -> None:
        super().__init__(first.unit, first.description)
        self._parts: dict[int, Counter] = {}

    def add(self, part: Counter) -> None:
        """Let a counter be part of the sum."""
        self._parts[id(part)] = part

    def remove(self, part: Counter) -> None:
        """Let a counter go; what it has counted stays."""
        self.inc(part.count)
        self._parts.pop(id(part), None)

    @property
    def count(self) -> int:
        """The sum."""
        return super().count + sum(part.count for part in list(self._parts.values()))


class OverflowMeter(Meter):
    """The sum of many meters."""

    def __init__(self, first: Meter) -> None:
        super().__init__(unit=first.unit, description=first.description)
        self._parts: dict[int, Meter] = {}
        self._left = 0

    def add(self, part: Meter) -> None:
        """Let a meter be part of the sum."""
        self._parts[id(part)] = part

    def remove(self, part: Meter) -> None:
        """Let a meter go; what it has counted stays."""
        self._left += part.count
        self._parts.pop(id(part), None)

    @property
    def count(self) -> int:
        """The sum."""
        return self._left + sum(part.count for part in list(self._parts.values()))

    @property
    def rate(self) -> float:
        """The sum of the rates."""
        return sum(part.rate for part in list(self._parts.values()))


class OverflowHistogram(Histogram):
    """The values of many histograms with the same bounds."""

    def __init__(self, first: Histogram) -> None:
        super().__init__(first.bounds, first.unit, first.description)
        self._parts: dict[int, Histogram] = {}
        self._left = super().snapshot()

    def add(self, part: Histogram) -> None:
        """Let a histogram be part of this one; of one with other bounds the buckets are left out."""
        self._parts[id(part)] = part

    def remove(self, part: Histogram) -> None:
        """Let a histogram go; its values stay."""
        if self._parts.pop(id(part), None) is not None:
            self._left = _together(self._left, part.snapshot())

    def snapshot(self) -> HistogramSnapshot:
        """Return the values of all."""
        seen = self._left
        for part in list(self._parts.values()):
            seen = _together(seen, part.snapshot())
        return seen


_OVERFLOWS: dict[type[Metric], type[OverflowCounter] | type[OverflowMeter] | type[OverflowHistogram]] = {
    Counter: OverflowCounter,
    Meter: OverflowMeter,
    Histogram: OverflowHistogram,
}


class OverflowGroup(ReporterGroupView):
    """The place of an overflow series, in the logical scope of those that go into it."""

    @property
    def scope_components(self) -> tuple[str, ...]:
        """The logical scope, for nothing else is the same in all of them."""
        return (*self.logical_scope, "overflow")


class SeriesLimit:
    """What one metric reporter is told of.

    Args:
        title: how messages call the reporter.
        most: how many series there may be.
        most_of_metric: how many of one metric.
        tell: hands one of the reporter's calls over: its method, the metric, its name and its group.
    """

    def __init__(self, title: str, most: int, most_of_metric: int, tell: Tell) -> None:
        self._title = title
        self._most = most
        self._most_of_metric = most_of_metric
        self._tell = tell
        self._count_of: dict[tuple[tuple[str, ...], str], int] = {}
        self._overflows: dict[tuple[tuple[str, ...], str], Metric | None] = {}
        self._above: set[tuple[int, str]] = set()
        self.count = 0

    @property
    def above(self) -> int:
        """How many series the reporter is not told of."""
        return len(self._above)

    def added(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Take a metric that is there now."""
        key = (group.logical_scope, name)
        of_metric = self._count_of.get(key, 0)
        if self.count >= self._most or of_metric >= self._most_of_metric:
            self._add_above(metric, name, group)
            return
        self.count += 1
        self._count_of[key] = of_metric + 1
        self._tell(ADDED, metric, name, group)

    def removed(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Take that a metric is gone."""
        key = (group.logical_scope, name)
        if (id(group), name) in self._above:
            self._above.discard((id(group), name))
            overflow = self._overflows.get(key)
            if overflow is not None:
                overflow.remove(metric)  # type: ignore[attr-defined]
            return
        self.count -= 1
        self._count_of[key] -= 1
        if not self._count_of[key]:
            del self._count_of[key]
        self._tell(REMOVED, metric, name, group)

    def _add_above(self, metric: Metric, name: str, group: MetricGroup) -> None:
        key = (group.logical_scope, name)
        self._above.add((id(group), name))
        if key not in self._overflows:
            self._overflows[key] = overflow = self._overflow(metric)
            logger.warning(
                "%s has as many series as it may (max.series, max.series.per.metric): more of %s %s",
                self._title,
                ".".join((*group.logical_scope, name)),
                "are left out" if overflow is None else "go into one with otel.metric.overflow=true",
            )
            if overflow is not None:
                self._tell(ADDED, overflow, name, OverflowGroup(group, OVERFLOW, "."))
        found = self._overflows[key]
        if found is not None:
            found.add(metric)  # type: ignore[attr-defined]

    def _overflow(self, metric: Metric) -> Metric | None:
        """Return what takes metrics of a type in; None for gauges, whose values have no sum."""
        for kind, overflow in _OVERFLOWS.items():
            if isinstance(metric, kind):
                return overflow(metric)  # type: ignore[arg-type]
        return None


def _together(one: HistogramSnapshot, other: HistogramSnapshot) -> HistogramSnapshot:
    counts = one.counts
    if len(counts) == len(other.counts):
        counts = tuple(a + b for a, b in zip(counts, other.counts, strict=True))
    return HistogramSnapshot(counts, one.sum + other.sum, _merged(one.exponential, other.exponential))


def _merged(one: ExponentialSnapshot, other: ExponentialSnapshot) -> ExponentialSnapshot:
    scale = min(one.scale, other.scale)
    one, other = at_scale(one, scale), at_scale(other, scale)
    return ExponentialSnapshot(
        scale,
        one.zeros + other.zeros,
        _added(one.positive, other.positive),
        _added(one.negative, other.negative),
    )


def _added(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return {index: one.get(index, 0) + other.get(index, 0) for index in {*one, *other}}
