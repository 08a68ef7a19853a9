"""Events and spans as lines of JSON."""

from __future__ import annotations

import logging
import time
from math import isfinite, isnan
from typing import Any

import orjson

from spark_events.api import (
    ConfigError,
    Event,
    EventReporter,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    Reporter,
    RetryLater,
    Span,
    SpanReporter,
    job_event_json,
)
from spark_events_file_log.files import RotatedFile

_SYNC_S = 1.0
logger = logging.getLogger("spark_events.file_log")


class _FileLog(Reporter):
    """Collects lines; those of a batch go to the file in one write, or wait for the disk."""

    def __init__(self, file: RotatedFile, path_key: str, fsync: str) -> None:
        self._file = file
        self._path_key = path_key
        self._fsync = fsync
        self._synced_at = 0.0
        self._lines: list[bytes] = []

    @property
    def destination(self) -> str:
        """The file that is being written."""
        return str(self._file.path)

    def open(self) -> None:
        """Make the folder and begin a file."""
        try:
            for repair in self._file.open():
                logger.warning("%s", repair)
        except OSError as error:
            raise ConfigError(
                f"{self._path_key}: {error.filename or ''} cannot be written ({error.strerror}); "
                "give a folder that the user who runs Spark can write to"
            ) from error

    def write(self, record: dict[str, Any]) -> None:
        """Add one record to the next flush."""
        self._lines.append(encode(record))

    def flush(self) -> None:
        """Write the lines, and let the disk have them as configured.

        Raises:
            RetryLater: the disk is full, say; the lines are kept.
        """
        try:
            self._file.write(self._lines)
            now = time.monotonic()
            if self._fsync == "always" or (self._fsync == "interval" and now >= self._synced_at + _SYNC_S):
                self._file.sync()
                self._synced_at = now
        except OSError as error:
            path = error.filename or self._file.path
            raise RetryLater(f"{path} cannot be written: {error.strerror}") from error

    def rest(self) -> None:
        """Close the file until there is something to write."""
        self._file.rest()

    def close(self) -> None:
        """Close the file."""
        try:
            if self._fsync != "never":
                self._file.sync()
        finally:
            self._file.close()


class FileLogEventReporter(_FileLog, EventReporter):
    """Writes events, with OTLP's field names as far as OTLP has them."""

    def notify_of_added_event(self, event: Event) -> None:
        """Append one event."""
        self.write(
            {
                "eventName": event.name,
                "eventId": event.id,
                # As in OTLP's JSON: ns do not fit the doubles that JSON readers make of numbers.
                "timeUnixNano": str(event.time_ms * 1_000_000),
                "observedTimeUnixNano": str(time.time_ns()),
                "severityNumber": int(event.severity),
                "severityText": event.severity.name,
                "scope": event.class_scope,
                "body": event.body,
                "attributes": event.all_attributes,
            }
        )


class FileLogSpanReporter(_FileLog, SpanReporter):
    """Writes spans, with OTLP's field names as far as OTLP has them."""

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
                "status": _status(span),
                "attributes": span.all_attributes,
                "events": [
                    {
                        "name": event.name,
                        "timeUnixNano": str(event.time_ms * 1_000_000),
                        "attributes": event.attributes,
                    }
                    for event in span.events
                ],
                "links": [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links],
            }
        )


class FileLogJobListener(_FileLog, JobStatusChangedListener):
    """Writes the events of jobs, with their lineage."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Append one event."""
        self.write(dict(job_event_json(event)))


def encode(record: dict[str, Any]) -> bytes:
    """Return a line of JSON; a value that JSON or UTF-8 cannot carry is written as its text."""
    try:
        line = orjson.dumps(record, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Lone surrogates, and whole numbers of more than 64 bits.
        line = orjson.dumps(_plain(record))
    if b"null" in line and _is_not_finite(record):  # which JSON has in place of NaN
        line = orjson.dumps(_plain(record))
    return line + b"\n"


def _is_not_finite(value: Any) -> bool:
    """Return whether a value is a number that JSON does not have, or has one in it."""
    if isinstance(value, dict):
        return any(map(_is_not_finite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_not_finite, value))
    return isinstance(value, float) and not isfinite(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and _is_not_finite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as in OTLP's JSON
    if isinstance(value, bool | float) or value is None:
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return str(value).encode("utf-8", "replace").decode()


def _status(span: Span) -> dict[str, str]:
    return {"code": "UNSET"} if span.error is None else {"code": "ERROR", "message": span.error}
