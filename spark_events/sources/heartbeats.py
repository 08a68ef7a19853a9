"""When a live source says that its application lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_events.api.event import now_ms
from spark_events.listeners.spark_records import HEARTBEAT


class Heartbeats:
    """Makes the records of heartbeats, the first of them at once.

    Args:
        interval_ms: how often, in ms; 0 makes none.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._due_ms = 0

    def records(self) -> Sequence[dict[str, Any]]:
        """Return a heartbeat if one is due."""
        time_ms = now_ms()
        if not self._interval_ms or time_ms < self._due_ms:
            return ()
        self._due_ms = time_ms + self._interval_ms
        return [{"Event": HEARTBEAT, "Timestamp": time_ms}]
