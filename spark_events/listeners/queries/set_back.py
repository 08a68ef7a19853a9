"""A clock that was set back, by the records that were written before."""

from __future__ import annotations

_SET_BACK_MS = 60_000
"""Records that are so far ahead of the clock were written before it was set back."""


class SetBack:
    """Notes that the clock was set back since a record: it comes to the record's time only much later."""

    def __init__(self) -> None:
        self._since_ms: int | None = None
        self._noticed_ms = 0

    def by_ms(self, since_ms: int | None, now_ms: int) -> int:
        """Return what a time of the clock lacks to one that goes on from the record's, at least, in ms.

        Args:
            since_ms: the record's time, in ms since the epoch; None if there is none.
            now_ms: by the clock.
        """
        if since_ms is None or since_ms <= now_ms + _SET_BACK_MS:
            self._since_ms = None
            return 0
        if since_ms != self._since_ms or now_ms < self._noticed_ms:
            self._since_ms, self._noticed_ms = since_ms, now_ms
        return since_ms - self._noticed_ms
