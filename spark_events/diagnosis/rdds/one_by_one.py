"""The rule about ``toLocalIterator``: partitions that are computed one after the other, each by a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import last_rdd
from spark_events.diagnosis.thresholds import TASK_COUNT

_CALLS = ("toLocalIterator", "toPythonIterator")
"""What Spark calls the stages: in Scala, of RDDs and in Spark Connect; and of DataFrames in older PySpark."""
_MOST_PLACES, _MOST_RDDS = 1_000, 1_000
_LEAST = 2


class Fetch(NamedTuple):
    """A stage that computes one partition of an RDD, for the driver to fetch it; times in ms.

    Attributes:
        rdd: its id.
        partitions: how many the RDD has.
        run_ms: how long its task ran.
        begun_ms, ended_ms: when the stage did, since the epoch.
    """

    rdd: int
    partitions: int
    run_ms: int
    begun_ms: int
    ended_ms: int


class _Costs(NamedTuple):
    """The partitions that were fetched from some RDDs, and how long that took; times in ms."""

    rdds: int = 0
    number: int = 0
    partitions: int = 0
    alone_ms: int = 0
    at_once_ms: int = 0
    lost_ms: int = 0
    run_ms: int = 0
    pauses_ms: int = 0

    @property
    def is_hidden(self) -> bool:
        """Whether what reads them may do so while the next is computed: nobody knows for which it waited."""
        return self.pauses_ms > self.alone_ms

    def changed(self, before: _Costs, after: _Costs) -> _Costs:
        """Return them with one of them as it is now."""
        return _Costs(*(each - old + new for each, old, new in zip(self, before, after, strict=True)))


@dataclass(slots=True)
class _Fetched:
    """The partitions of one RDD that one place in the code has fetched; times in ms.

    Attributes:
        partitions: how many the RDD has.
        ended_ms: when the last ended, since the epoch.
        number: how many were fetched.
        alone_ms: for how long one of them was computed, or one and the next, and nothing else.
        whole_ms, longest_ms: how long their stages took, in all, and the longest of them.
        run_ms: how long their tasks ran.
        costs: as they were computed last.
    """

    partitions: int
    ended_ms: int
    number: int = 0
    alone_ms: int = 0
    run_ms: int = 0
    whole_ms: int = 0
    longest_ms: int = 0
    pauses_ms: int = 0
    costs: _Costs = field(default_factory=_Costs)

    def add(self, fetch: Fetch, alone_ms: int) -> None:
        """Add a partition."""
        took_ms = fetch.ended_ms - fetch.begun_ms
        self.number += 1
        self.alone_ms += alone_ms
        self.longest_ms = max(self.longest_ms, took_ms)
        self.whole_ms += took_ms
        self.run_ms += fetch.run_ms
        self.pauses_ms += max(0, fetch.begun_ms - self.ended_ms)
        self.ended_ms = max(self.ended_ms, fetch.ended_ms)

    def as_costs(self, cores: int) -> _Costs:
        """Return what they cost; nothing if only one of them was fetched."""
        if self.number < _LEAST or cores <= 1:
            return _Costs()
        # Who lets all cores compute the RDD has all of its partitions computed, even if some are not fetched.
        all_ms = self.whole_ms * max(self.partitions, self.number) // self.number
        at_once_ms = max(all_ms // cores, self.longest_ms)
        lost_ms = max(0, self.alone_ms - at_once_ms)
        return _Costs(
            1, self.number, self.partitions, self.alone_ms, at_once_ms, lost_ms, self.run_ms, self.pauses_ms
        )


def is_fetch(place: str) -> bool:
    """Return whether a place in the code, or a stage's name, is of partitions that are fetched one by one."""
    return place.split(" ")[0] in _CALLS


def fetch(
    stage_info: Mapping[str, Any], tasks: int, run_ms: int, begun_ms: int, ended_ms: int
) -> Fetch | None:
    """Return what a stage of a place that fetches has computed, if that is one of several partitions.

    Args:
        stage_info: as Spark writes it.
        tasks: how many the stage had.
        run_ms: how long they ran.
        begun_ms, ended_ms: when the stage did, in ms since the epoch.
    """
    last = last_rdd(stage_info)
    partitions = int(last.get("Number of Partitions") or 0) if last is not None else 0
    if last is None or tasks != 1 or partitions < _LEAST:
        return None
    return Fetch(int(last["RDD ID"]), partitions, run_ms, begun_ms, ended_ms)


class OneByOne:
    """Adds up what fetching partitions one by one takes, by the place in the code that does it."""

    def __init__(self) -> None:
        self._fetched: dict[tuple[str, int], _Fetched] = {}
        self._places: dict[str, _Costs] = {}
        self._ended_ms = 0

    def take(self, place: str, fetch: Fetch, beside_ms: int, cores: int) -> tuple[Issue, int] | None:
        """Called with each stage that fetches; returns what its place has cost so far, and in this stage.

        Args:
            place: in the user's code, or the stage's name.
            fetch: the stage.
            beside_ms: for how long stages ran at that time that are not fetches.
            cores: of all executors; 0 if unknown.
        """
        if place not in self._places and len(self._places) >= _MOST_PLACES:
            return None
        fetched = self._of_rdd(place, fetch)
        # The next one may be computed while the one before is read, or one of another RDD.
        alone_ms = fetch.ended_ms - max(fetch.begun_ms, self._ended_ms) - beside_ms
        self._ended_ms = max(self._ended_ms, fetch.ended_ms)
        fetched.add(fetch, max(0, alone_ms))
        before, fetched.costs = fetched.costs, fetched.as_costs(cores)
        of_place = self._places.get(place, _Costs())
        costs = self._places[place] = of_place.changed(before, fetched.costs)
        if not costs.rdds:
            return None
        told_ms = 0 if costs.is_hidden else max(0, costs.lost_ms - of_place.lost_ms)
        return _issue(place, costs, cores), min(told_ms, fetch.ended_ms - fetch.begun_ms)

    def _of_rdd(self, place: str, fetch: Fetch) -> _Fetched:
        """Return what a place has fetched of an RDD; of too many, it forgets the one fetched longest ago."""
        key = place, fetch.rdd
        fetched = self._fetched.pop(key, None) or _Fetched(fetch.partitions, fetch.begun_ms)
        if len(self._fetched) >= _MOST_RDDS:
            self._fetched.pop(next(iter(self._fetched)))  # what its place has cost stays
        self._fetched[key] = fetched
        return fetched


def _issue(place: str, costs: _Costs, cores: int) -> Issue:
    has = f"its {costs.partitions:,} partitions"
    if costs.rdds > 1:
        has = f"{costs.number:,} of {costs.partitions:,} partitions of {costs.rdds:,} RDDs"
    elif costs.number < costs.partitions:
        has = f"{costs.number:,} of its {costs.partitions:,} partitions"
    return Issue(
        TASK_COUNT,
        f"{TASK_COUNT} {place}",
        None if costs.is_hidden else costs.lost_ms,
        None,
        f"{place} has {has} computed one after the other, by a job of one task each: "
        f"{duration(costs.alone_ms)} in all; {cores} cores could compute all of them in "
        f"{duration(costs.at_once_ms)}",
        "Let all cores compute it before the driver fetches it: cache() it and count() it first, or write it "
        "to a table and read that. If it fits into the driver's memory, use collect(): it computes all "
        "partitions at once.",
        evidence={"partitions": costs.number, "runTimeMs": costs.run_ms, "cores": cores},
        share_ms=costs.lost_ms if costs.is_hidden else None,
    )
