"""All that one event log gives: events with their ids in order, spans, and the metrics' last values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from spark_events.api import (
    Event,
    EventReporter,
    EventReporterFactory,
    Gauge,
    Histogram,
    Metric,
    MetricGroup,
    MetricReporter,
    MetricReporterFactory,
    ReporterConfig,
    Span,
    SpanReporter,
    SpanReporterFactory,
)
from tests.support.event_log_reading import report_whole

_CONF = {
    "spark.events.reporter.told.factory.class": "tests.support.told_by_log:EventsFactory",
    "spark.traces.reporter.told.factory.class": "tests.support.told_by_log:SpansFactory",
    "spark.metrics.reporter.told.factory.class": "tests.support.told_by_log:MetricsFactory",
    "spark.traces.tasks.enabled": "true",
    "spark.events.issue.min-duration": "1ms",
}
_WAIT_MS = 60_000
_OF_NOW = {
    "canceledTime", "createdTime", "downtime", "failedTime", "finishedTime", "lastCheckpointAge",
    "lastSuccessTimestamp", "restartingTime", "runningTime", "statusAge", "uptime",
}  # fmt: skip
"""Metrics whose values depend on when they are asked."""


class _Told(EventReporter, SpanReporter, MetricReporter):
    """Keeps a line of each event and span, and of each metric when it goes."""

    last: ClassVar[_Told]
    plain: ClassVar[bool] = False
    """Whether lines have what is said itself, in place of its digest."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {"event": [], "span": [], "metric": []}
        self._metrics: dict[tuple[str, str], Metric] = {}

    def notify_of_added_event(self, event: Event) -> None:
        told = [event.id, event.name, event.class_scope, event.time_ms, event.severity, event.body]
        self._add(
            "event", f"{event.id} {event.name}", [*told, _sorted(event.variables), _sorted(event.attributes)]
        )

    def notify_of_added_span(self, span: Span) -> None:
        self._add("span", f"{span.trace_id} {span.span_id} {span.name}", repr(span))

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        self._metrics[_series(name, group)] = metric

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        series = _series(name, group)
        del self._metrics[series]
        self._add("metric", series[0], [series[1], _value(name, metric)])

    def add_metrics_that_stay(self) -> None:
        """Take the metrics that nobody has removed."""
        for series, metric in sorted(self._metrics.items(), key=lambda item: item[0]):
            self._add("metric", series[0], [series[1], _value(series[0].rpartition(".")[2], metric)])

    def _add(self, kind: str, name: str, told: object) -> None:
        text = json.dumps(told, default=str)
        said = text if _Told.plain else hashlib.sha256(text.encode()).hexdigest()[:12]
        self.lines[kind].append(f"{kind} {name} {said}")


def _series(name: str, group: MetricGroup) -> tuple[str, str]:
    return group.metric_identifier(name), json.dumps(_sorted(group.variables))


def _sorted(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: mapping[key] for key in sorted(mapping)}


def _value(name: str, metric: Metric) -> Any:
    if name in _OF_NOW:
        return None
    if isinstance(metric, Histogram):
        return repr(metric.snapshot())
    return metric.value if isinstance(metric, Gauge) else metric.count  # type: ignore[attr-defined]


class EventsFactory(EventReporterFactory):
    """Gives the reporter of all three kinds; which kind is asked for first, nobody knows."""

    def create(self, config: ReporterConfig) -> EventReporter:
        return _Told.last


class SpansFactory(SpanReporterFactory):
    """The same for spans."""

    def create(self, config: ReporterConfig) -> SpanReporter:
        return _Told.last


class MetricsFactory(MetricReporterFactory):
    """The same for metrics."""

    def create(self, config: ReporterConfig) -> MetricReporter:
        return _Told.last


def told_by(log: Path, plain: bool = False) -> list[str]:
    """Return a line of each event, span and metric of a log: what it is, and a digest of all that it says.

    Args:
        log: to be read.
        plain: whether lines have all that it says, in place of the digest.
    """
    _Told.last, _Told.plain = _Told(), plain
    report_whole(log, _CONF, _WAIT_MS)
    _Told.last.add_metrics_that_stay()
    told = _Told.last.lines
    return [*told["event"], *told["span"], *told["metric"]]
