"""The time of a store: machines whose clocks disagree reckon with it, because they all see the same one.

A file system stamps each file with its own time. A process that has just written a file knows between which
moments of its own the stamp was made, and so how far its clock is from the store's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_events.api.event import now_ms
from spark_events.api.toolkit.formatting import duration
from spark_events.runtime.log_once import logger

_TOLERATED_MS = 3_000
"""Nothing here depends on less, and an object store's stamps have whole seconds."""


class StoreClock:
    """One process's idea of the store's time, which does not change when the machine's clock is set.

    Args:
        own: returns the time by the clock of this machine, in ms since the epoch.
    """

    def __init__(self, own: Callable[[], int] = now_ms) -> None:
        self.own = own
        # The store's time, and the monotonic clock's, at the last comparison.
        self._compared: tuple[int, float] | None = None
        self._said_ms = 0

    def now_ms(self) -> int:
        """Return the store's time, in ms since the epoch; this machine's until they have been compared."""
        if self._compared is None:
            return self.own()
        store_ms, monotonic_s = self._compared
        return store_ms + round((time.monotonic() - monotonic_s) * 1000)

    @property
    def ahead_ms(self) -> int:
        """How far this machine's clock is ahead of the store's, in ms; negative if behind, 0 if right."""
        ahead_ms = self.own() - self.now_ms()
        return ahead_ms if abs(ahead_ms) > _TOLERATED_MS else 0

    def compare(self, before_ms: int, stamped_ms: int, after_ms: int) -> None:
        """Learn from a file that was written between two moments of this machine's clock."""
        in_time = before_ms - _TOLERATED_MS <= stamped_ms <= after_ms + _TOLERATED_MS
        ahead_ms = 0 if in_time else (before_ms + after_ms) // 2 - stamped_ms
        self._compared = (after_ms - ahead_ms, time.monotonic())
        if abs(ahead_ms - self._said_ms) > _TOLERATED_MS and ahead_ms:
            where = "ahead of" if ahead_ms > 0 else "behind"
            logger.warning(
                "this machine's clock is %s %s the store's; the SQL runner reckons with the store's",
                duration(abs(ahead_ms)),
                where,
            )
        self._said_ms = ahead_ms


class Elapsed:
    """The time since a moment, at least; also if the clock is set, or the machine sleeps, meanwhile.

    Args:
        own: returns the time by the clock of this machine, in ms since the epoch.
    """

    def __init__(self, own: Callable[[], int]) -> None:
        self._own = own
        self.begin()

    def begin(self) -> None:
        """Let the moment be now."""
        self._began = time.monotonic(), self._own()

    @property
    def ms(self) -> float:
        """How long it is ago, in ms: more than that if the clock was set since."""
        monotonic_s, own_ms = self._began
        return max((time.monotonic() - monotonic_s) * 1000, abs(self._own() - own_ms))
