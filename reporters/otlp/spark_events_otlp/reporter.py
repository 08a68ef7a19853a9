"""The reporters: they gather what they are given, and send it at each flush."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spark_events.api import (
    Event,
    EventReporter,
    Reporter,
    ReporterConfig,
    Span,
    SpanReporter,
    SparkEventsError,
)
from spark_events_otlp import encode
from spark_events_otlp.resource import resource_from
from spark_events_otlp.transport import Signal, Transport, transport_from

LOGS = Signal("/v1/logs", LogsServiceStub, ExportLogsServiceResponse)
TRACES = Signal("/v1/traces", TraceServiceStub, ExportTraceServiceResponse)

M = TypeVar("M", LogRecord, SpanMessage)


class _OtlpReporter(Reporter, Generic[M]):
    """What both have in common. What was given stays here until the destination has taken it.

    Args:
        transport: where it goes.
        resource: whose it is.
    """

    def __init__(self, transport: Transport, resource: Resource) -> None:
        self._transport = transport
        self._resource = resource
        self._pending: dict[str, list[M]] = {}

    @property
    def destination(self) -> str:
        """The endpoint."""
        return self._transport.endpoint

    def request(self, scopes: dict[str, list[M]]) -> Any:
        """Build the request for messages by instrumentation scope."""
        raise NotImplementedError

    def rejected(self, answer: Any) -> int:
        """Return how many records an answer says were refused."""
        raise NotImplementedError

    def add(self, scope: str, message: M) -> None:
        """Keep one message for the next flush."""
        self._pending.setdefault(scope, []).append(message)

    def flush(self) -> None:
        """Send what is pending; only a destination that is away leaves it pending."""
        if not self._pending:
            return
        try:
            answer = self._transport.send(self.request(self._pending))
        except SparkEventsError as error:
            if type(error) is SparkEventsError:
                self._pending = {}
            raise
        self._pending = {}
        refused = self.rejected(answer)
        if refused:
            reason = answer.partial_success.error_message or "without a reason"
            raise SparkEventsError(f"{self._transport.endpoint} refused {refused} record(s): {reason}")

    def probe(self) -> str:
        """Send an empty request."""
        try:
            self._transport.send(self.request({}))
        finally:
            self.close()
        return f"{self._transport.endpoint} answered"

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class OtlpEventReporter(_OtlpReporter[LogRecord], EventReporter):
    """Sends events as log records."""

    def notify_of_added_event(self, event: Event) -> None:
        """Keep one event for the next flush."""
        self.add(event.class_scope, encode.log_record(event))

    def request(self, scopes: dict[str, list[LogRecord]]) -> ExportLogsServiceRequest:
        """Build the request for log records by instrumentation scope."""
        logs = [ScopeLogs(scope=encode.scope(name), log_records=records) for name, records in scopes.items()]
        return ExportLogsServiceRequest(
            resource_logs=[ResourceLogs(resource=self._resource, scope_logs=logs)]
        )

    def rejected(self, answer: ExportLogsServiceResponse) -> int:
        """Return how many log records were refused."""
        return answer.partial_success.rejected_log_records


class OtlpSpanReporter(_OtlpReporter[SpanMessage], SpanReporter):
    """Sends spans."""

    def notify_of_added_span(self, span: Span) -> None:
        """Keep one span for the next flush."""
        self.add(span.class_scope, encode.span_message(span))

    def request(self, scopes: dict[str, list[SpanMessage]]) -> ExportTraceServiceRequest:
        """Build the request for spans by instrumentation scope."""
        spans = [ScopeSpans(scope=encode.scope(name), spans=messages) for name, messages in scopes.items()]
        resource_spans = ResourceSpans(resource=self._resource, scope_spans=spans)
        return ExportTraceServiceRequest(resource_spans=[resource_spans])

    def rejected(self, answer: ExportTraceServiceResponse) -> int:
        """Return how many spans were refused."""
        return answer.partial_success.rejected_spans


def create_event_reporter(config: ReporterConfig) -> OtlpEventReporter:
    """Create the reporter of events."""
    return OtlpEventReporter(transport_from(config, LOGS), resource_from(config))


def create_span_reporter(config: ReporterConfig) -> OtlpSpanReporter:
    """Create the reporter of spans."""
    return OtlpSpanReporter(transport_from(config, TRACES), resource_from(config))
