"""The reporter of metrics: all of them each ``interval``, in as many requests as it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from spark_events.api import (
    Counter,
    Gauge,
    Metric,
    MetricGroup,
    MetricReporter,
    PartlyRefused,
    Refused,
    ReporterConfig,
    Scheduled,
    base_unit,
    snake_case,
)
from spark_events_otlp.encode import key_values, text
from spark_events_otlp.factory import BATCH_SIZE, HISTOGRAM, TEMPORALITY
from spark_events_otlp.resource import resource_from
from spark_events_otlp.series import Form, Series, series_of
from spark_events_otlp.signals import METRICS
from spark_events_otlp.transport import environment, transport_from

_SCOPE = "spark_events"
_MOST_LEAVING = 10_000
logger = logging.getLogger("spark_events.otlp")
Key = tuple[str, tuple[tuple[str, str], ...]]


class OtlpMetricReporter(MetricReporter, Scheduled):
    """Sends metrics.

    Cumulative points repeat what was counted since the series began, so that a lost request costs nothing
    but its moment. A delta that was not acknowledged goes into the next one.

    Args:
        config: as it is configured.
    """

    def __init__(self, config: ReporterConfig) -> None:
        self._transport = transport_from(config, METRICS)
        self._resource = resource_from(config)
        self._batch_size = config.get(BATCH_SIZE)
        self._form = form_from(config)
        self._series: dict[Key, Series] = {}
        self._leaving: dict[Series, str] = {}
        self._errors = Counter("{series}", "Series that could not be read when they were reported.")
        self._series["spark.reporter.read_errors", ()] = series_of(
            self._errors, [], self._form, time.time_ns()
        )

    @property
    def destination(self) -> str:
        """The endpoint."""
        return self._transport.endpoint

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Add one series; of two that have all attributes in common, the first stays."""
        key = _key(name, group)
        if key in self._series:
            logger.warning("a second series %s%s is not reported", key[0], dict(key[1]))
            return
        attributes = key_values(dict(key[1]))
        self._series[key] = series_of(metric, attributes, self._form, time.time_ns())

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Remove one series; what it has counted since the last report is reported once more."""
        key = _key(name, group)
        series = self._series.get(key)
        if series is None or series.metric is not metric:
            return
        del self._series[key]
        if not isinstance(metric, Gauge):
            self._leaving[series] = key[0]
        if len(self._leaving) > _MOST_LEAVING:
            self._leaving.pop(next(iter(self._leaving)))

    def report(self) -> None:
        """Send all metrics.

        Raises:
            RetryLater: the collector is away; the next report makes up for it.
            Refused: it will never take one of the requests; the others were sent.
            PartlyRefused: it took all requests, but for some points.
        """
        wrong: Refused | PartlyRefused | None = None
        now_ns = time.time_ns()
        for request, sent in self._requests(now_ns):
            try:
                self._transport.deliver(request.SerializeToString())
            except (Refused, PartlyRefused) as error:
                wrong = error
            for series in sent:
                series.taken()
                self._leaving.pop(series, None)
        if wrong is not None:
            raise wrong

    def probe(self) -> str:
        """Send an empty request."""
        return self._transport.probe()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _requests(self, now_ns: int) -> Iterator[tuple[ExportMetricsServiceRequest, list[Series]]]:
        """Yield requests of a limited number of points, and the series that are in each."""
        request, messages, sent = self._empty()
        for name, series in self._all():
            message = messages.get(name) or self._message(name, series.metric)
            try:
                if not series.add_point(message, now_ns):
                    continue
            except Exception:
                self._errors.inc()
                logger.debug("%s could not be read", name, exc_info=True)
                continue
            messages[name] = message
            sent.append(series)
            if len(sent) >= self._batch_size:
                yield self._complete(request, messages), sent
                request, messages, sent = self._empty()
        if sent:
            yield self._complete(request, messages), sent

    def _all(self) -> list[tuple[str, Series]]:
        """Return all series by name, those that leave before the ones that may have taken their place."""
        leaving = [(name, series) for series, name in self._leaving.items()]
        return [*leaving, *((key[0], series) for key, series in self._series.items())]

    def _empty(self) -> tuple[ExportMetricsServiceRequest, dict[str, MetricMessage], list[Series]]:
        request = ExportMetricsServiceRequest()
        request.resource_metrics.add().resource.CopyFrom(self._resource)
        return request, {}, []

    def _complete(
        self, request: ExportMetricsServiceRequest, messages: dict[str, MetricMessage]
    ) -> ExportMetricsServiceRequest:
        scope = request.resource_metrics[0].scope_metrics.add()
        scope.scope.name = _SCOPE
        scope.metrics.extend(messages.values())
        return request

    def _message(self, name: str, metric: Metric) -> MetricMessage:
        unit = base_unit(metric.unit).ucum
        return MetricMessage(name=text(name), description=text(metric.description), unit=text(unit))


def form_from(config: ReporterConfig) -> Form:
    """Return how metrics are written: as configured, or as OTEL_* variables say."""
    temporality = config.get(TEMPORALITY) or environment("TEMPORALITY_PREFERENCE", METRICS) or "cumulative"
    histogram = config.get(HISTOGRAM) or environment("DEFAULT_HISTOGRAM_AGGREGATION", METRICS) or "explicit"
    return Form(temporality.lower() in ("delta", "lowmemory"), "exponential" in histogram.lower())


def _key(name: str, group: MetricGroup) -> Key:
    full = ".".join(snake_case(part) for part in (*group.logical_scope, name))
    return full, tuple(sorted((key, value) for key, value in group.variables.items() if value != ""))
