"""The differences between logs, traces and metrics on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spark_events_otlp.encode import split_scope

# The numbers of fields, the same in the requests of all signals.
_RESOURCES = 1
_RESOURCE, _SCOPES = 1, 2
_SCOPE, _RECORDS = 1, 2
_SCOPE_NAME = 1


@dataclass(frozen=True, slots=True)
class Signal:
    """One of OTLP's signals.

    Attributes:
        name: as in the names of environment variables, ``OTEL_EXPORTER_OTLP_<name>_ENDPOINT``.
        path: of HTTP.
        service: the descriptor of the service of gRPC.
        response: the class of the answer.
        message: the class of one record.
        rejected: the answer's field of how many records were refused.
    """

    name: str
    path: str
    service: Any
    response: Any
    message: Any
    rejected: str

    @property
    def method(self) -> str:
        """The method of gRPC."""
        (service,) = self.service.services_by_name.values()
        return f"/{service.full_name}/Export"

    def build(self, records: Sequence[bytes], resource: bytes) -> bytes:
        """Return the request for records in their order, serialized; of no records, an empty one.

        No record is parsed to be serialized once more: that would cost more than all else about sending it.

        Args:
            records: serialized, each behind its ``encode.scope_prefix``.
            resource: whose they are, serialized.
        """
        if not records:
            return b""
        scopes: list[tuple[bytes, list[bytes]]] = []
        for record in records:
            name, message = split_scope(record)
            if not scopes or name != scopes[-1][0]:
                scopes.append((name, []))
            scopes[-1][1].append(field(_RECORDS, message))
        groups = [
            field(_SCOPES, field(_SCOPE, field(_SCOPE_NAME, name)) + b"".join(messages))
            for name, messages in scopes
        ]
        return field(_RESOURCES, field(_RESOURCE, resource) + b"".join(groups))

    def readable(self, record: bytes) -> Any:
        """Return a record as OTLP's JSON."""
        scope, message = split_scope(record)
        return {"scope": scope.decode(), **MessageToDict(self.message.FromString(message))}


LOGS = Signal(
    "LOGS",
    "/v1/logs",
    logs_service_pb2.DESCRIPTOR,
    logs_service_pb2.ExportLogsServiceResponse,
    LogRecord,
    "rejected_log_records",
)
TRACES = Signal(
    "TRACES",
    "/v1/traces",
    trace_service_pb2.DESCRIPTOR,
    trace_service_pb2.ExportTraceServiceResponse,
    Span,
    "rejected_spans",
)
METRICS = Signal(
    "METRICS",
    "/v1/metrics",
    metrics_service_pb2.DESCRIPTOR,
    metrics_service_pb2.ExportMetricsServiceResponse,
    Metric,
    "rejected_data_points",
)


def field(number: int, message: bytes) -> bytes:
    """Return a serialized message as a field of the message around it, as protobuf writes it.

    Args:
        number: of the field, from 1 to 15.
        message: serialized.
    """
    head = bytearray((number << 3 | 2,))
    size = len(message)
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + message
