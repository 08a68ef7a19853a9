"""The factories of the Prometheus reporters: one that is scraped, and one that pushes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from spark_events.api import ConfigError, MetricReporterFactory, ReporterConfig, needs_extra
from spark_events_prometheus.options import BIND_ADDRESS, PORT, PUSH_OPTIONS, SCRAPE_OPTIONS

if TYPE_CHECKING:
    from spark_events_prometheus.pushgateway import PushgatewayReporter
    from spark_events_prometheus.reporter import PrometheusReporter

_EXTRA = ("prometheus", "prometheus-client")


class PrometheusReporterFactory(MetricReporterFactory):
    """Creates the Prometheus reporter."""

    options = SCRAPE_OPTIONS

    def create(self, config: ReporterConfig) -> PrometheusReporter:
        """Create the reporter; the port is taken by ``open``."""
        with needs_extra(*_EXTRA):
            from spark_events_prometheus.reporter import PrometheusReporter
        return PrometheusReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Tell which port is free, and that earlier ones of the range are not."""
        address, taken = config.get(BIND_ADDRESS), 0
        for port in config.get(PORT):
            with socket.socket() as candidate:
                candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    candidate.bind((address, port))
                except OSError:
                    taken = taken or port
                    continue
                free = candidate.getsockname()[1]
            if taken:
                return f"{taken} is in use; metrics will be served on {free} of {address}"
            return f"port {free} of {address} is free"
        raise ConfigError(
            f"{config.key(PORT.name)}: no free port in {config.values.get('port', PORT.default)}"
        )


class PushgatewayReporterFactory(MetricReporterFactory):
    """Creates the reporter that pushes to a Pushgateway."""

    options = PUSH_OPTIONS

    def create(self, config: ReporterConfig) -> PushgatewayReporter:
        """Create the reporter; the first report is the first request."""
        with needs_extra(*_EXTRA):
            from spark_events_prometheus.pushgateway import PushgatewayReporter
        return PushgatewayReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Ask the Pushgateway whether it is ready."""
        return self.create(config).probe()
