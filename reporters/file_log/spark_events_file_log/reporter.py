"""Events and spans as lines of JSON."""

from __future__ import annotations

import time
from typing import Any

import orjson

from spark_events.api import ConfigError, Event, EventReporter, Reporter, Span, SpanReporter
from spark_events_file_log.files import RotatedFile


class _FileLog(Reporter):
    """What both have in common: each line goes to the file at once, in one write."""

    def __init__(self, file: RotatedFile, path_key: str) -> None:
        self._file = file
        self._path_key = path_key

    @property
    def destination(self) -> str:
        """The file that is being written."""
        return str(self._file.path)

    def open(self) -> None:
        """Make the folder and begin a file."""
        try:
            self._file.open()
        except OSError as error:
            raise ConfigError(
                f"{self._path_key}: {error.filename or ''} cannot be written ({error.strerror}); "
                "give a folder in which the user that runs Spark may write"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, record: dict[str, Any]) -> None:
        """Append one record."""
        self._file.write(encode(record))


class FileLogEventReporter(_FileLog, EventReporter):
    """Writes events, with OTLP's field names for what OTLP has."""

    def notify_of_added_event(self, event: Event) -> None:
        """Append one event."""
        self.write(
            {
                "eventName": event.name,
                "eventId": event.id,
                # As in OTLP's JSON: ns do not fit the doubles that JSON readers make of numbers.
                "timeUnixNano": str(event.observed_time_ms * 1_000_000),
                "observedTimeUnixNano": str(time.time_ns()),
                "severityNumber": int(event.severity),
                "severityText": event.severity.name,
                "scope": event.class_scope,
                "body": event.body,
                "attributes": event.all_attributes,
            }
        )


class FileLogSpanReporter(_FileLog, SpanReporter):
    """Writes spans, with OTLP's field names for what OTLP has."""

    def notify_of_added_span(self, span: Span) -> None:
        """Append one span."""
        self.write(
            {
                "name": span.name,
                "traceId": span.trace_id,
                "spanId": span.span_id,
                "parentSpanId": span.parent_span_id,
                "startTimeUnixNano": str(span.start_ms * 1_000_000),
                "endTimeUnixNano": str(span.end_ms * 1_000_000),
                "scope": span.class_scope,
                "status": {"code": "ERROR", "message": span.error} if span.error else {"code": "UNSET"},
                "attributes": span.all_attributes,
            }
        )


def encode(record: dict[str, Any]) -> bytes:
    """Return a line of JSON; what JSON or UTF-8 cannot carry is written as its text."""
    try:
        return orjson.dumps(record, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:
        # Lone surrogates, and whole numbers of more than 64 bits.
        return orjson.dumps(_plain(record)) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, bool | float) or value is None:
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return str(value).encode("utf-8", "replace").decode()
