"""When a live source says that its application lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from spark_events.listeners.record_fields import TIMESTAMP
from spark_events.listeners.spark_records import HEARTBEAT, UPTIME


class Heartbeats:
    """Makes the records of heartbeats, the first of them at once.

    Args:
        interval_ms: how often, in ms; 0 makes none.
        clock: a time in s that only grows.
    """

    def __init__(self, interval_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_ms = interval_ms
        self._clock = clock
        self._began_s: float | None = None
        self._last_ms: int | None = None

    def record(self, now_ms: int) -> dict[str, Any] | None:
        """Return a heartbeat if one is due at a time in ms since the epoch, which may be set back."""
        last_ms = self._last_ms
        is_early = last_ms is not None and last_ms <= now_ms < last_ms + self._interval_ms
        if not self._interval_ms or is_early:
            return None
        self._last_ms = now_ms
        now_s = self._clock()
        if self._began_s is None:
            self._began_s = now_s
        return {"Event": HEARTBEAT, TIMESTAMP: now_ms, UPTIME: int((now_s - self._began_s) * 1_000)}
