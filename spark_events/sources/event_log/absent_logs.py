"""Logs that are absent for a while: a mount that drops takes them away, and brings them back."""

from __future__ import annotations

from collections.abc import Iterable, Set

ABSENT_MS = 3_600_000
"""For how long a log may be absent until it counts as removed."""
_MOST_ABSENT = 50_000


class AbsentLogs:
    """Since when logs are absent that were there before; times are those of a steady clock, in ms."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}  # the first to go first
        self._empty_since_ms: int | None = None

    def is_outage(self, known: Set[str], present: Set[str], time_ms: int) -> bool:
        """Return whether nothing is listed where logs were, and not for so long that they count as removed.

        Args:
            known: the names of all logs of which something is known.
            present: the names that are listed now.
        """
        if present or not known:
            self._empty_since_ms = None
            return False
        if self._empty_since_ms is None:
            self._empty_since_ms = time_ms
        return time_ms - self._empty_since_ms < ABSENT_MS

    def removed(self, known: Set[str], present: Set[str], time_ms: int) -> Iterable[str]:
        """Return the names of the logs that are absent for too long, or before too many others.

        While nothing is listed, none of them counts as removed: nothing is added to what is known, either.
        """
        if not present:
            return ()
        absent = known - present
        self._since_ms = {name: since_ms for name, since_ms in self._since_ms.items() if name in absent}
        for name in absent - self._since_ms.keys():
            self._since_ms[name] = time_ms
        too_many = len(self._since_ms) - _MOST_ABSENT
        removed = [
            name
            for number, (name, since_ms) in enumerate(self._since_ms.items())
            if number < too_many or time_ms - since_ms >= ABSENT_MS
        ]
        for name in removed:
            del self._since_ms[name]
        return removed
