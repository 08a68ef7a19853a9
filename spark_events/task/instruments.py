"""Metrics of a task: counters, gauges and histograms, which cost a task next to nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from spark_events.task.current import current_report, drop_value, finite_of, leave_out, say_once
from spark_events.task.driver_link import VARIABLE
from spark_events.task.report import MOST_SERIES, Key
from spark_events.task.values import NOT_GIVEN, name_of, taken, unpacked

MOST_VALUES = 5_000
_LARGEST = 2**63 - 1
"""As in OTLP, so that sums of counts stay numbers that can be sent."""
_MOST_KEPT = 10_000


class TaskMetric:
    """A metric by its name and labels; it may be kept, and Spark may send it to workers.

    Between tasks it has no value, and adding to that raises a TypeError: so nothing has to be asked first
    while it has one.
    """

    kind = ""
    __slots__ = ("_key", "_now")

    def __init__(self, key: Key) -> None:
        self._key = key
        self._now: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _metric, (type(self), self._key[1], dict(self._key[2]))

    def _begin(self, first: Any) -> None:
        """Begin a task with a value, if there is one; where nothing is attached, nobody ever reads it."""
        try:
            self._begin_or_raise(first)
        except Exception as error:
            say_once(f"task.metrics.{self.kind}", f"it failed with {type(error).__name__}")

    def _begin_or_raise(self, first: Any) -> None:
        report = current_report()
        if report is None:
            if not _in_driver and VARIABLE not in os.environ:
                self._now = first
            return
        if report.delivered:  # a thread of the task's has survived it
            return
        own = report.metrics.get(self._key)
        if own is None:
            if not report.has_room("series", self._key[1], len(report.metrics), MOST_SERIES):
                return
            # Other threads of a driver have values of their own; so this metric itself never has one there.
            own = report.metrics[self._key] = type(self)(self._key) if report.in_driver else self
        own.begin_or_add(first)

    def _drop(self, value: Any, why: str = "is not a finite number") -> None:
        drop_value(f"task.metrics.{self.kind}", value, f"for {self._key[1]!r} {why}")

    def begin_or_add(self, first: Any) -> None:
        """Begin with a value, or add it to the one that there is."""
        self._now = first if self._now is None else self._sum(self._now, first)

    def _sum(self, now: Any, more: Any) -> Any:
        raise NotImplementedError

    def take(self) -> Any:
        """Return the value, in Python's own numbers, at the end of a task; None if it is not a number."""
        now, self._now = self._now, None
        return None if now is None else self._plain(now)

    def _plain(self, now: Any) -> Any:
        raise NotImplementedError


class TaskCounter(TaskMetric):
    """A count that only grows."""

    kind = "counter"
    __slots__ = ()

    def inc(self, amount: float = 1) -> None:
        """Add to the count; an amount that is negative or no number is dropped: use a gauge for that."""
        if type(amount) is not int or not 0 <= amount <= _LARGEST:
            number = finite_of(amount)  # small types of libraries would overflow
            if number is None or not 0 <= number <= _LARGEST:
                self._drop(amount, "is not a number from 0 to 2^63: for what also shrinks, use a gauge")
                return
            amount = number
        try:
            self._now += amount
        except TypeError:
            self._begin(amount)

    def _sum(self, now: float, more: float) -> float:
        return now + more

    def _plain(self, now: float) -> float:
        if now > _LARGEST:
            self._drop(now, "is above 2^63 - 1 in one task, which is told in its place")
        return min(now, _LARGEST)


class TaskGauge(TaskMetric):
    """A value that goes up and down: the lowest, the highest and the last of all tasks are reported."""

    kind = "gauge"
    __slots__ = ()

    def set(self, value: float) -> None:
        """Set the value; what is not a finite number is dropped."""
        number = value if type(value) is float and value - value == 0 else finite_of(value)
        if number is None:
            self._drop(value)
            return
        now = self._now
        if now is None:
            self._begin((number, number, number))
        else:
            self._now = min(now[0], number), max(now[1], number), number

    def _sum(self, now: tuple[float, ...], more: tuple[float, ...]) -> tuple[float, ...]:
        return min(now[0], more[0]), max(now[1], more[1]), more[2]

    def _plain(self, now: tuple[float, ...]) -> tuple[float, ...]:
        return now


class TaskHistogram(TaskMetric):
    """How values are distributed; of each task the first 5,000 count, and it is said how many were more."""

    kind = "histogram"
    __slots__ = ()

    def update(self, value: float) -> None:
        """Add one value; what is not a finite number is dropped."""
        if type(value) is not float or value - value:  # of an infinite one, the difference is NaN
            number = finite_of(value)
            if number is None:
                self._drop(value)
                return
            value = float(number)
        now = self._now
        if now is None:
            self._begin([value])
        elif len(now) < MOST_VALUES:
            now.append(value)
        else:
            _count_dropped()

    def _sum(self, now: list[float], more: list[float]) -> list[float]:
        if len(now) < MOST_VALUES:
            now += more
        else:
            _count_dropped()
        return now

    def _plain(self, now: list[float]) -> list[float]:
        return now


def _count_dropped() -> None:
    if (report := current_report()) is not None:
        report.drop("values")


_made: dict[tuple[Any, ...], TaskMetric] = {}
_in_driver = False
M = TypeVar("M", bound=TaskMetric)


def _metric(of_type: type[M], name: str, labels: dict[str, Any]) -> M:
    """Return the metric of a type, a name and labels: in a process the same one each time."""
    if type(name) is not str:
        name = name_of(name)
    if "labels" in labels:
        labels = unpacked(labels)
    pairs = tuple((key, name_of(value)) for key, value in labels.items())
    asked = (of_type, name, pairs)
    made = _made.get(asked)
    if made is None:
        labeled = sorted((name_of(key), text) for key, text in pairs)
        made = of_type((of_type.kind, name_of(name), tuple(labeled)))
        if len(_made) < _MOST_KEPT:
            _made[asked] = made
    return made  # type: ignore[return-value]


def _asked(of_type: type[M], name: Any, others: Sequence[Any], labels: dict[str, Any]) -> M:
    """Return the metric that a call asks for, whatever names its labels have."""
    leave_out(f"task.metrics.{of_type.kind}", others)
    return _metric(of_type, taken(name, "name", labels), labels)


class Metrics:
    """Makes metrics. Names and labels are as in Prometheus; a label is for what has few values.

    No metric ever raises: what cannot be reported is dropped, counted, and logged once.

    Asking for a metric costs ten times as much as adding to it, so keep one that is used for each row.
    """

    def counter(self, name: str = NOT_GIVEN, /, *others: Any, **labels: Any) -> TaskCounter:
        """Return a counter.

        Example::

            bad_rows = task.counter("bad_rows", source="orders")
            bad_rows.inc()
        """
        return _asked(TaskCounter, name, others, labels)

    def gauge(self, name: str = NOT_GIVEN, /, *others: Any, **labels: Any) -> TaskGauge:
        """Return a gauge.

        Example::

            task.gauge("model_version").set(7)
        """
        return _asked(TaskGauge, name, others, labels)

    def histogram(self, name: str = NOT_GIVEN, /, *others: Any, **labels: Any) -> TaskHistogram:
        """Return a histogram.

        Example::

            task.histogram("lookup_seconds").update(0.02)
        """
        return _asked(TaskHistogram, name, others, labels)


metrics = Metrics()


def count_in_driver(in_driver: bool) -> None:
    """Let metrics have values in ``foreachBatch`` functions of this process, or no longer.

    Metrics that were used before have values that nobody reads, and forget them.
    """
    global _in_driver
    _in_driver = in_driver
    for metric in list(_made.values()):
        metric.take()
