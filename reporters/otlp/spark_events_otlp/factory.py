"""The factories of the OTLP reporters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_events.api import (
    EventReporterFactory,
    MetricReporterFactory,
    ReporterConfig,
    SpanReporterFactory,
    needs_extra,
)
from spark_events_otlp.options import METRIC_OPTIONS, RECORD_OPTIONS

if TYPE_CHECKING:
    from spark_events_otlp.metric_reporter import OtlpMetricReporter
    from spark_events_otlp.reporter import OtlpEventReporter, OtlpSpanReporter

_EXTRA = ("otlp", "opentelemetry-exporter-otlp")


class OtlpEventReporterFactory(EventReporterFactory):
    """Creates the reporter that sends events as log records."""

    shares_threads = True
    options = RECORD_OPTIONS
    keeps_history = True

    def create(self, config: ReporterConfig) -> OtlpEventReporter:
        """Create the reporter; the connection is made by ``open``."""
        with needs_extra(*_EXTRA):
            from spark_events_otlp.reporter import OtlpEventReporter

            return OtlpEventReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Send a request without records."""
        return self.create(config).probe()


class OtlpSpanReporterFactory(SpanReporterFactory):
    """Creates the reporter that sends spans."""

    shares_threads = True
    options = RECORD_OPTIONS

    def create(self, config: ReporterConfig) -> OtlpSpanReporter:
        """Create the reporter; the connection is made by ``open``."""
        with needs_extra(*_EXTRA):
            from spark_events_otlp.reporter import OtlpSpanReporter

            return OtlpSpanReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Send a request without spans."""
        return self.create(config).probe()


class OtlpMetricReporterFactory(MetricReporterFactory):
    """Creates the reporter that sends metrics."""

    options = METRIC_OPTIONS

    def create(self, config: ReporterConfig) -> OtlpMetricReporter:
        """Create the reporter; the connection is made by the first report."""
        with needs_extra(*_EXTRA):
            from spark_events_otlp.metric_reporter import OtlpMetricReporter

            return OtlpMetricReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Send a request without metrics."""
        return self.create(config).probe()
