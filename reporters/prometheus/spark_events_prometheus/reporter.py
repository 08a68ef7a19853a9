"""Keeps what there is to scrape, and serves it."""

from __future__ import annotations

import logging
import threading
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from spark_events.api import (
    ConfigError,
    Counter,
    Gauge,
    Histogram,
    Meter,
    Metric,
    MetricGroup,
    MetricReporter,
)
from spark_events_prometheus import naming
from spark_events_prometheus.access import Authentication, Tls
from spark_events_prometheus.server import MetricsServer

logger = logging.getLogger("spark_events.prometheus")

Series = tuple[Metric, dict[str, str]]


class PrometheusReporter(MetricReporter, Collector):
    """Serves all metrics it knows of at ``/metrics``.

    Args:
        address: the address to listen on.
        ports: the first free one is taken.
        port_key: the configuration key of the ports, for the error message.
        authentication: who may scrape.
        tls: None serves plain HTTP.
        max_series: how many series of one metric are served.
    """

    def __init__(
        self,
        address: str,
        ports: range,
        port_key: str,
        authentication: Authentication = Authentication(),  # noqa: B008 - it is immutable
        tls: Tls | None = None,
        max_series: int = 2_000,
    ) -> None:
        self._max_series = max_series
        self._authentication = authentication
        self._tls = tls
        self._address = address
        self._ports = ports
        self._port_key = port_key
        self._families: dict[str, dict[tuple[tuple[str, str], ...], Series]] = {}
        self._lock = threading.Lock()
        self._server: MetricsServer | None = None
        self._gauge_errors = 0
        self._too_many: Counts[str] = Counts()

    @property
    def destination(self) -> str:
        """The URL to scrape; empty before ``open``."""
        if self._server is None:
            return ""
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"{'https' if self._tls else 'http'}://{host}:{self._server.port}/metrics"

    def open(self) -> None:
        """Take the first free port and serve."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        for port in self._ports:
            try:
                self._server = MetricsServer(self._address, port, registry, self._authentication, self._tls)
            except OSError as error:
                last_error = error
            else:
                return
        ports = f"{self._ports[0]}-{self._ports[-1]}" if len(self._ports) > 1 else str(self._ports[0])
        raise ConfigError(
            f"{self._port_key}: no port of {ports} can be taken on {self._address} ({last_error.strerror}); "
            "give another port, or a range such as 9249-9260"
        )

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Add one series; of two that Prometheus could not tell apart, the first stays."""
        labels = naming.labels(group.variables)
        key = tuple(sorted(labels.items()))
        full = naming.metric_name(group, name, metric)
        with self._lock:
            series = self._families.setdefault(full, {})
            if key in series:
                logger.warning("a second series %s%s is not served", name, labels)
            elif len(series) >= self._max_series:
                self._too_many[full] += 1
                if self._too_many[full] == 1:
                    logger.warning("%s has %d series; more are not served", full, self._max_series)
            else:
                series[key] = (metric, labels)

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Remove one series."""
        full, key = (
            naming.metric_name(group, name, metric),
            tuple(sorted(naming.labels(group.variables).items())),
        )
        with self._lock:
            series = self._families.get(full, {})
            if key in series and series[key][0] is metric:
                del series[key]
            if not series:
                self._families.pop(full, None)

    def collect(self) -> Iterator[Family]:
        """Yield all families with their values now; a gauge that raises is left out and counted."""
        with self._lock:
            families = sorted(
                (name, list(series.values())) for name, series in self._families.items() if series
            )
        for name, series in families:
            family = self._family(name, series)
            if family.samples:
                yield family
        with self._lock:
            too_many = dict(self._too_many)
        if too_many:
            dropped = CounterMetricFamily(
                "spark_reporter_series_dropped",
                "Series above max.series, which are not served.",
                labels=["metric"],
            )
            for name, count in too_many.items():
                dropped.add_metric([name], count)
            yield dropped
        errors = "Gauges that raised when they were read."
        yield CounterMetricFamily("spark_reporter_gauge_errors", errors, value=self._gauge_errors)

    def describe(self) -> Iterable[Family]:
        """Return nothing, so that registering does not read every gauge."""
        return []

    def _family(self, name: str, series: list[Series]) -> Family:
        first = series[0][0]
        family = _FAMILIES[type(first)](name, first.description or name)
        for metric, labels in series:
            try:
                _add(family, metric, labels)
            except Exception:
                self._gauge_errors += 1
                logger.debug("%s%s could not be read", name, labels, exc_info=True)
        return family


_FAMILIES: dict[type[Metric], Callable[[str, str], Family]] = {
    Counter: CounterMetricFamily,
    Gauge: GaugeMetricFamily,
    Histogram: HistogramMetricFamily,
    Meter: CounterMetricFamily,
}


def _add(family: Family, metric: Metric, labels: dict[str, str]) -> None:
    scale = naming.scale(metric)
    if isinstance(metric, Counter | Meter):
        family.add_sample(f"{family.name}_total", labels, metric.count * scale)
    elif isinstance(metric, Histogram):
        _add_histogram(family, metric, labels, scale)
    elif isinstance(metric, Gauge):
        value = metric.value
        if value is not None:
            family.add_sample(family.name, labels, value * scale)


def _add_histogram(family: Family, metric: Histogram, labels: dict[str, str], scale: float) -> None:
    seen = metric.snapshot()
    so_far = 0
    for bound, count in zip((*metric.bounds, float("inf")), seen.counts, strict=True):
        so_far += count
        le = "+Inf" if bound == float("inf") else repr(float(bound * scale))
        family.add_sample(f"{family.name}_bucket", {**labels, "le": le}, so_far)
    family.add_sample(f"{family.name}_count", labels, so_far)
    family.add_sample(f"{family.name}_sum", labels, seen.sum * scale)
