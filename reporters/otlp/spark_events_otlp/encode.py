"""Events and spans as serialized OTLP messages, each preceded by the name of its instrumentation scope.

What repeats from record to record, as most attributes do, is serialized only once: protobuf reads joined
messages as one message with the fields of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from spark_events.api import Event, Severity, Span

_LATEST_MS = (2**63 - 1) // 1_000_000
_BEHIND_SCOPE = b"\0"
_REPEATED = 8_192
_LONGEST_REPEATED = 64


def log_record(event: Event) -> bytes:
    """Return an event as a log record: ``time`` is when it happened, ``observed_time`` is now."""
    record = LogRecord()
    record.time_unix_nano = _ns(event.time_ms)
    record.observed_time_unix_nano = time.time_ns()
    _add_attribute(record, "event.id", event.id)
    if event.body:
        record.body.string_value = text(event.body)
    return _record(event.class_scope, record, event, _serialised_name(event.name, event.severity))


def span_message(span: Span) -> bytes:
    """Return a span as OTLP's message."""
    start_ns, end_ns = _ns(span.start_ms), _ns(span.end_ms)
    message = SpanMessage(
        trace_id=_id(span.trace_id, 16),
        span_id=_id(span.span_id, 8),
        parent_span_id=_id(span.parent_span_id, 8) if span.parent_span_id else b"",
        name=text(span.name),
        kind=SpanMessage.SPAN_KIND_INTERNAL,
        start_time_unix_nano=start_ns or end_ns,
        end_time_unix_nano=end_ns or start_ns,
    )
    if span.error is not None:
        message.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=text(span.error)))
    for event in span.events:
        event_message = message.events.add(name=text(event.name), time_unix_nano=_ns(event.time_ms))
        _add_attributes(event_message, event.attributes.items())
    for link in span.links:
        message.links.add(trace_id=_id(link.trace_id, 16), span_id=_id(link.span_id, 8))
    return _record(span.class_scope, message, span)


def split_scope(record: bytes) -> tuple[bytes, bytes]:
    """Return the name of a record's instrumentation scope, and its message."""
    scope, _, message = record.partition(_BEHIND_SCOPE)
    return scope, message


def key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Return attributes as OTLP's list."""
    return list(_add_attributes(LogRecord(), attributes.items()).attributes)


def _record(scope: str, message: LogRecord | SpanMessage, item: Event | Span, *repeated: bytes) -> bytes:
    """Return the scope's name, followed by the message with the item's attributes.

    ``repeated`` contains further parts of the message that are already serialized.
    """
    kind: Any = type(message)
    attributes, variables = item.attributes, item.variables
    if not attributes.keys().isdisjoint(variables):  # an attribute wins over a variable of its name
        attributes, variables = item.all_attributes, {}
    parts = [*repeated, _serialised_attributes(kind, tuple(variables.items()))]
    for key, value in attributes.items():
        if isinstance(value, str) and len(value) <= _LONGEST_REPEATED:
            parts.append(_serialised_attributes(kind, ((key, value),)))
        else:
            _add_attribute(message, key, value)
    return b"".join((scope_prefix(scope), message.SerializeToString(), *parts))


@lru_cache(_REPEATED)
def scope_prefix(scope: str) -> bytes:
    """Return the beginning of the records of an instrumentation scope, as ``split_scope`` takes it off."""
    return text(scope).replace("\0", "").encode() + _BEHIND_SCOPE


@lru_cache(_REPEATED)
def _serialised_name(name: str, severity: Severity) -> bytes:
    """Return a log record that has a name and a severity and nothing else."""
    record = LogRecord(event_name=text(name), severity_text=severity.name)
    record.severity_number = int(severity)  # type: ignore[assignment]
    serialized: bytes = record.SerializeToString()
    return serialized


@lru_cache(_REPEATED)
def _serialised_attributes(kind: Any, attributes: tuple[tuple[str, str], ...]) -> bytes:
    """Return a message of a kind that has these attributes and nothing else."""
    serialized: bytes = _add_attributes(kind(), attributes).SerializeToString()
    return serialized


def _add_attributes(message: Any, attributes: Iterable[tuple[str, Any]]) -> Any:
    """Add attributes to a message, and return it."""
    for key, value in attributes:
        _add_attribute(message, key, value)
    return message


def _add_attribute(message: Any, key: str, value: Any) -> None:
    # A third of the cost of building each KeyValue by its constructor.
    pair = message.attributes.add()
    pair.key = text(key)
    _set_value(pair.value, value)


def _set_value(target: Any, value: Any) -> None:
    """Set an AnyValue to a value of Python."""
    if isinstance(value, str):
        target.string_value = text(value)
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, tuple | list):
        target.array_value.SetInParent()
        for item in value:
            _set_value(target.array_value.values.add(), item)
    else:
        target.string_value = text(str(value))


def _id(digits: str, length: int) -> bytes:
    """Return the bytes of an id.

    Raises:
        ValueError: it is none; a collector would refuse all that is sent with it.
    """
    decoded = bytes.fromhex(digits)
    if len(decoded) != length:
        raise ValueError(f"{digits[:40]!r} is not an id of {2 * length} hexadecimal digits")
    return decoded


def _ns(time_ms: int) -> int:
    """Return a time in ns; 0, which means unknown in OTLP, for an impossible one.

    Impossible are times before the epoch, and after the year 2262, which many receivers turn negative.
    """
    return time_ms * 1_000_000 if 0 <= time_ms <= _LATEST_MS else 0


def text(value: str) -> str:
    """Return a text that is valid UTF-8: protobuf refuses a lone surrogate, and with it the whole request."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
