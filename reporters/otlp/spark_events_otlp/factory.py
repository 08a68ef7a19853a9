"""The factories of the OTLP reporters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_events.api import (
    JOURNAL_OPTIONS,
    EventReporterFactory,
    MetricReporterFactory,
    Option,
    ReporterConfig,
    Secret,
    SpanReporterFactory,
    needs_extra,
    option_types,
)

if TYPE_CHECKING:
    from spark_events_otlp.metric_reporter import OtlpMetricReporter
    from spark_events_otlp.reporter import OtlpEventReporter, OtlpSpanReporter

_EXTRA = ("otlp", "opentelemetry-exporter-otlp")
ENDPOINT = Option.optional(
    "exporter.endpoint",
    option_types.STRING,
    "URL of the collector; OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4317 (grpc) or :4318 (http)",
)
PROTOCOL = Option("exporter.protocol", option_types.choice("grpc", "http"), "grpc", "grpc or http")
TIMEOUT = Option(
    "exporter.timeout",
    option_types.at_least(1, option_types.DURATION),
    10_000,
    "how long one request may take",
)
COMPRESSION = Option("exporter.compression", option_types.choice("none", "gzip"), "none", "none or gzip")
HEADERS: Option[Mapping[str, Secret]] = Option(
    "exporter.headers", option_types.SECRET_MAP, {}, "headers of each request, key:value,…"
)
CERTIFICATE = Option.optional(
    "exporter.certificate",
    option_types.LOCAL_PATH,
    "PEM file of the authorities to trust; the system's by default",
)
CLIENT_CERTIFICATE = Option.optional(
    "exporter.client.certificate", option_types.LOCAL_PATH, "PEM file of the client's certificate, for mTLS"
)
CLIENT_KEY = Option.optional(
    "exporter.client.key", option_types.LOCAL_PATH, "PEM file of that certificate's key"
)
SERVICE_NAME = Option.optional(
    "service.name", option_types.STRING, "service.name of the resource; the application's name by default"
)
SERVICE_VERSION = Option.optional("service.version", option_types.STRING, "service.version of the resource")
RESOURCE: Option[Mapping[str, str]] = Option(
    "resource.attributes", option_types.MAP, {}, "more attributes of the resource, key:value,…"
)
BATCH_SIZE = Option(
    "batch.size", option_types.at_least(1, option_types.INT), 5_000, "how many points go into one request"
)
TEMPORALITY = Option.optional(
    "exporter.temporality",
    option_types.choice("cumulative", "delta"),
    "what points of counters and histograms say: all since the beginning, or since the last point; "
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, or cumulative",
)
HISTOGRAM = Option.optional(
    "exporter.histogram",
    option_types.choice("explicit", "exponential"),
    "the buckets of histograms; OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, or explicit",
)
CONNECTION: tuple[Option[Any], ...] = (
    ENDPOINT,
    PROTOCOL,
    TIMEOUT,
    COMPRESSION,
    HEADERS,
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    SERVICE_NAME,
    SERVICE_VERSION,
    RESOURCE,
)
OPTIONS: tuple[Option[Any], ...] = (*CONNECTION, *JOURNAL_OPTIONS)


class OtlpEventReporterFactory(EventReporterFactory):
    """Creates the reporter that sends events as log records."""

    options = OPTIONS

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

    options = OPTIONS

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

    options = (*CONNECTION, BATCH_SIZE, TEMPORALITY, HISTOGRAM)

    def create(self, config: ReporterConfig) -> OtlpMetricReporter:
        """Create the reporter; the connection is made by the first report."""
        with needs_extra(*_EXTRA):
            from spark_events_otlp.metric_reporter import OtlpMetricReporter

            return OtlpMetricReporter(config)

    def probe(self, config: ReporterConfig) -> str:
        """Send a request without metrics."""
        return self.create(config).probe()
