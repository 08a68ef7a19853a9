"""What caches held that the application has released: whatever reads it afterwards computes it again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_events.diagnosis.plans.node import CUT, Node, columns

_MOST_KEPT = 1_000


class ReleasedCaches:
    """Knows which work is in a cache, and which was until ``unpersist()`` or ``clearCache()``."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, frozenset[str]]] = {}
        self._released: dict[str, tuple[int, frozenset[str]]] = {}

    def filled(self, work: Node, digest: str, rdds: Iterable[int]) -> None:
        """Called when a cache is filled.

        Args:
            work: what it keeps.
            digest: what tells that from other work, whatever columns it reads.
            rdds: those that its stages keep. Spark releases the one of this cache; if there are several,
                nobody knows which that is.
        """
        kept, read = list(rdds), _columns_read(work)
        self._released.pop(digest, None)
        self._held.pop(digest, None)
        if len(kept) == 1 and read:
            self._held[digest] = kept[0], read
            _forget_oldest(self._held)

    def unpersisted(self, rdd: int) -> None:
        """Called when an RDD is no longer kept."""
        for digest in [digest for digest, (held, _) in self._held.items() if held == rdd]:
            self._released[digest] = self._held.pop(digest)
        _forget_oldest(self._released)

    def of(self, work: Node, digest: str) -> int | None:
        """Return the RDD of the cache that held this and was released since; one of other columns did not."""
        released = self._released.get(digest)
        if released is None:
            return None
        rdd, held = released
        return rdd if frozenset() < _columns_read(work) <= held else None


def _columns_read(work: Node) -> frozenset[str]:
    """Return the names of the columns that are read for some work; none if a list of them is cut."""
    names: set[str] = set()
    for scan in (node for node in work.walk() if not node.children):
        if scan.name == "Range":
            names.add(scan.text)  # it has one column, which it does not list
            continue
        listed, end, _ = scan.text.partition("[")[2].partition("]")
        if not end or CUT in listed:
            return frozenset()
        names.update(columns(listed))
    return frozenset(names)


def _forget_oldest(works: dict[str, Any]) -> None:
    while len(works) > _MOST_KEPT:
        del works[next(iter(works))]
