"""The options of the OTLP reporters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import JOURNAL_OPTIONS, Option, Secret
from spark_events.api import option_types as types

ENDPOINT = Option.optional(
    "exporter.endpoint",
    types.STRING,
    "URL of the collector; by default OTEL_EXPORTER_OTLP_ENDPOINT, or "
    "http://localhost:4317 (grpc) or :4318 (http)",
)
PROTOCOL = Option.optional(
    "exporter.protocol",
    types.choice("grpc", "http"),
    "grpc or http; by default OTEL_EXPORTER_OTLP_PROTOCOL where no endpoint is given, or grpc",
)
TIMEOUT = Option(
    "exporter.timeout", types.at_least(1, types.DURATION), 10_000, "how long one request may take"
)
COMPRESSION = Option("exporter.compression", types.choice("none", "gzip"), "none", "none or gzip")
HEADERS: Option[Mapping[str, Secret]] = Option(
    "exporter.headers", types.SECRET_MAP, {}, "headers of each request, key:value,…"
)
CERTIFICATE = Option.optional(
    "exporter.certificate", types.LOCAL_PATH, "PEM file of the authorities to trust; the system's by default"
)
CLIENT_CERTIFICATE = Option.optional(
    "exporter.client.certificate", types.LOCAL_PATH, "PEM file of the client's certificate, for mTLS"
)
CLIENT_KEY = Option.optional("exporter.client.key", types.LOCAL_PATH, "PEM file of that certificate's key")
SERVICE_NAME = Option.optional(
    "service.name", types.STRING, "service.name of the resource; the application's name by default"
)
SERVICE_VERSION = Option.optional("service.version", types.STRING, "service.version of the resource")
RESOURCE_ATTRIBUTES: Option[Mapping[str, str]] = Option(
    "resource.attributes", types.MAP, {}, "more attributes of the resource, key:value,…"
)
BATCH_SIZE = Option(
    "batch.size", types.at_least(1, types.INT), 5_000, "how many data points go into one request"
)
TEMPORALITY = Option.optional(
    "exporter.temporality",
    types.choice("cumulative", "delta"),
    "aggregation temporality of counters and histograms: cumulative or delta; by default "
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, or cumulative",
)
HISTOGRAM = Option.optional(
    "exporter.histogram",
    types.choice("explicit", "exponential"),
    "buckets of histograms: explicit or exponential; by default "
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, or explicit",
)
_REQUESTS = (ENDPOINT, PROTOCOL, TIMEOUT, COMPRESSION, HEADERS)
_TLS = (CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY)
_RESOURCE = (SERVICE_NAME, SERVICE_VERSION, RESOURCE_ATTRIBUTES)
_CONNECTION: tuple[Option[Any], ...] = (*_REQUESTS, *_TLS, *_RESOURCE)
RECORD_OPTIONS: tuple[Option[Any], ...] = (*_CONNECTION, *JOURNAL_OPTIONS)
"""Of the reporters of events and spans, which keep what is not acknowledged."""
METRIC_OPTIONS: tuple[Option[Any], ...] = (*_CONNECTION, BATCH_SIZE, TEMPORALITY, HISTOGRAM)
