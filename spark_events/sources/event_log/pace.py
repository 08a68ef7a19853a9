"""The pace of the polls, which shows when this process was frozen."""

from __future__ import annotations


class Pace:
    """How long polls are apart: with many logs, or slow storage, longer than the wait between them.

    A process that is frozen, by SIGSTOP or as containers are paused, does not notice, be it in a wait, in a
    request, or at work. But polls become slower little by little, and a freeze lengthens a single one: what
    exceeds twice the time of the one before counts as frozen.

    Args:
        interval_ms: how long the wait between two polls is, in ms.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = self._last_ms = interval_ms
        self._begun_ms: int | None = None

    def frozen_ms(self, time_ms: int) -> int:
        """Return how long this process was probably frozen since the poll before, in ms.

        Args:
            time_ms: when the next poll begins, by a steady clock.
        """
        apart_ms = 0 if self._begun_ms is None else time_ms - self._begun_ms
        self._begun_ms = time_ms
        self._last_ms = min(apart_ms, 2 * max(self._interval_ms, self._last_ms))
        return apart_ms - self._last_ms
