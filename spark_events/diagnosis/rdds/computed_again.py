"""The rule about RDDs that several actions compute, though a cache could keep what these have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import kept_rdds, last_rdd
from spark_events.diagnosis.rdds.sorted_again import is_sort, sources
from spark_events.diagnosis.rdds.stage_place import place_of_stage
from spark_events.diagnosis.thresholds import RECOMPUTATION

_MOST_SOURCES, _MOST_RUNS, _MOST_PLACES = 1_000, 100, 3
_CHECKPOINT = "ReliableCheckpointRDD"
_LEAST_TURNS = 3
_LEAST_SHARE = 0.15
"""Of what is usual: what actions take at least that may compute what others do. What they do not share, such
as the functions that each of them adds, may take far longer than what they do."""


class _Run(NamedTuple):
    """A stage that has computed RDDs in all of their partitions.

    Attributes:
        place: in the user's code that it was for.
        rdds: all that it computed, by their ids.
        time_ms: how long it took.
    """

    place: str
    rdds: frozenset[int]
    time_ms: int


@dataclass(slots=True)
class _Computed:
    """The stages that compute the same RDDs; times in ms.

    Attributes:
        name: of what they begin with, for a sentence.
        runs: the first of them.
        more, more_ms, longest_ms: how many later ones are like these, how long they took, and the longest.
        again: the latest that may have written as a checkpoint what the action before it at the same place
            has computed, with how long the shorter of both took.
        checkpoint: where that is known to be so; empty if it is not.
        wrote: the one that did.
    """

    name: str
    runs: list[_Run] = field(default_factory=list)
    more: int = 0
    more_ms: int = 0
    longest_ms: int = 0
    again: _Run | None = None
    checkpoint: str = ""
    wrote: _Run | None = None

    def add(self, run: _Run) -> bool:
        """Count a stage; return whether it is like others."""
        is_kept = len(self.runs) < _MOST_RUNS
        if is_kept:
            self.runs.append(run)
        is_alike = self._tells()(run)
        if is_alike and not is_kept:
            self.more, self.more_ms = self.more + 1, self.more_ms + run.time_ms
            self.longest_ms = max(self.longest_ms, run.time_ms)
        return is_alike

    def alike(self) -> list[_Run]:
        """Return the first that take about as long as others, with all turns of loops, in their order."""
        return list(filter(self._tells(), self.runs))

    def _tells(self) -> Callable[[_Run], bool]:
        """Return what tells stages that are alike.

        What others compute that take far less is something else, or little of it. The longest may be the
        first, for which Python starts, or compute more: the next one says how long is usual, if there are
        three.
        """
        times_ms = sorted((run.time_ms for run in self.runs), reverse=True)
        usual_ms = times_ms[1] if len(times_ms) > 2 else times_ms[0] if times_ms else 0
        if self.wrote is not None:  # which is one of them, however long its writing takes
            usual_ms = min(usual_ms, self.wrote.time_ms)
        least_ms = _LEAST_SHARE * usual_ms
        turns = Counter(run.place for run in self.runs)
        places = {run.place for run in self.runs if run.time_ms >= least_ms}
        loops = {place for place in places if turns[place] >= _LEAST_TURNS}
        return lambda run: run.time_ms >= least_ms or run.place in loops


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
        place, key = place_of_stage(info), sources(info)
        if not key or is_sort(place) or kept_rdds(info) or not _is_whole(info):
            return None
        if key not in self._computed and len(self._computed) >= _MOST_SOURCES:
            return None
        known = self._computed.setdefault(key, _Computed(_name(info, key)))
        alone_ms = alone() if known.runs else wall_ms  # most RDDs are computed once
        run = _Run(place, frozenset(_parents(info)), alone_ms)
        if (both_ms := _writes_again(run, known.alike())) is not None:
            known.again = run._replace(time_ms=both_ms)
        is_alike = known.add(run)
        return _issue(key, known) if is_alike and len(known.alike()) > 1 else None

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
                if again is None or known.checkpoint or again.place != place:
                    continue
                if max(again.rdds) in written:
                    known.checkpoint, known.wrote = place, again
                    return _issue(key, known)
        return None


def _writes_again(run: _Run, before: list[_Run]) -> int | None:
    """Return how long a stage or the longest before took, in ms, the shorter, if it may write a checkpoint.

    That computes an RDD out of which the action at the same place has made another one.
    """
    if run.place not in {each.place for each in before}:
        return None
    common = before[0].rdds.intersection(*(each.rdds for each in before))
    if max(run.rdds) not in common - {max(common)}:
        return None
    return min(run.time_ms, max(each.time_ms for each in before))


def _name(info: Mapping[str, Any], key: frozenset[int]) -> str:
    """Return what stages begin with: the path of a file, if that is an RDD's name, as textFile() calls it."""
    rdds = [rdd for rdd in info.get("RDD Info") or () if int(rdd.get("RDD ID", -1)) in key]
    paths = [name for rdd in rdds if "/" in (name := str(rdd.get("Name") or ""))]
    if len(paths) == len(key) == 1:
        return f"the RDD of {paths[0]}"
    return f"RDD {', '.join(map(str, sorted(key)[:_MOST_PLACES]))}"


def _parents(info: Mapping[str, Any]) -> dict[int, list[int]]:
    """Return the RDDs of a stage, by their ids, with those that they are made of."""
    return {
        int(rdd.get("RDD ID", -1)): [int(parent) for parent in rdd.get("Parent IDs") or ()]
        for rdd in info.get("RDD Info") or ()
    }


def _is_whole(info: Mapping[str, Any]) -> bool:
    """Return whether a stage computes all partitions of its last RDD: take() and the like ask for a few."""
    last = last_rdd(info)
    tasks = int(info.get("Number of Tasks") or 0)
    return last is not None and tasks == int(last.get("Number of Partitions") or 0)


def _issue(key: frozenset[int], known: _Computed) -> Issue:
    numbers = ", ".join(map(str, sorted(key)[:_MOST_PLACES]))
    alike = known.alike()
    times, all_ms = len(alike) + known.more, sum(run.time_ms for run in alike) + known.more_ms
    shorter_ms = all_ms - max(known.longest_ms, *(run.time_ms for run in alike))
    places = list(dict.fromkeys(run.place for run in alike))[:_MOST_PLACES]
    advice = "If they have functions in common, persist() the RDD that these make, before the first action."
    written = ""
    if known.checkpoint:
        written = f"; one of them writes its checkpoint, after {known.checkpoint}"
        advice = (
            "persist() the RDD before checkpoint(): the action then keeps what it computes, and the "
            "checkpoint is written of that."
        )
    same = "the same RDD" if known.name.startswith("RDD") else known.name
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} of rdd {numbers}",
        None,
        None,
        f"{times:,} stages compute what they need of {same}, each anew, for "
        f"{', '.join(places)}: all but the longest take {duration(shorter_ms)}{written}",
        advice,
        evidence={"recomputation.times": times, "recomputation.what": known.name},
        share_ms=shorter_ms,
    )
