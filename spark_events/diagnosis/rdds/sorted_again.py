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
_WRITTEN = "internal.metrics.shuffle.write.recordsWritten"


@dataclass(slots=True)
class _Sorted:
    """The stages of one place that compute the same RDD to sort it; times in ms.

    Attributes:
        most: how many of them sorted it once, at most.
        times: how many there are since it was sorted last: after that, a loop may sort something else.
        whole_ms, longest_ms: how long these took, in all, and the longest of them.
        all_ms: how long all took that were needed for a sort that computed it more than once.
        lost_ms: how long all of them took but the longest of each sort.
    """

    most: int = 0
    times: int = 0
    whole_ms: int = 0
    longest_ms: int = 0
    all_ms: int = 0
    lost_ms: int = 0

    def add(self, alone_ms: int) -> int:
        """Add a stage, and return how much more is lost by it."""
        before_ms, before_all_ms = self.whole_ms - self.longest_ms, self.whole_ms if self.times > 1 else 0
        self.times += 1
        self.whole_ms += alone_ms
        self.longest_ms = max(self.longest_ms, alone_ms)
        if self.times == 1:
            return 0
        self.most = max(self.most, self.times)
        self.all_ms += self.whole_ms - before_all_ms
        more_ms = self.whole_ms - self.longest_ms - before_ms
        self.lost_ms += more_ms
        return more_ms

    def is_sorted(self) -> None:
        """Called when the last stage of a sort has ended, which writes the rows by their keys."""
        self.times = self.whole_ms = self.longest_ms = 0


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
        more_ms = known.add(alone())
        again = known.times > 1
        if _writes(info):
            known.is_sorted()
        return (_issue(place, known), more_ms) if again else None


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


def _writes(info: Mapping[str, Any]) -> bool:
    sums = {str(each.get("Name")): each.get("Value") for each in info.get("Accumulables") or ()}
    return int(str(sums.get(_WRITTEN) or 0)) > 0


def _issue(place: str, known: _Sorted) -> Issue:
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {place}",
        known.lost_ms,
        None,
        f"{place} computes what it sorts {known.most} times, in {duration(known.all_ms)}: "
        "first to find out how many rows there are and which keys they have",
        "persist() the RDD that is sorted, before; and unpersist() it afterwards.",
        evidence={"recomputation.times": known.most, "recomputation.what": place},
    )
