"""Reporters that misbehave, loaded as ``module:Class`` the way a stranger's are."""

from __future__ import annotations

import sys
import threading
from typing import Any, ClassVar

from spark_events.api import (
    ConfigError,
    Counter,
    Event,
    EventReporter,
    EventReporterFactory,
    Failure,
    FailureContext,
    FailureEnricher,
    Gauge,
    Metric,
    MetricGroup,
    MetricReporter,
    MetricReporterFactory,
    ReporterConfig,
    RetryLater,
    Scheduled,
    Span,
    SpanReporter,
    SpanReporterFactory,
)


class Collecting(EventReporter):
    """Keeps what it is given."""

    instances: ClassVar[list[Collecting]] = []

    def __init__(self, config: ReporterConfig) -> None:
        self.config = config
        self.events: list[Event] = []
        self.calls: list[str] = []
        Collecting.instances.append(self)

    def open(self) -> None:
        self.calls.append("open")

    def notify_of_added_event(self, event: Event) -> None:
        self.events.append(event)
        self.calls.append("event")

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        self.calls.append("close")


class CollectingFactory(EventReporterFactory):
    shares_threads = True
    keeps_history = True

    def create(self, config: ReporterConfig) -> EventReporter:
        return Collecting(config)


class SlowFactory(EventReporterFactory):
    """Makes a reporter that takes 2 ms for each event."""

    def create(self, config: ReporterConfig) -> EventReporter:
        class Slow(Collecting):
            def notify_of_added_event(self, event: Event) -> None:
                threading.Event().wait(0.002)
                super().notify_of_added_event(event)

        return Slow(config)


class CollectingSpans(SpanReporter):
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def notify_of_added_span(self, span: Span) -> None:
        self.spans.append(span)


class CollectingSpansFactory(SpanReporterFactory):
    last: ClassVar[CollectingSpans | None] = None

    def create(self, config: ReporterConfig) -> SpanReporter:
        CollectingSpansFactory.last = CollectingSpans()
        return CollectingSpansFactory.last


class CollectingMetrics(MetricReporter):
    def __init__(self) -> None:
        self.metrics: dict[str, tuple[Metric, dict[str, str]]] = {}

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        self.metrics[group.metric_identifier(name)] = (metric, dict(group.variables))

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        del self.metrics[group.metric_identifier(name)]


class CollectingMetricsFactory(MetricReporterFactory):
    last: ClassVar[CollectingMetrics | None] = None

    def create(self, config: ReporterConfig) -> MetricReporter:
        CollectingMetricsFactory.last = CollectingMetrics()
        return CollectingMetricsFactory.last


class KeepingMetrics(CollectingMetrics):
    """Keeps the values that there are when it is closed."""

    values: ClassVar[dict[str, Any]] = {}

    def close(self) -> None:
        KeepingMetrics.values = {
            name: metric.value for name, (metric, _) in self.metrics.items() if isinstance(metric, Gauge)
        }


class KeepingMetricsFactory(MetricReporterFactory):
    def create(self, config: ReporterConfig) -> MetricReporter:
        return KeepingMetrics()


class Unopened(CollectingMetrics):
    def open(self) -> None:
        raise ConfigError("its port is taken")


class UnopenedMetricsFactory(MetricReporterFactory):
    def create(self, config: ReporterConfig) -> MetricReporter:
        return Unopened()


class RaisesInConstructor(EventReporterFactory):
    def __init__(self) -> None:
        raise RuntimeError("no constructor today")

    def create(self, config: ReporterConfig) -> EventReporter:
        raise AssertionError("unreachable")


class TextlessError(Exception):
    """Raises when it is asked for its text."""

    def __str__(self) -> str:
        raise RuntimeError("no text today")

    __repr__ = __str__


class _Raising(Collecting):
    def _maybe(self, method: str) -> None:
        if self.config.get_string("in", "") in (method, "all"):
            raise _error(self.config, method)

    def open(self) -> None:
        self._maybe("open")

    def notify_of_added_event(self, event: Event) -> None:
        self._maybe("event")

    def flush(self) -> None:
        self._maybe("flush")

    def close(self) -> None:
        self._maybe("close")


class Raising(EventReporterFactory):
    """Raises in the method that its option ``in`` names, each time, what ``raises`` names."""

    def create(self, config: ReporterConfig) -> EventReporter:
        if config.get_string("in", "") == "create":
            raise _error(config, "create")
        return _Raising(config)


def _error(config: ReporterConfig, method: str) -> BaseException:
    kinds = {"exit": SystemExit(3), "textless": TextlessError()}
    return kinds.get(config.get_string("raises", ""), RuntimeError(f"no {method} today"))


class OddOptions(EventReporterFactory):
    """Declares options that are none."""

    options = (5,)  # type: ignore[assignment]

    def create(self, config: ReporterConfig) -> EventReporter:
        return Collecting(config)


class _Blocking(_Raising):
    def _maybe(self, method: str) -> None:
        if self.config.get_string("in", "") == method:
            threading.Event().wait()


class Blocking(EventReporterFactory):
    """Blocks forever in the method that its option ``in`` names."""

    shares_threads = True

    def create(self, config: ReporterConfig) -> EventReporter:
        if config.get_string("in", "") == "create":
            threading.Event().wait()
        return _Blocking(config)


class _Away(Collecting):
    """Is away for a number of flushes."""

    def flush(self) -> None:
        self.calls.append("flush")
        if self.calls.count("flush") <= self.config.get_int("flushes", 0):
            raise RetryLater("away", after_ms=1)


class Away(EventReporterFactory):
    def create(self, config: ReporterConfig) -> EventReporter:
        return _Away(config)


class Exits(EventReporterFactory):
    """Ends the process, or means to."""

    def create(self, config: ReporterConfig) -> EventReporter:
        sys.exit(5)


class WrongKind(EventReporterFactory):
    """Makes something that is not an event reporter."""

    def create(self, config: ReporterConfig) -> EventReporter:
        return CollectingSpans()  # type: ignore[return-value]


class RaisingEnricher(FailureEnricher):
    def process_failure(self, failure: Failure, context: FailureContext) -> dict[str, str | None]:
        raise RuntimeError("no label today")


class BlockingEnricher(FailureEnricher):
    def process_failure(self, failure: Failure, context: FailureContext) -> dict[str, str | None]:
        threading.Event().wait()
        return {}


class MuteLabel:
    """Raises where its text is asked for."""

    def __str__(self) -> str:
        raise ValueError("no words")


class SlowLabel:
    """Takes long to say its text."""

    def __str__(self) -> str:
        threading.Event().wait(20)
        return "late"


class OddLabelsEnricher(FailureEnricher):
    """Adds labels that are no texts, and too many and too long ones."""

    def process_failure(self, failure: Failure, context: FailureContext) -> dict[str, str | None]:
        few: dict[Any, Any] = {"number": 1, "mute": MuteLabel(), MuteLabel(): "x", "long": "x" * 9_999}
        return {**few, "n" * 9_999: "x", **{f"label {number}": "x" for number in range(1_000)}}


class ExitingEnricher(OddLabelsEnricher):
    """Is of a module that is a program."""

    def __init__(self) -> None:
        sys.exit(2)


class SlowLabelEnricher(FailureEnricher):
    """Adds a label that takes long to become text."""

    def process_failure(self, failure: Failure, context: FailureContext) -> dict[str, str | None]:
        slow: Any = SlowLabel()
        return {"slow": slow}


class OddEnricher(FailureEnricher):
    def process_failure(self, failure: Failure, context: FailureContext) -> dict[str, str | None]:
        return {"null": None, "empty": "", "kind": context.job_kind}


class Pushing(CollectingMetrics, Scheduled):
    """Keeps the values of all counters at each report; raises in the reports that its option names."""

    last: ClassVar[Pushing | None] = None
    error: ClassVar[Exception] = RuntimeError("no report today")

    def __init__(self, config: ReporterConfig) -> None:
        super().__init__()
        self.reports: list[list[int]] = []
        self._raise_in = config.get_list("raise.in")
        Pushing.last = self

    def report(self) -> None:
        self.reports.append([m.count for m, _ in self.metrics.values() if isinstance(m, Counter)])
        if str(len(self.reports)) in self._raise_in:
            raise self.error


class PushingFactory(MetricReporterFactory):
    def create(self, config: ReporterConfig) -> MetricReporter:
        return Pushing(config)
