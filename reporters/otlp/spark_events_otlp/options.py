"""The options of the OTLP reporters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import JOURNAL_OPTIONS, Option, Secret, option_types

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
RESOURCE_ATTRIBUTES: Option[Mapping[str, str]] = Option(
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
_CONNECTION: tuple[Option[Any], ...] = (
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
    RESOURCE_ATTRIBUTES,
)
RECORD_OPTIONS: tuple[Option[Any], ...] = (*_CONNECTION, *JOURNAL_OPTIONS)
"""Of the reporters of events and spans, which keep what is not acknowledged."""
METRIC_OPTIONS: tuple[Option[Any], ...] = (*_CONNECTION, BATCH_SIZE, TEMPORALITY, HISTOGRAM)
