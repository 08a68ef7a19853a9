"""The possible times of stored events, so that one broken clock cannot spoil a fleet's history."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date, datetime, timezone

DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
EARLIEST_MS = 1_230_768_000_000
"""The year 2009, in which Spark began."""


@dataclass(frozen=True, slots=True)
class PossibleTimes:
    """The times that events may have, in ms since the epoch; events of other times have a wrong clock.

    Attributes:
        earliest_ms: the first of them; 2009 by default.
        last_ms: the last of them; None for a day after whatever time it is.
        until_ms: up to when events are read; later ones are as if they had not happened. None for all.
    """

    earliest_ms: int = EARLIEST_MS
    last_ms: int | None = None
    until_ms: int | None = None

    @property
    def latest_ms(self) -> int:
        """The last of them, as of now."""
        return time.time_ns() // 1_000_000 + DAY_MS if self.last_ms is None else self.last_ms

    def has_day(self, day: str) -> bool:
        """Return whether a day, as ``2026-11-21``, has any of these times."""
        first, last = iso_day(self.earliest_ms), iso_day(self.latest_ms)
        return len(day) == len(first) and first <= day <= last

    def __str__(self) -> str:
        first, last = (
            datetime.fromtimestamp(ms / 1_000, timezone.utc).strftime("%Y-%m-%d %H:%M")
            for ms in (self.earliest_ms, self.latest_ms)
        )
        return f"before {first} or after {last} UTC"


def iso_day(time_ms: int) -> str:
    """Return a time's day in UTC, as ``2026-11-21``."""
    return iso_date(time_ms // DAY_MS)


def day_number(date_text: str) -> int:
    """Return a day that is given as ``2026-11-21``, in days since the epoch."""
    return date.fromisoformat(date_text).toordinal() - _EPOCH


def iso_date(day: int) -> str:
    """Return a day, in days since the epoch, as ``2026-11-21``."""
    return date.fromordinal(_EPOCH + day).isoformat()
