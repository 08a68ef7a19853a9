"""What caches held that the application has released: whatever reads it afterwards computes it again."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_KEPT = 1_000


class ReleasedCaches:
    """Knows which work is in a cache, and which was until ``unpersist()`` or ``clearCache()``."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._released: dict[str, None] = {}

    def filled(self, work: str, rdds: Iterable[int]) -> None:
        """Called when a cache is filled.

        Args:
            work: the digest of what it keeps.
            rdds: those that its stages keep. Spark releases the one of this cache; if there are several,
                nobody knows which that is.
        """
        kept = list(rdds)
        self._released.pop(work, None)
        self._held.pop(work, None)
        if len(kept) == 1:
            self._held[work] = kept[0]
            _forget_oldest(self._held)

    def unpersisted(self, rdd: int) -> None:
        """Called when an RDD is no longer kept."""
        for work in [work for work, held in self._held.items() if held == rdd]:
            del self._held[work]
            self._released[work] = None
        _forget_oldest(self._released)

    def had(self, work: str) -> bool:
        """Return whether a cache held this and was released since."""
        return work in self._released


def _forget_oldest(works: dict[str, int] | dict[str, None]) -> None:
    while len(works) > _MOST_KEPT:
        del works[next(iter(works))]
