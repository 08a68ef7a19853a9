"""The factory of the Prometheus reporter."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from spark_events.api import (
    ConfigError,
    MetricReporterFactory,
    MissingExtraError,
    Option,
    ReporterConfig,
    option_types,
)
from spark_events_prometheus.access import OPTIONS, authentication_from, tls_from

if TYPE_CHECKING:
    from spark_events_prometheus.reporter import PrometheusReporter

PORT = Option(
    "port",
    option_types.PORTS,
    range(9249, 9261),
    "the port, or a range out of which the first free one is taken; 9249-9260 by default",
)
BIND = Option("bind.address", option_types.STRING, "127.0.0.1", "the address to listen on; 0.0.0.0 is all")


class PrometheusReporterFactory(MetricReporterFactory):
    """Creates the Prometheus reporter."""

    options = (PORT, BIND, *OPTIONS)

    def create(self, config: ReporterConfig) -> PrometheusReporter:
        """Create the reporter; the port is taken by ``open``."""
        try:
            from spark_events_prometheus.reporter import PrometheusReporter
        except ModuleNotFoundError as error:
            raise MissingExtraError("prometheus", error.name or "prometheus-client") from error
        return PrometheusReporter(
            config.get(BIND),
            config.get(PORT),
            config.key(PORT.name),
            authentication_from(config),
            tls_from(config),
        )

    def probe(self, config: ReporterConfig) -> str:
        """Tell which port is free."""
        for port in config.get(PORT):
            with socket.socket() as candidate:
                candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    candidate.bind((config.get(BIND), port))
                except OSError:
                    continue
                return f"port {candidate.getsockname()[1]} of {config.get(BIND)} is free"
        raise ConfigError(
            f"{config.key(PORT.name)}: no free port in {config.values.get('port', PORT.default)}"
        )
