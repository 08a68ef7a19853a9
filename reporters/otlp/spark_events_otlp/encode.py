"""Events and spans as OTLP's messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from spark_events.api import Event, Span


def log_record(event: Event) -> LogRecord:
    """Return an event as a log record: ``time`` is when it happened, ``observed_time`` is now."""
    record = LogRecord(
        time_unix_nano=event.observed_time_ms * 1_000_000,
        observed_time_unix_nano=time.time_ns(),
        severity_number=int(event.severity),  # type: ignore[arg-type]
        severity_text=event.severity.name,
        event_name=_text(event.name),
        attributes=key_values({"event.id": event.id, **event.all_attributes}),
    )
    if event.body:
        record.body.string_value = _text(event.body)
    return record


def span_message(span: Span) -> SpanMessage:
    """Return a span as OTLP's message."""
    message = SpanMessage(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_span_id or ""),
        name=_text(span.name),
        kind=SpanMessage.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start_ms * 1_000_000,
        end_time_unix_nano=span.end_ms * 1_000_000,
        attributes=key_values(span.all_attributes),
    )
    if span.error is not None:
        message.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=_text(span.error)))
    return message


def scope(name: str) -> InstrumentationScope:
    """Return an instrumentation scope."""
    return InstrumentationScope(name=name)


def key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Return attributes as OTLP's list."""
    return [KeyValue(key=_text(key), value=_any_value(value)) for key, value in attributes.items()]


def _any_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=_text(value))


def _text(value: object) -> str:
    """Protobuf refuses a lone surrogate, and with it the whole request."""
    return str(value).encode("utf-8", "replace").decode()
