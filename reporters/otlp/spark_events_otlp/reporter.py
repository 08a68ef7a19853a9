"""The reporters: each record is encoded once, and sent in batches with the resource of its run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.sdk.resources import Resource

from spark_events.api import (
    Event,
    EventReporter,
    Reporter,
    ReporterConfig,
    SendingReporter,
    Span,
    SpanReporter,
)
from spark_events_otlp import encode
from spark_events_otlp.connection import transport_from
from spark_events_otlp.options import RESOURCE_ATTRIBUTES, SERVICE_NAME, SERVICE_VERSION
from spark_events_otlp.signals import LOGS, TRACES, Signal


class OtlpReporter(Reporter):
    """Has a connection for one signal, and a resource that goes with all that is sent."""

    def __init__(self, config: ReporterConfig, signal: Signal) -> None:
        self._signal = signal
        self._transport = transport_from(config, signal)
        self._resource: bytes = resource_from(config).SerializeToString()

    @property
    def destination(self) -> str:
        """The endpoint."""
        return self._transport.url

    def probe(self) -> str:
        """Send an empty request."""
        return self._transport.probe()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class _OtlpRecordReporter(OtlpReporter, SendingReporter):
    """Sends records of one signal."""

    @property
    def context(self) -> bytes:
        """The resource."""
        return self._resource

    def send(self, records: Sequence[bytes], context: bytes) -> None:
        """Send one request, and read its answer."""
        self._transport.deliver(self._signal.build(records, context or self._resource), len(records))

    def rest(self) -> None:
        """Close the connection until there is something to send."""
        self._transport.close()

    def readable(self, record: bytes) -> Any:
        """Return a record as OTLP's JSON."""
        return self._signal.readable(record)


class OtlpEventReporter(_OtlpRecordReporter, EventReporter):
    """Sends events as log records."""

    def __init__(self, config: ReporterConfig) -> None:
        super().__init__(config, LOGS)

    def notify_of_added_event(self, event: Event) -> None:
        """Put one event into the outbox."""
        self.outbox.put(encode.log_record(event))


class OtlpSpanReporter(_OtlpRecordReporter, SpanReporter):
    """Sends spans."""

    def __init__(self, config: ReporterConfig) -> None:
        super().__init__(config, TRACES)

    def notify_of_added_span(self, span: Span) -> None:
        """Put one span into the outbox."""
        self.outbox.put(encode.span_message(span))


def resource_from(config: ReporterConfig) -> ResourceMessage:
    """Return the resource: what is configured wins over OTEL_* variables, those over the application."""
    application = config.application
    configured = config.get(RESOURCE_ATTRIBUTES)
    attributes = dict(configured)
    if name := config.get(SERVICE_NAME):
        attributes["service.name"] = name
    elif "service.name" not in attributes and not _named_by_environment():
        attributes["service.name"] = application.name or "spark"
    if version := config.get(SERVICE_VERSION):
        attributes["service.version"] = version
    if application.id:
        instance = "/".join(filter(None, (application.id, application.attempt_id)))
        attributes.setdefault("service.instance.id", instance)
    return ResourceMessage(attributes=encode.key_values(Resource.create(attributes).attributes))


def _named_by_environment() -> bool:
    return "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
