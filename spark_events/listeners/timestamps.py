"""Spark's two ways to write a time: ms since the epoch, and ISO 8601 in UTC."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

LATEST_MS = (2**63 - 1) // 1_000_000
"""The last time whose ns a signed 64-bit number holds: the year 2262."""


def parse_timestamp_ms(text: str) -> int:
    """Return a time like ``2026-11-21T04:38:42.694Z`` in ms since the epoch."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


def record_time_ms(record: dict[str, Any]) -> int | None:
    """Return the time that a record itself gives for what happened; None if it gives none.

    Raises:
        ValueError, TypeError, KeyError: the value is not a time, or an impossible one.
    """
    time_ms = _written_time_ms(record)
    if time_ms is not None and not 0 <= time_ms <= LATEST_MS:
        raise ValueError(f"a time of {time_ms} ms since the epoch is out of range")
    return time_ms


def _written_time_ms(record: dict[str, Any]) -> int | None:
    for key in ("Timestamp", "Submission Time", "Completion Time", "timestamp", "time", "Time"):
        value = record.get(key)
        if isinstance(value, int):
            return value
        if isinstance(value, str):
            return parse_timestamp_ms(value)
    progress = record.get("progress")
    if progress is not None:
        took_ms = (progress.get("durationMs") or {}).get("triggerExecution") or 0
        return parse_timestamp_ms(progress["timestamp"]) + int(took_ms)
    info = record.get("Stage Info")
    if info is not None:
        name = "Completion Time" if record.get("Event", "").endswith("Completed") else "Submission Time"
        time_ms: int | None = info.get(name) or info.get("Submission Time")
        return time_ms
    return None
