"""The rule about RDDs that are sorted: Spark computes them first to find the bounds of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import kept_rdds
from spark_events.diagnosis.thresholds import RECOMPUTATION

_CALLS = ("sortBy", "sortByKey", "repartitionAndSortWithinPartitions")
"""What Spark calls the stages; PySpark counts and samples an RDD before it sorts it, Scala samples it."""
_MOST_SORTED = 1_000


@dataclass(slots=True)
class _Sorted:
    """The stages of one call that compute the same RDD; times in ms.

    Attributes:
        times: how many there are.
        whole_ms, longest_ms: how long they took, in all, and the longest of them.
    """

    times: int = 0
    whole_ms: int = 0
    longest_ms: int = 0


class SortedAgain:
    """Adds up what computing RDDs more than once takes, where they are sorted."""

    def __init__(self) -> None:
        self._sorted: dict[tuple[str, frozenset[int]], _Sorted] = {}

    def take(self, info: Mapping[str, Any], alone: Callable[[], int]) -> tuple[Issue, int] | None:
        """Called with each stage that has succeeded; returns what its sort has cost, and this stage of it.

        Args:
            info: its ``Stage Info``.
            alone: returns for how long it ran, and no other stage did, in ms.
        """
        place = str(info.get("Stage Name") or "")
        if not is_sort(place) or kept_rdds(info):
            return None
        key = place, sources(info)
        if key not in self._sorted and len(self._sorted) >= _MOST_SORTED:
            return None
        known = self._sorted.setdefault(key, _Sorted())
        alone_ms = alone()
        before_ms = known.whole_ms - known.longest_ms
        known.times += 1
        known.whole_ms += alone_ms
        known.longest_ms = max(known.longest_ms, alone_ms)
        if known.times == 1:
            return None
        lost_ms = known.whole_ms - known.longest_ms
        return _issue(place, known, lost_ms), min(alone_ms, lost_ms - before_ms)


def is_sort(place: str) -> bool:
    """Return whether a stage of this name is of an RDD that is sorted."""
    return place.split(" ")[0] in _CALLS


def sources(info: Mapping[str, Any]) -> frozenset[int]:
    """Return the RDDs that a stage begins with: those of which none of it is computed."""
    rdds = info.get("RDD Info") or ()
    own = {int(rdd.get("RDD ID", -1)) for rdd in rdds}
    return frozenset(
        int(rdd.get("RDD ID", -1)) for rdd in rdds if own.isdisjoint(map(int, rdd.get("Parent IDs") or ()))
    )


def _issue(place: str, known: _Sorted, lost_ms: int) -> Issue:
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {place}",
        lost_ms,
        None,
        f"{place} computes what it sorts {known.times} times, in {duration(known.whole_ms)}: "
        "first to find out how many rows there are and which keys they have",
        "persist() the RDD that is sorted, before; and unpersist() it afterwards.",
        evidence={"recomputation.times": known.times, "recomputation.what": place},
    )
