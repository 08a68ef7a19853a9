"""Metrics, events and spans of your own Python code in Spark's tasks: ``from spark_events import task``.

They work in RDD functions, UDFs of all kinds, ``mapInPandas``, ``applyInPandas``, UDTFs and ``foreach``, in
batch and in streaming. Outside a task, and where nothing is attached, they do nothing.

What a task reports travels with its result, by PySpark's accumulators: no port, no thread, and each task
counts once, however often it was tried. This module needs nothing but Python's standard library.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

VARIABLE = "SPARK_EVENTS_TASK"
"""The environment variable with which ``attach`` tells workers the accumulator."""
MOST_SERIES = 500
MOST_VALUES = 5_000
MOST_EVENTS = 100
MOST_SPANS = 200
_LONGEST_NAME = 200
_LONGEST_TEXT = 4_096
_MOST_ATTRIBUTES = 50
_MOST_KEPT = 10_000
_TIMED_ONE_IN = 100
_SEVERITIES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_PROPERTIES = ("spark.jobGroup.id", "streaming.sql.batchId", "spark.sql.execution.id")

Key = tuple[str, str, tuple[tuple[str, str], ...]]
Value = bool | int | float | str


class _Report:
    """What one task has reported so far; it stands in PySpark's registry in the place of an accumulator.

    Attributes:
        metrics: those that have a value, by kind, name and labels.
        open: the numbers of spans that are open.
        dropped: how much was too much, by kind.
    """

    def __init__(self, context: Any) -> None:
        self._ids = {
            "stage": context.stageId(),
            "partition": context.partitionId(),
            "attempt": context.attemptNumber(),
            "task": context.taskAttemptId(),
            "properties": {key: context.getLocalProperty(key) for key in _PROPERTIES},
        }
        self.metrics: dict[Key, TaskMetric] = {}
        self.events: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.open: list[int] = []
        self.dropped: dict[str, int] = {}

    @property
    def _value(self) -> dict[str, Any]:
        """Read by PySpark at the end of a task that has succeeded, before the worker gets another."""
        return {
            **self._ids,
            "metrics": [(*key, metric._take()) for key, metric in self.metrics.items()],
            "events": self.events,
            "spans": [span for span in self.spans if "end_ns" in span],
            "dropped": self.dropped,
        }

    def drop(self, kind: str) -> None:
        """Count one thing too many."""
        self.dropped[kind] = self.dropped.get(kind, 0) + 1


def _registry() -> dict[int, Any]:
    from pyspark.accumulators import _accumulatorRegistry

    registry: dict[int, Any] = _accumulatorRegistry
    return registry


def _current() -> _Report | None:
    """Return the report of the task that runs now; None outside a task, or if nothing is attached."""
    accumulator = os.environ.get(VARIABLE)
    if accumulator is None:
        return None
    from pyspark import TaskContext

    registry, number = _registry(), int(accumulator)
    report = registry.get(number)
    if isinstance(report, _Report):
        return report
    context = TaskContext.get()
    if context is None:
        return None
    # PySpark empties the registry when a task begins, and sends what is in it when the task has succeeded.
    report = registry[number] = _Report(context)
    return report


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

    def _begin(self, first: Any) -> bool:
        """Return whether there is a value to add to now.

        Args:
            first: the value to begin a task with; where nothing is attached, nobody ever reads it.
        """
        report = _current()
        if report is None:
            if VARIABLE in os.environ:
                return False
        elif self._key not in report.metrics:
            if len(report.metrics) >= MOST_SERIES:
                report.drop("series")
                return False
            report.metrics[self._key] = self
        self._now = first
        return True

    def _take(self) -> Any:
        """Return the value, at the end of a task."""
        now, self._now = self._now, None
        return now


class TaskCounter(TaskMetric):
    """A count that only grows."""

    kind = "counter"
    __slots__ = ()

    def inc(self, amount: int = 1) -> None:
        """Add to the count.

        Raises:
            ValueError: the amount is negative.
        """
        if amount < 0:
            raise ValueError(f"a counter only grows, but {amount} is negative: use a gauge")
        try:
            self._now += amount
        except TypeError:
            self._begin(amount)


class TaskGauge(TaskMetric):
    """A value that goes up and down: the lowest, the highest and the last of all tasks are reported."""

    kind = "gauge"
    __slots__ = ()

    def set(self, value: float) -> None:
        """Set the value."""
        if self._now is None:
            self._begin((value, value, value))
        else:
            lowest, highest, _ = self._now
            self._now = min(lowest, value), max(highest, value), value


class TaskHistogram(TaskMetric):
    """How values are distributed; of each task the first 5,000 count, and it is said how many were more."""

    kind = "histogram"
    __slots__ = ()

    def update(self, value: float) -> None:
        """Add one value."""
        if self._now is None and not self._begin([]):
            return
        if len(self._now) < MOST_VALUES:
            self._now.append(float(value))
        elif (report := _current()) is not None:
            report.drop("values")


P = ParamSpec("P")
R = TypeVar("R")
_made: dict[tuple[Any, ...], TaskMetric] = {}
M = TypeVar("M", bound=TaskMetric)


def _metric(of_type: type[M], name: str, labels: dict[str, Any]) -> M:
    """Return the metric of a type, a name and labels: in a process the same one each time."""
    asked = (of_type, name, *labels.items())
    made = _made.get(asked)
    if made is None:
        pairs = sorted((_name(key), _name(value)) for key, value in labels.items())
        made = of_type((of_type.kind, _name(name), tuple(pairs)))
        if len(_made) < _MOST_KEPT:
            _made[asked] = made
    return made  # type: ignore[return-value]


class Metrics:
    """Makes metrics. Names and labels are as in Prometheus; a label is for what has few values.

    Asking for a metric costs ten times as much as adding to it, so keep one that is used for each row.
    """

    def counter(self, name: str, **labels: Any) -> TaskCounter:
        """Return a counter."""
        return _metric(TaskCounter, name, labels)

    def gauge(self, name: str, **labels: Any) -> TaskGauge:
        """Return a gauge."""
        return _metric(TaskGauge, name, labels)

    def histogram(self, name: str, **labels: Any) -> TaskHistogram:
        """Return a histogram."""
        return _metric(TaskHistogram, name, labels)


metrics = Metrics()


def measured(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that measures how often it is called, and how long every hundredth call takes.

    The counter ``udf_calls`` and the histogram ``udf_processing_time`` (in s) have the function's name as the
    label ``udf``. Put it below ``@udf``: Spark's own wrapper has to be the outer one. As in FLIP-485, most
    calls are not timed, because that would cost more than many functions.
    """
    name = getattr(function, "__name__", type(function).__name__)
    calls, times = metrics.counter("udf_calls", udf=name), metrics.histogram("udf_processing_time", udf=name)
    until_timed = 0

    @functools.wraps(function)
    def wrapper(*arguments: P.args, **named: P.kwargs) -> R:
        nonlocal until_timed
        calls.inc()
        until_timed -= 1
        if until_timed > 0:
            return function(*arguments, **named)
        until_timed = _TIMED_ONE_IN
        began = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            times.update(time.perf_counter() - began)

    return wrapper


class TaskSpan:
    """A span that is open, to which attributes can be added."""

    def __init__(self, attributes: dict[str, Value]) -> None:
        self._attributes = attributes

    def set_attribute(self, key: str, value: Any) -> None:
        """Set an attribute; all but numbers, booleans and texts become texts."""
        if len(self._attributes) < _MOST_ATTRIBUTES:
            self._attributes[str(key)[:_LONGEST_NAME]] = _plain(value)


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[TaskSpan]:
    """Measure a part of a task, as a span below that of its stage, or of the span around it.

    Args:
        name: of the span.
        attributes: numbers, booleans and texts; all else becomes text.
    """
    report = _current()
    opened = TaskSpan(_attributes(attributes))
    if report is None or len(report.spans) >= MOST_SPANS:
        if report is not None:
            report.drop("spans")
        yield opened
        return
    taken: dict[str, Any] = {
        "name": str(name)[:_LONGEST_NAME],
        "attributes": opened._attributes,
        "start_ns": time.time_ns(),
        "number": len(report.spans),
        "parent": report.open[-1] if report.open else None,
    }
    report.spans.append(taken)
    report.open.append(taken["number"])
    try:
        yield opened
    except BaseException as error:
        taken["error"] = (type(error).__name__, str(error)[:_LONGEST_TEXT])
        raise
    finally:
        taken["end_ns"] = time.time_ns()
        report.open.remove(taken["number"])


def event(name: str, body: str = "", severity: str = "INFO", **attributes: Any) -> None:
    """Report an event of this task.

    Args:
        name: such as ``RatesStale``.
        body: a sentence.
        severity: DEBUG, INFO, WARN, ERROR or FATAL.
        attributes: numbers, booleans and texts; all else becomes text.

    Raises:
        ValueError: the severity is none of these.
    """
    if severity not in _SEVERITIES:
        raise ValueError(f"severity {severity!r} is not one of {', '.join(_SEVERITIES)}")
    report = _current()
    if report is None:
        return
    if len(report.events) >= MOST_EVENTS:
        report.drop("events")
        return
    report.events.append(
        {
            "name": str(name)[:_LONGEST_NAME],
            "body": str(body)[:_LONGEST_TEXT],
            "severity": severity,
            "attributes": _attributes(attributes),
            "time_ns": time.time_ns(),
        }
    )


def _name(value: Any) -> str:
    return str(value)[:_LONGEST_NAME]


def _attributes(given: dict[str, Any]) -> dict[str, Value]:
    return {str(key)[:_LONGEST_NAME]: _plain(value) for key, value in list(given.items())[:_MOST_ATTRIBUTES]}


def _plain(value: Any) -> Value:
    """Return a value that the driver can take as it is; numpy's numbers, say, become Python's."""
    if isinstance(value, bool | int | float):
        return value if type(value) in (bool, int, float) else float(value)
    item = getattr(value, "item", None)
    if callable(item):
        try:
            plain = item()
        except (TypeError, ValueError):
            plain = None
        if isinstance(plain, bool | int | float):
            return plain
    return str(value)[:_LONGEST_TEXT]
