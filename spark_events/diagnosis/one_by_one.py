"""The rule about ``toLocalIterator``: partitions that are computed one after the other, each by a job."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import TASK_COUNT

_CALLS = ("toLocalIterator", "toPythonIterator")
"""What Spark calls the stages: in Scala, of RDDs and in Spark Connect; and of DataFrames in older PySpark."""
_MOST_PLACES = 1_000
_LEAST = 2


@dataclass(slots=True)
class _Fetched:
    """The partitions that one place in the code has fetched; times in ms.

    Attributes:
        alone_ms: for how long one of them was computed, or one and the next, and nothing else.
        whole_ms, longest_ms: how long their stages took, in all, and the longest of them.
        run_ms: how long their tasks ran.
        begun_ms, ended_ms: when the first began, and the last ended, since the epoch.
    """

    partitions: int = 0
    alone_ms: int = 0
    run_ms: int = 0
    whole_ms: int = 0
    longest_ms: int = 0
    begun_ms: int = 0
    ended_ms: int = 0
    pauses_ms: int = 0


def is_fetch(place: str) -> bool:
    """Return whether a place in the code, or a stage's name, is of partitions that are fetched one by one."""
    return place.split(" ")[0] in _CALLS


class OneByOne:
    """Adds up what fetching partitions one by one takes, by the place in the code that does it."""

    def __init__(self) -> None:
        self._places: dict[str, _Fetched] = {}

    def take(
        self, place: str, run_ms: int, begun_ms: int, ended_ms: int, beside_ms: int, cores: int
    ) -> Issue | None:
        """Called with each stage of one task that fetches; returns what its place has cost so far.

        Args:
            place: in the user's code, or the stage's name.
            run_ms: how long its task ran.
            begun_ms, ended_ms: when the stage did, in ms since the epoch.
            beside_ms: for how long stages ran at that time that are no fetches.
            cores: of all executors; 0 if unknown.
        """
        if place not in self._places and len(self._places) >= _MOST_PLACES:
            return None
        fetched = self._places.setdefault(place, _Fetched(begun_ms=begun_ms, ended_ms=begun_ms))
        fetched.partitions += 1
        # The next one may be computed while the one before is read.
        alone_ms = max(0, ended_ms - max(begun_ms, fetched.ended_ms) - beside_ms)
        fetched.alone_ms += alone_ms
        fetched.longest_ms = max(fetched.longest_ms, ended_ms - begun_ms)
        fetched.whole_ms += ended_ms - begun_ms
        fetched.run_ms += run_ms
        fetched.pauses_ms += max(0, begun_ms - fetched.ended_ms)
        fetched.ended_ms = max(fetched.ended_ms, ended_ms)
        return _issue(place, fetched, cores) if fetched.partitions >= _LEAST and cores > 1 else None


def _issue(place: str, fetched: _Fetched, cores: int) -> Issue:
    at_once_ms = max(fetched.whole_ms // cores, fetched.longest_ms)
    lost_ms = max(0, fetched.alone_ms - at_once_ms)
    # What reads them may do so while the next is computed: nobody knows for which of both it waited.
    hidden = fetched.pauses_ms > fetched.alone_ms
    return Issue(
        TASK_COUNT,
        f"{TASK_COUNT} {place}",
        None if hidden else lost_ms,
        None,
        f"{place} has its {fetched.partitions:,} partitions computed one after the other, by a job of one "
        f"task each: {duration(fetched.alone_ms)} in all; {cores} cores could do that in "
        f"{duration(at_once_ms)}",
        "Let all cores compute it before the driver fetches it: cache() it and count() it first, or write it "
        "to a table and read that. If it fits into the driver's memory, use collect(): it computes all "
        "partitions at once.",
        evidence={"partitions": fetched.partitions, "runTimeMs": fetched.run_ms, "cores": cores},
        share_ms=lost_ms if hidden else None,
    )
