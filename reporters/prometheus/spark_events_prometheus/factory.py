"""The factories of the Prometheus reporters: one that is scraped, and one that pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_events.api import MetricReporterFactory, ReporterConfig, needs_extra
from spark_events_prometheus.listening import cannot_listen, free_port, other_port_may_do
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
        """Tell which port is free, and that earlier ones of the range are not.

        Raises:
            ConfigError: none is, or the address cannot be listened on.
        """
        address, taken = config.get(BIND_ADDRESS), 0
        for port in config.get(PORT):
            try:
                free = free_port(address, port)
            except (OSError, TypeError, ValueError) as error:  # the last two of what can be no name
                last_error = error
                if not other_port_may_do(error):
                    break
                taken = taken or port
                continue
            if taken:
                return f"{taken} is in use; metrics will be served on {free} of {address}"
            return f"port {free} of {address} is free"
        raise cannot_listen(config, last_error)


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
