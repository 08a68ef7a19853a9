"""The reporter of metrics: all of them each ``interval``, in as many requests as it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

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
    count_dropped,
    snake_case,
)
from spark_events_otlp.connection import choice_of_environment
from spark_events_otlp.encode import key_values, scope_prefix, text
from spark_events_otlp.options import BATCH_SIZE, HISTOGRAM, TEMPORALITY
from spark_events_otlp.reporter import OtlpReporter
from spark_events_otlp.series import MetricForm, Series, series_of
from spark_events_otlp.signals import METRICS

_SCOPE = scope_prefix("spark_events")
_MOST_REMOVED = 10_000
_TEMPORALITY = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
_TEMPORALITIES = ("cumulative", "delta", "lowmemory")
_AGGREGATION = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
_AGGREGATIONS = ("explicit_bucket_histogram", "base2_exponential_bucket_histogram")
logger = logging.getLogger("spark_events.otlp")
SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its attributes."""


class OtlpMetricReporter(OtlpReporter, MetricReporter, Scheduled):
    """Sends metrics.

    Cumulative points repeat what was counted since the series began, so that a lost request costs nothing
    but its moment. A delta that was not acknowledged goes into the next one.
    """

    def __init__(self, config: ReporterConfig) -> None:
        super().__init__(config, METRICS)
        self._batch_size = config.get(BATCH_SIZE)
        self._form = form_from(config)
        self._series: dict[SeriesKey, Series] = {}
        self._removed: dict[Series, str] = {}
        """Removed series with counts that are not reported yet, and their names."""
        self._read_errors = Counter("{series}", "Series that could not be read when they were reported.")
        errors = series_of(self._read_errors, [], self._form, time.time_ns())
        self._series["spark.reporter.read_errors", ()] = errors

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Add one series; of two that have all attributes in common, the first stays."""
        key = _key(name, group)
        full_name, attributes = key[0], dict(key[1])
        if key in self._series:
            count_dropped("series")
            logger.warning("a duplicate series %s%s is not reported", full_name, attributes)
            return
        self._series[key] = series_of(metric, key_values(attributes), self._form, time.time_ns())

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Remove one series; what it has counted since the last report is reported once more."""
        key = _key(name, group)
        series = self._series.get(key)
        if series is None or series.metric is not metric:
            return
        del self._series[key]
        if not isinstance(metric, Gauge):
            self._removed[series] = key[0]
        if len(self._removed) > _MOST_REMOVED:
            self._removed.pop(next(iter(self._removed)))

    def report(self) -> None:
        """Send all metrics.

        Raises:
            RetryLater: the collector is away; the next report makes up for it.
            Refused: it will never take one of the requests; the others were sent.
            PartlyRefused: it took all requests, but for some points.
        """
        last_refusal: Refused | PartlyRefused | None = None
        for batch in self._batches(time.time_ns()):
            records = [_SCOPE + message.SerializeToString() for message in batch.messages.values()]
            try:
                self._transport.deliver(self._signal.build(records, self._resource), len(batch.series))
            except (Refused, PartlyRefused) as error:
                last_refusal = error
            for series in batch.series:
                series.acknowledge()
                self._removed.pop(series, None)
        if last_refusal is not None:
            raise last_refusal

    def _batches(self, now_ns: int) -> Iterator[_Batch]:
        """Yield batches of a limited number of points, of all series that have a value."""
        batch = _Batch()
        for name, series in self._all_series():
            kind = (name, series.metric.shown_in.ucum, type(series))
            message = batch.messages.get(kind) or _empty_message(name, series.metric)
            try:
                if not series.add_point(message, now_ns):
                    continue
            except BaseException:  # of the user's own function: what else there is shall be sent
                self._read_errors.inc()
                logger.debug("%s could not be read", name, exc_info=True)
                continue
            batch.messages[kind] = message
            batch.series.append(series)
            if len(batch.series) >= self._batch_size:
                yield batch
                batch = _Batch()
        if batch.series:
            yield batch

    def _all_series(self) -> list[tuple[str, Series]]:
        """Return all series by name, removed ones before those that may have taken their place."""
        removed = [(name, series) for series, name in self._removed.items()]
        return [*removed, *((name, series) for (name, _), series in self._series.items())]


@dataclass(slots=True)
class _Batch:
    """The points of one request; each series has one point in it.

    Attributes:
        messages: by the name, the unit and the type of the metric: one name may have several.
    """

    messages: dict[tuple[str, str, type[Series]], MetricMessage] = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)


def _empty_message(name: str, metric: Metric) -> MetricMessage:
    unit = metric.shown_in.ucum
    return MetricMessage(name=text(name), description=text(metric.description), unit=text(unit))


def form_from(config: ReporterConfig) -> MetricForm:
    """Return how metrics are written: as configured, or as OTEL_* variables say."""
    temporality = config.get(TEMPORALITY) or choice_of_environment(_TEMPORALITY, _TEMPORALITIES)
    histogram = config.get(HISTOGRAM) or choice_of_environment(_AGGREGATION, _AGGREGATIONS)
    return MetricForm(delta=temporality in ("delta", "lowmemory"), exponential="exponential" in histogram)


def _key(name: str, group: MetricGroup) -> SeriesKey:
    full_name = ".".join(snake_case(part) for part in (*group.logical_scope, name))
    return full_name, tuple(sorted((key, value) for key, value in group.variables.items() if value != ""))
