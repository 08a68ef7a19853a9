"""What differs between logs and traces on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
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
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spark_events.api import Refused
from spark_events_otlp.encode import split_scope


@dataclass(frozen=True, slots=True)
class Signal:
    """One of OTLP's signals.

    Attributes:
        name: as in the names of environment variables, ``OTEL_EXPORTER_OTLP_<name>_ENDPOINT``.
        path: of HTTP.
        stub: the class of the gRPC stub.
        request: the class of the request.
        response: the class of the answer.
        message: the class of one record.
        fields: the request's field of resources, theirs of scopes, theirs of records.
        rejected: the answer's field of how many records were refused.
    """

    name: str
    path: str
    stub: Any
    request: Any
    response: Any
    message: Any
    fields: tuple[str, str, str]
    rejected: str

    def build(self, records: Sequence[bytes], resource: bytes) -> Any:
        """Return the request for records in their order; of no records, an empty one.

        Args:
            records: as ``encode`` made them.
            resource: whose they are, serialised.

        Raises:
            Refused: one of them is no such message.
        """
        request = self.request()
        if not records:
            return request
        of_request, of_resource, of_scope = self.fields
        target = getattr(request, of_request).add()
        target.resource.MergeFromString(resource)
        scopes, current, add = getattr(target, of_resource), None, None
        try:
            for record in records:
                name, message = split_scope(record)
                if name != current:
                    group = scopes.add()
                    group.scope.name = name.decode()
                    current, add = name, getattr(group, of_scope).add
                add().MergeFromString(message)  # type: ignore[misc]
        except (DecodeError, UnicodeDecodeError) as error:
            raise Refused(f"it is no OTLP message: {error}") from error
        return request

    def readable(self, record: bytes) -> Any:
        """Return a record as OTLP's JSON."""
        scope, message = split_scope(record)
        return {"scope": scope.decode(), **MessageToDict(self.message.FromString(message))}


LOGS = Signal(
    "LOGS",
    "/v1/logs",
    LogsServiceStub,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
    LogRecord,
    ("resource_logs", "scope_logs", "log_records"),
    "rejected_log_records",
)
TRACES = Signal(
    "TRACES",
    "/v1/traces",
    TraceServiceStub,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
    Span,
    ("resource_spans", "scope_spans", "spans"),
    "rejected_spans",
)
