"""Metrics of short-lived things: added once a thing has run for a while, removed some time after its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from spark_events.api import MetricGroup

Make = Callable[[], MetricGroup]


class PassingSeries:
    """Keeps the number of series of jobs and stages small, however many of them a driver runs.

    Args:
        after_ms: what ends sooner than this gets no series: nobody would have time to read them.
        retention_ms: how long the series stay after the end.
        most: how many may have series at once, those that ended not long ago included; further ones wait.
    """

    def __init__(self, after_ms: int, retention_ms: int, most: int | None = None) -> None:
        self._after_ms = after_ms
        self._retention_ms = retention_ms
        self._most = most
        # Ordered by time, because all wait equally long.
        self._waiting: dict[Hashable, tuple[int, Make]] = {}
        self._shown: dict[Hashable, MetricGroup] = {}
        self._leaving: deque[tuple[int, MetricGroup]] = deque()

    def begun(self, key: Hashable, time_ms: int, make: Make) -> None:
        """Called when something begins, at a time in ms since the epoch; ``make`` registers its series."""
        if self._after_ms == 0 and not self.full:
            self._shown[key] = make()
        else:
            self._waiting[key] = (time_ms + self._after_ms, make)

    @property
    def full(self) -> bool:
        """Whether no more may have series now."""
        return self._most is not None and len(self._shown) + len(self._leaving) >= self._most

    @property
    def waiting(self) -> int:
        """How many have no series yet."""
        return len(self._waiting)

    def ended(self, key: Hashable, time_ms: int) -> None:
        """Called when something has ended."""
        self._waiting.pop(key, None)
        group = self._shown.pop(key, None)
        if group is not None:
            self._leaving.append((time_ms + self._retention_ms, group))

    def tick(self, now_ms: int) -> None:
        """Add the series of what has run long enough, and remove those of what ended long enough ago."""
        while self._leaving and self._leaving[0][0] <= now_ms:
            self._leaving.popleft()[1].close()
        for key, (due_ms, make) in list(self._waiting.items()):
            if due_ms > now_ms or self.full:
                break
            del self._waiting[key]
            self._shown[key] = make()
