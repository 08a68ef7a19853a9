"""Pauses between tries: each longer than the last, with jitter, and cut short once shutdown has begun."""

from __future__ import annotations

import random
import time
from collections.abc import Generator

_FIRST_S = 0.2
_LONGEST_S = 10.0
_LONGEST_ASKED_S = 900.0
_LAST_TRIES_S = 1.0
GIVE_UP_BEFORE_S = 0.2
"""How long before the deadline retrying ends, so that closing has time."""


class Backoff:
    """The pauses of one piece of work that retries something; whoever closes it wakes that work.

    Attributes:
        tries: how many tries in a row have failed.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._closing = False
        self._deadline = float("inf")
        self._since = 0.0

    @property
    def closing(self) -> bool:
        """Whether shutdown has begun."""
        return self._closing

    @property
    def elapsed_s(self) -> float:
        """How long the tries have been failing, in s."""
        return time.monotonic() - self._since

    def close(self, deadline: float) -> None:
        """Begin shutdown: from now on, no pause extends past ``deadline``, a time of ``time.monotonic``."""
        self._deadline = deadline
        self._closing = True

    def failed(self) -> int:
        """Count a failed try, and return how many in a row have failed."""
        if not self.tries:
            self._since = time.monotonic()
        self.tries += 1
        return self.tries

    def succeeded(self) -> None:
        """Go back to short pauses."""
        self.tries = 0

    def pause(self, asked_ms: int | None) -> Generator[float, None, bool]:
        """Wait before the next try, in turns, and return whether there is time for it.

        Args:
            asked_ms: the pause that the destination asked for, in ms.
        """
        doubled = _FIRST_S * 2 ** min(self.tries - 1, 10)
        seconds = min(doubled, _LONGEST_S) * random.uniform(0.8, 1.2)
        if asked_ms is not None:
            seconds = min(asked_ms / 1000, _LONGEST_ASKED_S) * random.uniform(1.0, 1.1)
        until = time.monotonic() + seconds
        while not self._closing and (left := until - time.monotonic()) > 0:
            yield left
        if not self._closing:
            return True
        give_up_at = self._deadline - GIVE_UP_BEFORE_S
        until = min(time.monotonic() + min(seconds, _LAST_TRIES_S), give_up_at)
        while (left := until - time.monotonic()) > 0:
            yield left
        return time.monotonic() < give_up_at
