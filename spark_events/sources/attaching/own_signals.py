"""What an application's own code reports from its driver: metrics, events and spans of its own."""

from __future__ import annotations

import collections
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from spark_events.api import (
    ApplicationInfo,
    Counter,
    Event,
    Gauge,
    Histogram,
    Metric,
    MetricGroup,
    Severity,
    Span,
    SpanBuilder,
)
from spark_events.api.toolkit.uninterrupted import Uninterrupted
from spark_events.api.wrong_values import count_dropped, drop, finite_of, text_of
from spark_events.listeners.emitter import Emitter, Traces
from spark_events.listeners.long_texts import LONGEST_NAME
from spark_events.listeners.scopes import Scopes
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.tasks.looped_names import without_numbers
from spark_events.runtime.event_names import of_users
from spark_events.runtime.foreign_errors import with_type
from spark_events.runtime.log_once import logger
from spark_events.runtime.registry import Registry
from spark_events.sources.attaching.timed_reading import TimedReading
from spark_events.task.values import MOST_ATTRIBUTES, unpacked

_SCOPE = "spark_events.driver"
BOUNDS = tuple(factor * 10.0**power for power in range(-3, 7) for factor in (1, 2.5, 5))
"""Of the buckets of a histogram, as of those of tasks: 0.001, 0.0025, 0.005 and so on."""
_MOST_SERIES, _MOST_SERIES_OF_NAME, _OF_EACH_NAME = 10_000, 2_000, 10
"""As of tasks: what differs from file to file, say, takes nothing from other metrics."""
_MOST_WARNINGS = 20
_TAKEN_LABELS = ("app_name", "app_id")
_open: ContextVar[tuple[_OpenSpan, ...]] = ContextVar("spark_events_open_spans", default=())
M = TypeVar("M", bound=Metric)
_Pairs = tuple[tuple[str, str], ...]
_Registered = tuple[str, _Pairs, Metric]
"""The name of a metric, its labels, and the metric."""


@dataclass
class _OpenSpan:
    id: str
    trace_id: str
    ended: bool = False


class DriverGauge(Gauge):
    """A value that is set, or read by a function: what was given last counts. There is none before."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(lambda: self._value(), description=description)
        self._name = name
        self._value: Callable[[], Any] = lambda: None

    def set(self, value: float) -> None:
        """Set the value, as it is now: an object may compute its number each time."""
        number = finite_of(value)
        kept = value if number is None else number  # what is none is counted when it is read
        self._value = lambda: kept

    def read_by(self, read: Callable[[], float | int | None]) -> None:
        """Let a function return the value from now on."""
        self._value = TimedReading(self._name, read)


class OwnSignals(Uninterrupted[_Registered]):
    """Makes the metrics of an application's own code, and reports its events and spans.

    Where nothing is attached, all of it does nothing.

    Args:
        registry: has the reporters.
        application: whose code it is.
        settings: say how its series are named, and which traces are sampled.
    """

    def __init__(self, registry: Registry, application: ApplicationInfo, settings: ListenerSettings) -> None:
        super().__init__()
        self._clean = registry.redact_name
        scopes = Scopes(registry.root, application, settings.scopes)
        self._series, self._group = scopes.own_code(), scopes.own_code_run()
        self._traces = Traces(Emitter(scopes.events(), application), settings)
        self._process = os.getpid()
        self._made: dict[tuple[str, str, _Pairs], Metric] = {}
        self._series_of: collections.Counter[str] = collections.Counter()
        self._above_limit: set[str] = set()

    def counter(self, name: str, labels: dict[str, Any]) -> Counter:
        """Return a counter: the same one for the same name and labels."""
        return self._metric(name, labels, Counter, lambda: Counter(description=_COUNTED))

    def gauge(
        self, name: str, read: Callable[[], float | int | None] | None, labels: dict[str, Any]
    ) -> DriverGauge:
        """Return a gauge that is set, or one that is read: the same one for the same name and labels."""
        described = _SET if read is None else _READ
        gauge = self._metric(name, labels, DriverGauge, lambda: DriverGauge(_name_of(name), described))
        if callable(read):
            gauge.read_by(read)
        elif read is not None:
            drop("metric", _METHODS[DriverGauge], read, "is not a function that returns the value; use set()")
        return gauge

    def histogram(self, name: str, labels: dict[str, Any]) -> Histogram:
        """Return a histogram."""
        return self._metric(name, labels, Histogram, lambda: Histogram(BOUNDS, description=_MEASURED))

    def event(self, name: str, body: str, severity: Severity | str, attributes: Mapping[str, Any]) -> None:
        """Report an event."""
        event = Event.builder(_SCOPE, of_users(_name_of(name))).set_body(body).set_severity(severity)
        self._group.add_event(event.set_attributes(attributes).set_attribute("job_kind", "application"))

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[SpanBuilder]:
        """Measure a block as a span below the application's, or below the one around it."""
        application = self._traces.application
        around = [each for each in _open.get() if not each.ended]
        opened = _OpenSpan(secrets.token_hex(8), application.trace_id)
        # A span of an application that has ended meanwhile may be around it.
        own = [each for each in around if each.trace_id == application.trace_id]
        parent = own[-1].id if own else application.span_id
        span = Span.builder(_SCOPE, _name_of(name)).set_ids(application.trace_id, opened.id, parent)
        span.set_routine(False).set_attribute("job_kind", "application").set_attributes(attributes)
        _open.set((*around, opened))
        start_ms = time.time_ns() // 1_000_000
        try:
            yield span
        except GeneratorExit:  # of a generator of which nobody wants the rest
            raise
        except BaseException as error:
            span.set_error(with_type(error))
            raise
        finally:
            opened.ended = True  # rather than to reset the variable: a generator may end in another context
            span.set_times_ms(start_ms, max(start_ms, time.time_ns() // 1_000_000))
            if self._traces.is_sampled(application.trace_id):
                self._group.add_span(span)

    def _metric(self, name: str, labels: dict[str, Any], of_type: type[M], make: Callable[[], M]) -> M:
        if "labels" in labels:
            labels = unpacked(labels)
        if len(labels) > MOST_ATTRIBUTES:
            drop("metric", _METHODS[of_type], labels, f"has more than {MOST_ATTRIBUTES} labels")
            return make()
        pairs = tuple(sorted((_name_of(key), _name_of(value)) for key, value in labels.items()))
        key = of_type.__name__, _name_of(name), pairs
        if isinstance(made := self._made.get(key), of_type):
            return made
        if os.getpid() != self._process:
            return make()  # a forked child has no reporters, and another thread may have had the lock
        kin = without_numbers(key[1])
        if not self._has_room(kin):
            self._leave_out(key[1], kin)
            return make()
        metric = make()
        first = self._made.setdefault(key, metric)
        if first is metric:
            self._series_of[kin] += 1
            self._add((key[1], pairs, metric))
        return cast(M, first)

    def _has_room(self, kin: str) -> bool:
        """Return whether a metric may have another series: some of each name, up to twice as many in all."""
        made = len(self._made)
        most = _MOST_SERIES_OF_NAME if made < _MOST_SERIES else _OF_EACH_NAME
        return self._series_of[kin] < most and made < 2 * _MOST_SERIES

    def _leave_out(self, name: str, kin: str) -> None:
        """Count a series that is beyond the limits; the log names the first such metrics."""
        count_dropped("series")
        if kin not in self._above_limit and len(self._above_limit) < _MOST_WARNINGS:
            self._above_limit.add(kin)
            logger.warning(
                "metric %r: it is left out, as are further series of it and of metrics whose names differ in "
                "numbers alone, because these may have %s series, and all of the driver's code together %s "
                "(said once for each such name); use labels, and only for what has few values",
                name,
                f"{_MOST_SERIES_OF_NAME:,}",
                f"{_MOST_SERIES:,}",
            )

    def _take_in(self, item: _Registered) -> None:
        name, pairs, metric = item
        clean = tuple((key, self._clean(value)) for key, value in pairs)
        self._labeled(clean).register(self._clean(name), metric)

    def _labeled(self, pairs: tuple[tuple[str, str], ...]) -> MetricGroup:
        if not pairs:
            return self._series
        variables = {f"exported_{key}" if key in _TAKEN_LABELS else key: value for key, value in pairs}
        components = tuple(part for pair in variables.items() for part in pair)
        return self._series.child(components=components, variables=variables)


_METHODS: dict[type[Metric], str] = {
    Counter: "Attachment.counter",
    DriverGauge: "Attachment.gauge",
    Histogram: "Attachment.histogram",
}
"""As the user calls them."""
_COUNTED = "Counted by the driver's own code."
_SET = "Set by the driver's own code."
_READ = "Read from the driver's own code."
_MEASURED = "Measured by the driver's own code."


def _name_of(given: Any) -> str:
    """Return a name, or a label, at a length that a series may have: each scrape has it."""
    return text_of(given)[:LONGEST_NAME]
