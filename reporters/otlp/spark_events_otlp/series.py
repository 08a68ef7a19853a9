"""One metric with its attributes, as points of OTLP: cumulative, or what came since the last one."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from spark_events.api import (
    ExponentialSnapshot,
    HistogramSnapshot,
    Metric,
    MetricType,
    base_unit,
)


@dataclass(frozen=True, slots=True)
class Form:
    """How metrics are written.

    Attributes:
        delta: points say what came since the last that was taken, and not what there is in sum.
        exponential: histograms have exponential buckets, and not those of their bounds.
    """

    delta: bool = False
    exponential: bool = False

    @property
    def temporality(self) -> Any:
        """OTLP's number for it."""
        if self.delta:
            return AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        return AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


class Series(abc.ABC):
    """One metric with its attributes.

    Args:
        metric: tells the values.
        attributes: of each point.
        form: how it is written.
        born_ns: when it began, in ns since the epoch.
    """

    def __init__(self, metric: Any, attributes: list[KeyValue], form: Form, born_ns: int) -> None:
        self.metric = metric
        self.form = form
        self._attributes = attributes
        self._factor = base_unit(metric.unit).factor
        self._start_ns = born_ns
        self._taken: Any = None
        self._shown: Any = None
        self._shown_ns = born_ns

    def add_point(self, message: MetricMessage, now_ns: int) -> bool:
        """Add a point to the message of its metric; tell whether there is a value now.

        Raises:
            Exception: whatever the metric raises.
        """
        self._shown, self._shown_ns = self._read(), now_ns
        if self._shown is None:
            return False
        self._write(message, now_ns)
        return True

    def taken(self) -> None:
        """Take that the destination has the last point: the next delta begins there."""
        if self.form.delta:
            self._taken, self._start_ns = self._shown, self._shown_ns

    @abc.abstractmethod
    def _read(self) -> Any:
        """Return the metric's state; None where it has no value."""

    @abc.abstractmethod
    def _write(self, message: MetricMessage, now_ns: int) -> None:
        """Add the point of the state that was read."""

    def _began(self, points: Any, now_ns: int) -> Any:
        """Return a new point with times and attributes."""
        point = points.add(time_unix_nano=now_ns, start_time_unix_nano=self._start_ns)
        point.attributes.extend(self._attributes)
        return point

    def _number(self, point: NumberDataPoint, value: float) -> None:
        if self._factor == 1 and isinstance(value, int) and -(2**63) <= value < 2**63:
            point.as_int = value
        else:
            point.as_double = value * self._factor


class GaugeSeries(Series):
    """A gauge, as a gauge."""

    def _read(self) -> float | None:
        value = self.metric.value
        # What is no number in JSON is none for many backends either.
        return value if value is None or math.isfinite(value) else None

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        point = message.gauge.data_points.add(time_unix_nano=now_ns)
        point.attributes.extend(self._attributes)
        value = self._shown
        self._number(point, value if isinstance(value, int) else float(value))


class CounterSeries(Series):
    """A counter or a meter, as a monotonic sum."""

    def _read(self) -> int:
        count: int = self.metric.count
        return count

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        message.sum.is_monotonic = True
        message.sum.aggregation_temporality = self.form.temporality
        point = self._began(message.sum.data_points, now_ns)
        self._number(point, self._shown - (self._taken or 0))


class HistogramSeries(Series):
    """A histogram, with its own buckets or with exponential ones."""

    def _read(self) -> HistogramSnapshot:
        snapshot: HistogramSnapshot = self.metric.snapshot()
        return snapshot

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        seen = self._shown if self._taken is None else self._shown.minus(self._taken)
        kind = message.exponential_histogram if self.form.exponential else message.histogram
        kind.aggregation_temporality = self.form.temporality
        point = self._began(kind.data_points, now_ns)
        point.count, point.sum = seen.count, seen.sum * self._factor
        if self.form.exponential:
            self._write_exponential(point, seen.exponential)
        else:
            self._write_explicit(point, seen)

    def _write_explicit(self, point: HistogramDataPoint, seen: HistogramSnapshot) -> None:
        point.explicit_bounds.extend(bound * self._factor for bound in self.metric.bounds)
        point.bucket_counts.extend(seen.counts)

    def _write_exponential(self, point: ExponentialHistogramDataPoint, seen: ExponentialSnapshot) -> None:
        point.scale, point.zero_count = seen.scale, seen.zeros
        point.count = seen.zeros + sum(seen.positive.values()) + sum(seen.negative.values())
        for buckets, counts in ((point.positive, seen.positive), (point.negative, seen.negative)):
            if counts:
                first = min(counts)
                buckets.offset = first
                buckets.bucket_counts.extend(counts.get(n, 0) for n in range(first, max(counts) + 1))


_KINDS: dict[MetricType, type[Series]] = {
    MetricType.COUNTER: CounterSeries,
    MetricType.METER: CounterSeries,
    MetricType.GAUGE: GaugeSeries,
    MetricType.HISTOGRAM: HistogramSeries,
}


def series_of(metric: Metric, attributes: list[KeyValue], form: Form, born_ns: int) -> Series:
    """Return what writes a metric of any type."""
    return _KINDS[metric.type](metric, attributes, form, born_ns)
