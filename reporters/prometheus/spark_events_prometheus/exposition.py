"""Prometheus' two text formats; everything constant is rendered only once, when a series is added.

prometheus-client renders each label of each sample at each scrape; for 100,000 series that takes seconds.
"""

from __future__ import annotations

import abc
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from spark_events.api import Gauge, Histogram, Metric, MetricType
from spark_events_prometheus.naming import bounded_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_END = "# EOF\n"
OPENMETRICS_CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
HISTOGRAM_PARTS = ("_bucket", "_count", "_sum")
"""What the names of a histogram's samples end with."""
CREATED = "_created"
"""What the name of one more sample of theirs ends with in OpenMetrics; here, none has it."""
logger = logging.getLogger("spark_events.prometheus")

Labels = tuple[tuple[str, str], ...]


class Family(abc.ABC):
    """All series of one name.

    Args:
        name: without a counter's ``_total``.
        first: the metric whose unit and description are the family's.

    Attributes:
        type: ``counter``, ``gauge`` or ``histogram``.
        exposed: the name as Prometheus stores it.
    """

    type: ClassVar[str]

    def __init__(self, name: str, first: Metric) -> None:
        self.name = name
        self.exposed = self.exposed_as(name)
        self._unit, self._scale = first.shown_in.suffix, float(first.shown_in.factor)
        self._help = bounded_text(first.description or name)
        self._series: dict[Labels, Metric] = {}
        # Scrapes run on threads of their own while series are added and removed.
        self._version = 0
        self._prepared: tuple[int, list[Any], list[Any]] = (-1, [], [])
        """Of which version, and the sources and prefixes of its series."""

    def __len__(self) -> int:
        return len(self._series)

    @classmethod
    def exposed_as(cls, name: str) -> str:
        """Return a name as Prometheus stores it."""
        return f"{name}_total" if cls.type == "counter" else name

    def add(self, labels: Labels, metric: Metric) -> bool:
        """Add one series; return whether it was added: False if one with these labels exists already.

        Raises:
            ValueError: its metric is of another type than the others.
        """
        expected = family_class(metric)
        if not isinstance(self, expected):
            raise ValueError(f"{self.name} is a {self.type}, and cannot also be a {expected.type}")
        if labels in self._series:
            return False
        self._series[labels] = metric
        self._version += 1
        return True

    def remove(self, labels: Labels, metric: Metric) -> None:
        """Remove one series, if it is that metric's."""
        if self._series.get(labels) is metric:
            del self._series[labels]
            self._version += 1

    def head(self, openmetrics: bool, name_is_taken: bool = False) -> str:
        """Return the lines that come before the samples.

        Args:
            openmetrics: whether they are in OpenMetrics' format, which names a counter without ``_total``.
            name_is_taken: whether another family has a name of a counter's, so that this is not called one.
        """
        if name_is_taken and openmetrics:
            name, kind, unit = self.exposed, "unknown", ""
        else:
            name, kind, unit = self.name if openmetrics else self.exposed, self.type, self._unit
        described = self._help.replace("\\", "\\\\").replace("\n", "\\n")
        if openmetrics:
            described = described.replace('"', '\\"')
        lines = f"# HELP {name} {described}\n# TYPE {name} {kind}\n"
        return f"{lines}# UNIT {name} {unit}\n" if openmetrics and unit else lines

    def samples(self) -> tuple[str, int]:
        """Return the lines of all samples, and how many series could not be read."""
        version, sources, prefixes = self._prepared
        if version != self._version:
            version = self._version
            series = list(self._series.items())
            sources = [self._source(metric) for _, metric in series]
            prefixes = [self._prefix(labels, metric) for labels, metric in series]
            self._prepared = (version, sources, prefixes)
        return self._samples(sources, prefixes)

    def _source(self, metric: Metric) -> Any:
        """Return the object that is asked for a metric's value at each scrape."""
        return metric

    def _prefix(self, labels: Labels, metric: Metric) -> Any:
        """Return the beginning of a series' line, or of each of its lines."""
        return _line_prefix(self.exposed, labels)

    @abc.abstractmethod
    def _samples(self, sources: list[Any], prefixes: list[Any]) -> tuple[str, int]:
        """Return what ``samples`` does, from the sources and prefixes of all series."""


class CounterFamily(Family):
    """Counters and meters."""

    type = "counter"

    def _samples(self, sources: list[Any], prefixes: list[Any]) -> tuple[str, int]:
        return _lines(prefixes, [counter.count for counter in sources], self._scale), 0


class GaugeFamily(Family):
    """Gauges."""

    type = "gauge"

    def _source(self, metric: Metric) -> Callable[[], Any]:
        assert isinstance(metric, Gauge)
        # The function itself and not the gauge: with many series, every extra lookup is noticeable.
        return metric.read if type(metric) is Gauge else lambda: metric.value

    def _samples(self, sources: list[Any], prefixes: list[Any]) -> tuple[str, int]:
        try:
            return _lines(prefixes, [read() for read in sources], self._scale), 0
        except BaseException:  # of a user's own function, say one that awaits what was cancelled
            return self._samples_one_by_one(sources, prefixes)

    def _samples_one_by_one(self, sources: list[Any], prefixes: list[Any]) -> tuple[str, int]:
        lines: list[str] = []
        errors = 0
        for prefix, read in zip(prefixes, sources, strict=True):
            try:
                value = read()
                lines.append(_lines([prefix], [None if value is None else float(value)], self._scale))
            except BaseException:
                errors += 1
                logger.debug("%s could not be read", prefix, exc_info=True)
        return "".join(lines), errors


class HistogramFamily(Family):
    """Histograms."""

    type = "histogram"

    def _prefix(self, labels: Labels, metric: Metric) -> list[str]:
        assert isinstance(metric, Histogram)
        bounds = [*(repr(float(bound * self._scale)) for bound in metric.bounds), "+Inf"]
        bucket, *totals_of = (f"{self.name}{part}" for part in HISTOGRAM_PARTS)
        buckets = [_line_prefix(bucket, (*labels, ("le", bound))) for bound in bounds]
        totals = [_line_prefix(total, labels) for total in totals_of]
        return [*buckets, *totals]

    def _samples(self, sources: list[Any], prefixes: list[Any]) -> tuple[str, int]:
        texts = []
        for histogram, prefixes_of_histogram in zip(sources, prefixes, strict=True):
            snapshot = histogram.snapshot()
            values = (*accumulate(snapshot.counts), snapshot.count, snapshot.sum * self._scale)
            texts.append(_lines(prefixes_of_histogram, values, 1.0))
        return "".join(texts), 0


_FAMILIES: Mapping[MetricType, type[Family]] = {
    MetricType.COUNTER: CounterFamily,
    MetricType.METER: CounterFamily,
    MetricType.GAUGE: GaugeFamily,
    MetricType.HISTOGRAM: HistogramFamily,
}


def family_class(metric: Metric) -> type[Family]:
    """Return the class of the family of a metric, by the metric's type."""
    return _FAMILIES[metric.type]


def render(families: Collection[Family], openmetrics: bool) -> tuple[str, int]:
    """Return all families in one of the text formats, and how many series could not be read."""
    parts: list[str] = []
    errors = 0
    exposed = {family.exposed for family in families}
    taken = set(exposed)
    for family in families:
        if isinstance(family, HistogramFamily):
            taken.update(f"{family.name}{part}" for part in HISTOGRAM_PARTS)
        if not isinstance(family, GaugeFamily):
            taken.add(f"{family.name}{CREATED}")
    for family in families:
        text, unread = family.samples()
        errors += unread
        if text:
            clashes = family.name in taken or f"{family.name}{CREATED}" in exposed
            parts += (family.head(openmetrics, clashes and family.name != family.exposed), text)
    return "".join(parts), errors


def _lines(prefixes: Sequence[str], values: Sequence[Any], scale: float) -> str:
    """Return a line for each value that is not None.

    Raises:
        TypeError: a value is not a number.
    """
    if None in values:
        known = [pair for pair in zip(prefixes, values, strict=True) if pair[1] is not None]
        prefixes, values = [prefix for prefix, _ in known], [value for _, value in known]
    pairs = zip(prefixes, values, strict=True)
    text = "".join([f"{prefix}{float(value) * scale!r}\n" for prefix, value in pairs])
    if math.isfinite(sum(values)):
        return text
    for of_python, of_prometheus in (("nan", "NaN"), ("inf", "+Inf"), ("-inf", "-Inf")):
        text = text.replace(f" {of_python}\n", f" {of_prometheus}\n")
    return text


def _line_prefix(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """Return the beginning of a sample's line, up to its value."""
    pairs = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
    return f"{name}{{{pairs}}} " if pairs else f"{name} "


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
