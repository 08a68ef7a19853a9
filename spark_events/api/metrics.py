"""The types of metrics. A metric holds a value; its name and variables belong to its group."""

from __future__ import annotations

import bisect
import enum
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.api.exponential import ExponentialBuckets, ExponentialSnapshot
from spark_events.api.toolkit.uninterrupted import Uninterrupted
from spark_events.api.toolkit.units import BaseUnit, base_unit
from spark_events.api.wrong_values import LARGEST, drop, finite_of, text_of


class MetricType(enum.Enum):
    """Types of metrics, with the names that metric filters use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    METER = "meter"


class Metric:
    """The base of all metrics. None of them raises: a value that it cannot have is dropped and counted.

    Attributes:
        unit: a UCUM unit (``ms``, ``By``, ``{row}``), from which each reporter makes its own; empty where
            the value has none.
        description: one sentence for the person who reads the chart.
        shown_in: the unit in which reporters show it: the base unit, unless its name is defined with another.
    """

    type: MetricType
    shown_in: BaseUnit

    def __init__(self, unit: str = "", description: str = "") -> None:
        self.unit = unit if type(unit) is str else text_of(unit)
        self.description = description if type(description) is str else text_of(description)
        self.shown_in = base_unit(self.unit)


def _growth_of(amount: Any, where: str) -> Any:
    """Return by how much a count grows, as a number of Python's own; None, and a word in the log, if by none.

    Args:
        amount: of whatever type.
        where: it was handed over.
    """
    number = finite_of(amount)
    if number is not None and 0 <= number <= LARGEST:
        return number
    drop("metric", where, amount, "is not a number from 0 to 2^63: for what also shrinks, use a gauge")
    return None


_counting = threading.RLock()
"""Of all counters; a signal handler may count, too."""


def _renew_lock() -> None:
    """Take another lock: a forked child has no thread that would release one that was held at the fork."""
    global _counting
    _counting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Counter(Metric):
    """A count that only grows; safe to use from any thread."""

    type = MetricType.COUNTER

    def __init__(self, unit: str = "", description: str = "") -> None:
        super().__init__(unit, description)
        self._count = 0

    def inc(self, amount: int = 1) -> None:
        """Add to the count; an amount that is negative or no number is dropped: use a gauge for that."""
        if type(amount) is not int or not 0 <= amount <= LARGEST:
            added = _growth_of(amount, "Counter.inc")
            if added is None:
                return
            amount = added
        with _counting:
            self._count += amount

    @property
    def count(self) -> int:
        """The count so far."""
        return self._count


class Gauge(Metric):
    """A value that is read when it is reported.

    Args:
        read: returns the value; called on the reporter's thread, so it must be quick and safe to call
            there. None means that there is no value now, and the series is left out.
        unit: as in ``Metric``.
        description: as in ``Metric``.
    """

    type = MetricType.GAUGE

    def __init__(self, read: Callable[[], float | int | None], unit: str = "", description: str = "") -> None:
        super().__init__(unit, description)
        self.read = read

    @property
    def value(self) -> float | int | None:
        """The value now; raises whatever the gauge's function raises."""
        return self.read()


@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    """The state of a histogram.

    Attributes:
        counts: of each bucket, the unbounded one last.
        sum: of all values.
        exponential: the same values in exponential buckets, in the base unit (s for ms).
    """

    counts: tuple[int, ...]
    sum: float
    exponential: ExponentialSnapshot

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.counts)

    def plus(self, other: HistogramSnapshot) -> HistogramSnapshot:
        """Return the sum of both.

        Args:
            other: the state of a histogram with the same bounds; see ``with_bounds``.

        Raises:
            ValueError: it has another number of buckets.
        """
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return HistogramSnapshot(counts, self.sum + other.sum, self.exponential.plus(other.exponential))

    def with_bounds(self, own: Sequence[float], bounds: Sequence[float]) -> HistogramSnapshot:
        """Return the same values in other buckets.

        Args:
            own: the upper bounds of its buckets.
            bounds: those of the buckets that are wanted, of which each value gets the one that has the upper
                bound of its own: no value is counted below a bound that it may be above.
        """
        counts = [0] * (len(bounds) + 1)
        for bound, count in zip((*own, math.inf), self.counts, strict=True):
            counts[bisect.bisect_left(bounds, bound)] += count
        return HistogramSnapshot(tuple(counts), self.sum, self.exponential)

    def minus(self, earlier: HistogramSnapshot) -> HistogramSnapshot:
        """Return the difference to an earlier snapshot of the same histogram."""
        counts = tuple(a - b for a, b in zip(self.counts, earlier.counts, strict=True))
        exponential = self.exponential.minus(earlier.exponential)
        return HistogramSnapshot(counts, self.sum - earlier.sum, exponential)


class Histogram(Metric, Uninterrupted[float]):
    """Counts of values by bucket; safe to use from any thread.

    Args:
        bounds: upper bounds of the buckets, growing; one more bucket without a bound comes after them.
        unit: as in ``Metric``.
        description: as in ``Metric``.
    """

    type = MetricType.HISTOGRAM

    def __init__(self, bounds: Sequence[float], unit: str = "", description: str = "") -> None:
        Metric.__init__(self, unit, description)
        Uninterrupted.__init__(self)
        self.bounds: tuple[float, ...] = _bounds_of(bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self._sum = 0.0
        self._exponential = ExponentialBuckets()
        self._factor = self.shown_in.factor

    def update(self, value: float) -> None:
        """Add one value; what is not a finite number is dropped."""
        if type(value) is not float or value - value:  # of an infinite one, the difference is NaN
            number = finite_of(value)
            if number is None:
                drop("metric", "Histogram.update", value, "is not a finite number")
                return
            value = number
        self._add(value)

    def _take_in(self, item: float) -> None:
        self._counts[bisect.bisect_left(self.bounds, item)] += 1
        self._sum += item
        self._exponential.update(item * self._factor)

    def snapshot(self) -> HistogramSnapshot:
        """Return the current counts."""
        with self._alone():
            return HistogramSnapshot(tuple(self._counts), self._sum, self._exponential.snapshot())


def _bounds_of(bounds: Any) -> tuple[float, ...]:
    try:
        given = list(bounds)
    except Exception:  # of what is not a sequence
        given = [bounds]
    numbers = []
    for bound in given:
        number = finite_of(bound)
        if number is not None:
            numbers.append(number)
        elif type(bound) is not float or bound != math.inf:
            drop("metric", "Histogram", bound, "is not the bound of a bucket")
    return tuple(sorted(numbers))


class Meter(Metric, Uninterrupted[int]):
    """A count and how fast it grows (Flink's ``MeterView``); safe to use from any thread.

    Args:
        span_s: over how many seconds the rate is taken; a whole number from 1 on.
        unit: as in ``Metric``; of the count. The rate is in that unit a second.
        description: as in ``Metric``.
        clock: a time in s that only grows.
    """

    type = MetricType.METER

    def __init__(
        self,
        span_s: int = 60,
        unit: str = "",
        description: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        Metric.__init__(self, unit, description)
        Uninterrupted.__init__(self)
        span = finite_of(span_s)
        if span is None or span < 1:
            drop(
                "metric",
                "Meter",
                span_s,
                "is not a time of a second or more; the rate is taken over a minute",
            )
            span = 60
        self._span_s = int(span)
        self._clock = clock
        self._began = clock()
        self._count = 0
        self._by_second: deque[list[int]] = deque()

    def mark(self, amount: int = 1) -> None:
        """Add to the count; an amount that is negative or no number is dropped: use a gauge for that."""
        if type(amount) is not int or not 0 <= amount <= LARGEST:
            added = _growth_of(amount, "Meter.mark")
            if added is None:
                return
            amount = added
        self._add(amount)

    def _take_in(self, item: int) -> None:
        second = int(self._clock())
        self._count += item
        if self._by_second and self._by_second[-1][0] == second:
            self._by_second[-1][1] += item
        else:
            self._forget(second)
            self._by_second.append([second, item])

    @property
    def count(self) -> int:
        """The count so far."""
        return self._count

    @property
    def rate(self) -> float:
        """Growth per second over the last ``span_s`` seconds, or since the meter was created."""
        now = self._clock()
        with self._alone():
            self._forget(int(now))
            grown = sum(amount for _, amount in self._by_second)
        return grown / max(1.0, min(float(self._span_s), now - self._began))

    def _forget(self, second: int) -> None:
        while self._by_second and self._by_second[0][0] <= second - self._span_s:
            self._by_second.popleft()
