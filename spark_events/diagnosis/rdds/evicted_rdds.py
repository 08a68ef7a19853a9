"""The rule about cached RDDs whose partitions are computed again, because the cache does not have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import NO_TASKS, TaskRun, TasksMeasured, WithoutInput, kept_rdds
from spark_events.diagnosis.rdds.stage_place import place_of_stage
from spark_events.diagnosis.thresholds import RECOMPUTATION

_MOST_RDDS = 1_000
_OF_PYTHON = ".py:"


@dataclass(slots=True)
class _Cached:
    """A cached RDD; times in ms.

    Attributes:
        whole_ms: when a stage had computed all of it for the first time, since the epoch.
        least_run_ms: how long the tasks of a stage ran at least that has computed all of it.
        times: in how many stages partitions were computed again.
        fewest: how many one of these stages computed again at least.
        most: and at most; those of two stages may be the same.
        lost_ms: what that cost, by the tasks of the same stages that found theirs; None if none ever did.
        most_ms: what it cost at most, in the stages of which no task did.
        read: what the tasks read that computed it, in bytes and rows, by partition; of the longest ones.
        at_least: whether more partitions may have been computed again than are known.
    """

    title: str
    partitions: int
    whole_ms: int
    least_run_ms: int
    times: int = 0
    fewest: int = 0
    most: int = 0
    lost_ms: int | None = None
    most_ms: int = 0
    read: dict[int, tuple[int, int]] = field(default_factory=dict)
    at_least: bool = False


class EvictedRdds:
    """Remembers which cached RDDs were computed, and adds up what it costs to compute them again.

    A task that finds its partition in the cache has read it from there, which is measured. One that has to
    compute it has read nothing; or, if it computes it from files, what was read from them for the same
    partition before. That is known of the longest tasks only.
    """

    def __init__(self) -> None:
        self._cached: dict[int, _Cached] = {}

    def take(self, info: Mapping[str, Any], measured: TasksMeasured, slots: int) -> tuple[Issue, int] | None:
        """Called with each stage that has succeeded; returns what its RDD has cost so far, and in this stage.

        Args:
            info: its ``Stage Info``.
            measured: what its tasks measured.
            slots: how many tasks ran at once.
        """
        tasks = int(info.get("Number of Tasks") or 0)
        rdds = [rdd for rdd in kept_rdds(info) if int(rdd.get("Number of Partitions") or 0) == tasks]
        if not rdds or measured.tasks != tasks:
            return None
        last = max(rdds, key=lambda rdd: int(rdd["RDD ID"]))  # what its tasks look for first
        begun_ms = int(info.get("Submission Time") or measured.first_ms)
        ended_ms = int(info.get("Completion Time") or measured.last_ms)
        known = self._cached.get(int(last["RDD ID"]))
        if known is None:
            self._add(rdds, measured, ended_ms, place_of_stage(info))
            return None
        again = measured.without_input if measured.without_input.tasks else _from_files(known, measured)
        if begun_ms < known.whole_ms or not again.tasks:
            return None
        known.at_least |= again.tasks < measured.tasks and again.tasks == len(measured.longest_runs)
        return self._computed_again(int(last["RDD ID"]), known, measured, again, slots)

    def unpersisted(self, number: int) -> None:
        """Called with an RDD that the program no longer keeps: if it keeps it again, it is computed anew."""
        self._cached.pop(number, None)

    def _add(self, rdds: list[Mapping[str, Any]], measured: TasksMeasured, ended_ms: int, place: str) -> None:
        for rdd in rdds:
            if len(self._cached) < _MOST_RDDS:
                number = int(rdd["RDD ID"])
                cached = _Cached(_title(rdd, place), measured.tasks, ended_ms, measured.run.total)
                cached.read = {run.number: _input_of(run) for run in measured.longest_runs if run.read_bytes}
                self._cached.setdefault(number, cached)

    def _computed_again(
        self, number: int, cached: _Cached, measured: TasksMeasured, again: WithoutInput, slots: int
    ) -> tuple[Issue, int]:
        slots = max(1, slots)
        hits = measured.tasks - again.tasks
        cached.times += 1
        cached.fewest = min(cached.fewest or again.tasks, again.tasks)
        cached.most = max(cached.most, again.tasks)
        if not hits:  # what the stage does besides is not known, but the quickest of all has computed it, too
            cached.least_run_ms = min(cached.least_run_ms, measured.run.total)
            cached.most_ms += cached.least_run_ms // slots
            return _issue(number, cached), 0
        usual_ms = (measured.run.total - again.run_ms) // hits
        more_ms = max(0, again.run_ms - again.tasks * usual_ms)
        without_ms = usual_ms * -(-measured.tasks // slots)
        lost_ms = min(more_ms, measured.last_ms - measured.first_ms - without_ms)
        lost_ms = max(lost_ms, more_ms // slots)
        cached.lost_ms = (cached.lost_ms or 0) + lost_ms
        return _issue(number, cached), lost_ms


def _input_of(run: TaskRun) -> tuple[int, int]:
    return run.read_bytes, run.read_rows


def _from_files(cached: _Cached, measured: TasksMeasured) -> WithoutInput:
    """Return how many of the longest tasks of a stage have computed their partition from files again.

    Those that read as much as was read for the same partition before have done that; others, of which that
    is not known, have if they ran about as long, and read as many rows.
    """
    longest = measured.longest_runs
    same = {run.number for run in longest if cached.read.get(run.number) == _input_of(run)}
    if not same:
        return NO_TASKS
    least_ms = min(run.run_ms for run in longest if run.number in same)
    least_rows = min(rows for _, rows in cached.read.values())
    again = [
        run
        for run in longest
        if run.number in same
        or (run.number not in cached.read and 2 * run.run_ms >= least_ms and run.read_rows >= least_rows)
    ]
    return WithoutInput(len(again), sum(run.run_ms for run in again))


def _title(rdd: Mapping[str, Any], place: str) -> str:
    """Return what to call an RDD: by its own name, or by the place in the code for which it was computed."""
    name = str(rdd.get("Name") or "")
    if name and not name.endswith("RDD") and "\n" not in name:
        return f"the RDD {name[:100]}"
    return f"RDD {rdd['RDD ID']}{f' (of {place})' if _OF_PYTHON in place else ''}"


def _how_many(cached: _Cached) -> str:
    at_least = "at least " * cached.at_least
    if cached.most == 1:
        return f"{at_least}one of them is"
    fewest = "" if cached.fewest == cached.most else f"{cached.fewest:,} to "
    return f"{at_least}{fewest}{cached.most:,} of them are"


def _issue(number: int, cached: _Cached) -> Issue:
    stages = "one stage" if cached.times == 1 else f"each of {cached.times:,} stages"
    at_most = ""
    if cached.most_ms:
        where = "" if cached.lost_ms is None else ", where none was found"
        at_most = f" (which takes at most {duration(cached.most_ms)}{where})"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} rdd {number}",
        cached.lost_ms,
        None,
        f"{cached.title} is cached and has {cached.partitions:,} partitions, and yet {_how_many(cached)} "
        f"computed again, in {stages}{at_most}: the cache does not keep them",
        "It does not fit, or executors went with what they had: persist it with MEMORY_AND_DISK, give "
        "executors more memory (spark.executor.memory), cache less, or unpersist() what is not needed.",
        evidence={
            "recomputation.times": cached.times,
            "recomputation.cached": True,
            "recomputation.what": cached.title,
        },
        share_ms=cached.most_ms if cached.lost_ms is None else None,
    )
