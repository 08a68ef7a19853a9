"""Keeps all series, and serves them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from functools import lru_cache

from spark_events.api import Counter, Metric, MetricGroup, MetricReporter, ReporterConfig, count_dropped
from spark_events_prometheus import naming
from spark_events_prometheus.access import authentication_from, tls_from
from spark_events_prometheus.exposition import (
    CREATED,
    HISTOGRAM_PARTS,
    OPENMETRICS_END,
    CounterFamily,
    Family,
    HistogramFamily,
    Labels,
    family_class,
    render,
)
from spark_events_prometheus.linger import LEAVES_WITHIN_S, ask_to_leave, can_hand_over, hand_over
from spark_events_prometheus.listening import bound, cannot_listen, other_port_may_do
from spark_events_prometheus.options import BIND_ADDRESS, LINGER, LINGER_UNSCRAPED, PORT
from spark_events_prometheus.server import MetricsServer

_PAUSE_S = 0.05
logger = logging.getLogger("spark_events.prometheus")


class SeriesReporter(MetricReporter):
    """Keeps all series, by name and labels, and renders them.

    Args:
        taken: labels that whoever gets the series gives to all of them: theirs are ``exported_…`` instead, as
            Prometheus has it.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = frozenset(taken)
        self._families: dict[str, Family] = {}
        self._lock = threading.Lock()
        self._read_errors = Counter("{series}", "Series that could not be read when they were asked for.")
        self._error_family = CounterFamily("spark_reporter_read_errors", self._read_errors)
        self._error_family.add((), self._read_errors)

    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Add one series; of two that Prometheus could not tell apart, the first stays."""
        full_name, labels = self._name_and_labels(metric, name, group)
        new_family = family_class(metric)
        exposed = new_family.exposed_as(full_name)
        with self._lock:
            if exposed not in self._families:
                if clash := self._clash(exposed, new_family):
                    _leave_out(clash)
                    return
                self._families[exposed] = new_family(full_name, metric)
            family = self._families[exposed]
            try:
                added = family.add(labels, metric)
            except ValueError as error:
                _leave_out(str(error))
                return
        if not added:
            _leave_out(f"another one is {full_name}{dict(labels)}, too")

    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Remove one series."""
        full_name, labels = self._name_and_labels(metric, name, group)
        exposed = family_class(metric).exposed_as(full_name)
        with self._lock:
            if family := self._families.get(exposed):
                family.remove(labels, metric)
                if not family:
                    del self._families[exposed]

    def _name_and_labels(self, metric: Metric, name: str, group: MetricGroup) -> tuple[str, Labels]:
        labels = naming.labels(group.variables)
        for label in sorted(self._taken & labels.keys()):
            exported = f"exported_{label}"
            while exported in labels or exported in self._taken:
                exported = f"exported_{exported}"
            labels[exported] = labels.pop(label)
        return naming.metric_name(group, name, metric), tuple(sorted(map(_pair, labels.items())))

    def _clash(self, exposed: str, new_family: type[Family]) -> str:
        """Return why a new family would make parsers refuse everything; empty if it would not."""
        parts = (*HISTOGRAM_PARTS, CREATED)
        pairs = [(exposed, f"{exposed}{part}") for part in parts if new_family is HistogramFamily]
        pairs += [(exposed.removesuffix(part), exposed) for part in parts if exposed.endswith(part)]
        for whole, part in pairs:
            other = self._families.get(part if whole == exposed else whole)
            if other is not None and (whole == exposed or isinstance(other, HistogramFamily)):
                return f"{part} is a part of the histogram {whole}"
        return ""

    def render(self, openmetrics: bool = False) -> bytes:
        """Return all series with their values now; one that cannot be read is left out and counted."""
        with self._lock:
            families = [self._families[name] for name in sorted(self._families)]
        body, errors = render(families, openmetrics)
        self._read_errors.inc(errors)
        error_counts, _ = render([self._error_family], openmetrics)
        return (body + error_counts + (OPENMETRICS_END if openmetrics else "")).encode("utf-8", "replace")


def _leave_out(why: str) -> None:
    count_dropped("series")
    logger.warning("a series is not served: %s", why)


class PrometheusReporter(SeriesReporter):
    """Serves all metrics it knows of at ``/metrics``.

    Raises:
        ConfigError: a file of TLS cannot be used, or one of user and password is given without the other.
    """

    def __init__(self, config: ReporterConfig) -> None:
        super().__init__()
        self._address = config.get(BIND_ADDRESS)
        self._ports = config.get(PORT)
        self._config = config
        self._linger_ms = config.get(LINGER) if can_hand_over() else 0
        self._awaits_scrape = config.get(LINGER_UNSCRAPED)
        self._authentication = authentication_from(config)
        self._tls = tls_from(config)
        self._server: MetricsServer | None = None

    @property
    def destination(self) -> str:
        """The URL to scrape; empty before ``open``."""
        if self._server is None:
            return ""
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"{'https' if self._tls else 'http'}://{host}:{self._server.port}/metrics"

    def open(self) -> None:
        """Serve on the first port that is free, or else on one that has only the last page of another driver.

        Where this tells the end of another process, nothing is served before ``close``: the next driver may
        need the port.

        Raises:
            ConfigError: there is none, or the address cannot be listened on.
        """
        if self._config.tells_end:
            return
        for serve in (self._serve, self._serve_after_last_page):
            for port in self._ports:
                try:
                    self._server = serve(port)
                except (OSError, TypeError, ValueError) as error:  # the last two of what can be no name
                    last_error = error
                    if not port or not other_port_may_do(error):
                        raise cannot_listen(self._config, error) from error
                else:
                    return
        raise cannot_listen(self._config, last_error)

    def close(self) -> None:
        """Stop serving; a process of its own shows the last values to those who have scraped."""
        if self._server is not None:
            self._server.close(self._linger_ms, self._awaits_scrape)
            self._server = None
        elif self._config.tells_end and self._linger_ms:
            self._hand_over_end()

    def _hand_over_end(self) -> None:
        """Let a process of its own serve the end, whoever scrapes it: that is not known to this process."""
        why: object = "port 0 is another one each time"
        for port in filter(None, self._ports):
            try:
                with bound(self._address, port) as server:
                    server.listen()
                    hand_over(server, self.render(), (), self._authentication, self._tls, self._linger_ms)
                    return
            except (OSError, TypeError, ValueError) as error:  # taken; or no process can be started
                why = error
        logger.warning("%s: the end is not served: %s", self._config.key(PORT.name), why)

    def _serve(self, port: int) -> MetricsServer:
        return MetricsServer(self._address, port, self.render, self._authentication, self._tls)

    def _serve_after_last_page(self, port: int) -> MetricsServer:
        """Serve once what is there has left, if that is the last page of another driver."""
        # What was there may be gone by now, so one attempt is made however it answers.
        leaves = ask_to_leave(self._address, port)
        until_s = time.monotonic() + (2 * LEAVES_WITHIN_S if leaves else 0)
        while True:
            try:
                return self._serve(port)
            except OSError:
                if time.monotonic() > until_s:
                    raise
                time.sleep(_PAUSE_S)


@lru_cache(4_096)
def _pair(label: tuple[str, str]) -> tuple[str, str]:
    """Return the same object for the same label, of which many series have the same."""
    return label
