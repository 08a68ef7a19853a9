"""The factories of the Prometheus reporters: one that is scraped, and one that pushes."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_events.api import (
    ConfigError,
    MetricReporterFactory,
    Option,
    ReporterConfig,
    needs_extra,
    option_types,
)
from spark_events_prometheus.access import OPTIONS, authentication_from, tls_from

if TYPE_CHECKING:
    from spark_events_prometheus.pushgateway import PushgatewayReporter
    from spark_events_prometheus.reporter import PrometheusReporter

_EXTRA = ("prometheus", "prometheus-client")
PORT = Option(
    "port",
    option_types.PORTS,
    range(9249, 9261),
    "the port, or a range out of which the first free one is taken; 9249-9260 by default",
)
BIND = Option("bind.address", option_types.STRING, "127.0.0.1", "the address to listen on; 0.0.0.0 is all")
HOST_URL = Option.must("hostUrl", option_types.STRING, "URL of the Pushgateway")
JOB_NAME = Option.optional("jobName", option_types.STRING, "the label job; the application's name by default")
RANDOM_SUFFIX = Option(
    "randomJobNameSuffix",
    option_types.BOOL,
    False,
    "whether each run has a job of its own; otherwise it takes the place of the one before it",
)
DELETE = Option(
    "deleteOnShutdown", option_types.BOOL, True, "whether the metrics are deleted when the application ends"
)
GROUPING_KEY: Option[Mapping[str, str]] = Option(
    "groupingKey", option_types.MAP_OF_PAIRS, {}, "more labels of the group, key=value;key=value"
)
USERNAME = Option.optional("username", option_types.STRING, "the user of basic authentication")
PASSWORD = Option.optional("password", option_types.SECRET, "the user's password")
TIMEOUT = Option(
    "timeout", option_types.at_least(1, option_types.DURATION), 3_000, "how long one request may take"
)


class PrometheusReporterFactory(MetricReporterFactory):
    """Creates the Prometheus reporter."""

    options = (PORT, BIND, *OPTIONS)

    def create(self, config: ReporterConfig) -> PrometheusReporter:
        """Create the reporter; the port is taken by ``open``."""
        with needs_extra(*_EXTRA):
            from spark_events_prometheus.reporter import PrometheusReporter
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


class PushgatewayReporterFactory(MetricReporterFactory):
    """Creates the reporter that pushes to a Pushgateway."""

    options = (HOST_URL, JOB_NAME, RANDOM_SUFFIX, DELETE, GROUPING_KEY, USERNAME, PASSWORD, TIMEOUT)

    def create(self, config: ReporterConfig) -> PushgatewayReporter:
        """Create the reporter; the first report is the first request."""
        with needs_extra(*_EXTRA):
            from spark_events_prometheus.pushgateway import pushgateway_from
        return pushgateway_from(config)

    def probe(self, config: ReporterConfig) -> str:
        """Ask the Pushgateway whether it is ready."""
        return self.create(config).probe()
