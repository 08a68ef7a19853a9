"""One metric with its attributes, as points of OTLP: cumulative ones, or deltas."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    ExponentialHistogramDataPoint,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage

from spark_events.api import ExponentialSnapshot, HistogramSnapshot, Metric, MetricType


@dataclass(frozen=True, slots=True)
class MetricForm:
    """The form of the points.

    Attributes:
        delta: points have the values since the last acknowledged one, and not all values.
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
        born_ns: when it began, in ns since the epoch.
    """

    def __init__(self, metric: Any, attributes: list[KeyValue], form: MetricForm, born_ns: int) -> None:
        self.metric = metric
        self._form = form
        self._attributes = attributes
        self._factor = metric.shown_in.factor
        self._start_ns = born_ns
        self._state: Any = None
        self._state_ns = born_ns
        self._acknowledged: Any = None
        """The state that the next delta begins at; None for none."""

    def add_point(self, message: MetricMessage, now_ns: int) -> bool:
        """Add a point to the message of its metric; tell whether there is a value now.

        Raises:
            Exception: whatever the metric raises.
        """
        self._state, self._state_ns = self._read(), now_ns
        if self._state is None:
            return False
        self._write(message, now_ns)
        return True

    def acknowledge(self) -> None:
        """Called when the destination has the last point: the next delta begins there."""
        if self._form.delta:
            self._acknowledged, self._start_ns = self._state, self._state_ns

    @abc.abstractmethod
    def _read(self) -> Any:
        """Return the metric's state; None where it has no value."""

    @abc.abstractmethod
    def _write(self, message: MetricMessage, now_ns: int) -> None:
        """Add the point of the state that was read."""

    def _new_point(self, points: Any, now_ns: int) -> Any:
        """Add a point with times and attributes, and return it."""
        point = points.add(time_unix_nano=now_ns, start_time_unix_nano=self._start_ns)
        point.attributes.extend(self._attributes)
        return point

    def _set_number(self, point: NumberDataPoint, value: float) -> None:
        """Set a point's value in the base unit; whole numbers stay whole where the unit is the base."""
        if self._factor == 1 and isinstance(value, int) and -(2**63) <= value < 2**63:
            point.as_int = value
        else:
            point.as_double = value * self._factor


class GaugeSeries(Series):
    """A gauge, as a gauge."""

    def _read(self) -> float | None:
        value = self.metric.value
        # JSON has neither NaN nor infinity, and so have many backends.
        return value if value is None or math.isfinite(value) else None

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        point = message.gauge.data_points.add(time_unix_nano=now_ns)
        point.attributes.extend(self._attributes)
        self._set_number(point, self._state if isinstance(self._state, int) else float(self._state))


class CounterSeries(Series):
    """A counter or a meter, as a monotonic sum."""

    def _read(self) -> Any:
        return self.metric.count

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        message.sum.is_monotonic = True
        message.sum.aggregation_temporality = self._form.temporality
        point = self._new_point(message.sum.data_points, now_ns)
        self._set_number(point, self._state - (self._acknowledged or 0))


class HistogramSeries(Series):
    """A histogram, with its own buckets or with exponential ones."""

    def _read(self) -> Any:
        return self.metric.snapshot()

    def _write(self, message: MetricMessage, now_ns: int) -> None:
        since: HistogramSnapshot | None = self._acknowledged
        snapshot = self._state if since is None else self._state.minus(since)
        histogram = message.exponential_histogram if self._form.exponential else message.histogram
        histogram.aggregation_temporality = self._form.temporality
        point = self._new_point(histogram.data_points, now_ns)
        point.count, point.sum = snapshot.count, snapshot.sum * self._factor
        if self._form.exponential:
            _set_exponential_buckets(point, snapshot.exponential)
        else:
            point.explicit_bounds.extend(bound * self._factor for bound in self.metric.bounds)
            point.bucket_counts.extend(snapshot.counts)


def _set_exponential_buckets(point: ExponentialHistogramDataPoint, snapshot: ExponentialSnapshot) -> None:
    point.scale, point.zero_count = snapshot.scale, snapshot.zeros
    point.count = snapshot.zeros + sum(snapshot.positive.values()) + sum(snapshot.negative.values())
    for buckets, counts in ((point.positive, snapshot.positive), (point.negative, snapshot.negative)):
        if counts:
            first = min(counts)
            buckets.offset = first
            buckets.bucket_counts.extend(counts.get(index, 0) for index in range(first, max(counts) + 1))


_SERIES_OF: dict[MetricType, type[Series]] = {
    MetricType.COUNTER: CounterSeries,
    MetricType.METER: CounterSeries,
    MetricType.GAUGE: GaugeSeries,
    MetricType.HISTOGRAM: HistogramSeries,
}


def series_of(metric: Metric, attributes: list[KeyValue], form: MetricForm, born_ns: int) -> Series:
    """Return the series of a metric, by the metric's type."""
    return _SERIES_OF[metric.type](metric, attributes, form, born_ns)
