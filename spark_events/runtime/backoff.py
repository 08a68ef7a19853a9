"""Pauses between tries: longer each time, never quite the same, and short once the end has begun."""

from __future__ import annotations

import random
import threading
import time

_FIRST_S = 0.2
_LONGEST_S = 10.0
_LONGEST_ASKED_S = 900.0
_LAST_TRIES_S = 1.0
GIVE_UP_BEFORE_S = 0.2
"""How long before the deadline retrying ends, so that closing has time."""


class Backoff:
    """The pauses of one thread that tries something again and again.

    Attributes:
        tries: how many failed in a row.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._since = 0.0

    @property
    def closing(self) -> bool:
        """Whether the end has begun."""
        return self._closing.is_set()

    @property
    def elapsed_s(self) -> float:
        """For how long it has been failing, in s."""
        return time.monotonic() - self._since

    def close(self, deadline: float) -> None:
        """Begin the end: no pause goes beyond a time of ``time.monotonic``."""
        self._deadline = deadline
        self._closing.set()

    def failed(self) -> int:
        """Count a try that failed, and return how many did in a row."""
        if not self.tries:
            self._since = time.monotonic()
        self.tries += 1
        return self.tries

    def succeeded(self) -> None:
        """Begin again with short pauses."""
        self.tries = 0

    def pause(self, asked_ms: int | None) -> bool:
        """Wait before the next try; tell whether there is time for one.

        Args:
            asked_ms: the pause that the destination asked for, in ms.
        """
        doubled = _FIRST_S * 2 ** min(self.tries - 1, 10)
        seconds = min(doubled, _LONGEST_S) * random.uniform(0.8, 1.2)
        if asked_ms is not None:
            seconds = min(asked_ms / 1000, _LONGEST_ASKED_S) * random.uniform(1.0, 1.1)
        if not self._closing.wait(seconds):
            return True
        give_up_at = self._deadline - GIVE_UP_BEFORE_S
        time.sleep(max(0.0, min(seconds, _LAST_TRIES_S, give_up_at - time.monotonic())))
        return time.monotonic() < give_up_at
