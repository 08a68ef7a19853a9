"""The rule about RDDs that several actions compute, though a cache could keep what these have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import kept_rdds
from spark_events.diagnosis.rdds.sorted_again import is_sort, sources
from spark_events.diagnosis.thresholds import RECOMPUTATION

_MOST_SOURCES, _MOST_PLACES = 1_000, 3
_CHECKPOINT = "ReliableCheckpointRDD"
_LEAST_SHARE = 0.5
"""Of the longest time: what actions take at least that compute as much as others."""


class _Again(NamedTuple):
    """A stage that computes an RDD which the action before it at the same place has computed, and no more.

    Attributes:
        rdd: its id.
        time_ms: how long the shorter of both took.
        is_added: whether it takes as long as others, so that it is one of those that are added up.
    """

    place: str
    rdd: int
    time_ms: int
    is_added: bool


@dataclass(slots=True)
class _Computed:
    """The stages that compute the same RDDs in all of their partitions; times in ms.

    Attributes:
        longest_ms: how long the longest took.
        shorter_ms: how long the others took, in all.
        times: how many there are.
        places: in the user's code that they are for; the first few.
        common: the RDDs that all of them compute, by their ids.
        again: the latest stage that may have written one of those as a checkpoint.
        checkpoint: where that is known; empty if it is not.
    """

    longest_ms: int = 0
    shorter_ms: int = 0
    times: int = 0
    places: dict[str, None] = field(default_factory=dict)
    common: frozenset[int] = frozenset()
    again: _Again | None = None
    checkpoint: str = ""


class RddsComputedAgain:
    """Adds up what several actions take that begin with the same RDDs."""

    def __init__(self) -> None:
        self._computed: dict[frozenset[int], _Computed] = {}

    def take(self, info: Mapping[str, Any], wall_ms: int, alone: Callable[[], int]) -> Issue | None:
        """Called with each stage that has succeeded; returns what is computed again so far.

        Args:
            info: its ``Stage Info``.
            wall_ms: how long it took.
            alone: returns for how long it ran, and no other stage did, in ms.
        """
        place, key = str(info.get("Stage Name") or ""), sources(info)
        if not key or is_sort(place) or kept_rdds(info) or not _is_whole(info):
            return None
        if key not in self._computed and len(self._computed) >= _MOST_SOURCES:
            return None
        known = self._computed.setdefault(key, _Computed())
        alone_ms = alone() if known.times else wall_ms  # most RDDs are computed once
        rdds = _parents(info).keys()
        is_less, is_more = (
            alone_ms < _LEAST_SHARE * known.longest_ms,
            known.longest_ms < _LEAST_SHARE * alone_ms,
        )
        if place in known.places and max(rdds) in known.common - {max(known.common)}:
            both_ms = min(alone_ms, known.longest_ms)
            known.again = _Again(place, max(rdds), both_ms, not is_less and not is_more)
        if is_less:
            return None  # it does something else, or little of it
        if is_more:
            known.times = known.shorter_ms = known.longest_ms = 0
            known.places.clear()
        known.common = known.common & rdds if known.times else frozenset(rdds)
        known.shorter_ms += min(alone_ms, known.longest_ms)
        known.longest_ms = max(alone_ms, known.longest_ms)
        known.times += 1
        if len(known.places) < _MOST_PLACES:
            known.places[place] = None
        return _issue(key, known) if known.times > 1 else None

    def checkpoints(self, info: Mapping[str, Any]) -> Issue | None:
        """Called with each stage that has ended: one that reads a checkpoint tells what it was written of.

        Spark writes it after the action, by a job of its own, and only what is kept is not computed for that
        once more.
        """
        for rdd in info.get("RDD Info") or ():
            if rdd.get("Name") != _CHECKPOINT:
                continue
            place, number = str(rdd.get("Callsite") or ""), int(rdd.get("RDD ID", -1))
            written = {child for child, parents in _parents(info).items() if number in parents}
            for key, known in self._computed.items():
                again = known.again
                if again is None or known.checkpoint or again.place != place or again.rdd not in written:
                    continue
                known.checkpoint = place
                if not again.is_added:
                    known.times, known.shorter_ms = known.times + 1, known.shorter_ms + again.time_ms
                    known.places[place] = None
                return _issue(key, known)
        return None


def _parents(info: Mapping[str, Any]) -> dict[int, list[int]]:
    """Return the RDDs of a stage, by their ids, with those that they are made of."""
    return {
        int(rdd.get("RDD ID", -1)): [int(parent) for parent in rdd.get("Parent IDs") or ()]
        for rdd in info.get("RDD Info") or ()
    }


def _is_whole(info: Mapping[str, Any]) -> bool:
    """Return whether a stage computes all partitions of its last RDD: take() and the like ask for a few."""
    last = max(info.get("RDD Info") or (), key=lambda rdd: int(rdd.get("RDD ID", -1)), default=None)
    tasks = int(info.get("Number of Tasks") or 0)
    return last is not None and tasks == int(last.get("Number of Partitions") or 0)


def _issue(key: frozenset[int], known: _Computed) -> Issue:
    numbers = ", ".join(map(str, sorted(key)[:_MOST_PLACES]))
    advice = "If they have functions in common, persist() the RDD that these make, before the first action."
    written = ""
    if known.checkpoint:
        written = f"; one of them writes its checkpoint, after {known.checkpoint}"
        advice = (
            "persist() the RDD before checkpoint(): the action then keeps what it computes, and the "
            "checkpoint is written of that."
        )
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} of rdd {numbers}",
        None,
        None,
        f"{known.times:,} stages compute what they need of the same RDD, each anew, for "
        f"{', '.join(known.places)}: all but the longest take {duration(known.shorter_ms)}{written}",
        advice,
        evidence={"recomputation.times": known.times, "recomputation.what": f"RDD {numbers}"},
        share_ms=known.shorter_ms,
    )
