"""Loops of the program that run small jobs one after the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.thresholds import SMALL_JOBS
from spark_events.diagnosis.times.kinds_of_executions import KindsOfExecutions
from spark_events.diagnosis.times.pauses import ANYWHERE, MOST_PLACES, Pauses, WorkDone

LOOP_AT, LOOP_JOBS, LOOP_SPAN = "loop.place", "loop.jobs", ("loop.begunMs", "loop.endedMs")
READERS = ("parquet", "orc", "csv", "json", "xml", "text", "load")
"""What Spark calls the jobs of its readers of files, which run where they are called; and of its writers."""
CALL_SITE = re.compile(r"\w+ at \S+:\d+")
_IN_TURN = 0.8
"""Jobs of two places that run at the same time, for as much of it, are of one loop."""
_SMALL_MS = 5_000
"""How long a small job takes at most."""
_LOOP, _MAY_BE_LOOP = 20, 3
"""From so many jobs of one place on, it is a loop, or may become one."""


@dataclass(slots=True)
class Jobs:
    """The jobs of one place, each of which may be the one before with another of its stages.

    Attributes:
        number: how many there were.
        last: the latest.
        stages_ms: for how long any stage ran since the pauses before their stages, in ms.
        run_ms: how long their tasks ran, in all.
        begun_ms, ended_ms: when their first and last stage ended, in ms since the epoch.
    """

    number: int = 0
    last: str = ""
    stages_ms: int = 0
    run_ms: int = 0
    begun_ms: int = 0
    ended_ms: int = 0

    def in_turn_with(self, others: Jobs) -> bool:
        """Return whether these and other jobs run at about the same time."""
        return are_in_turn((self.begun_ms, self.ended_ms), (others.begun_ms, others.ended_ms))


def are_in_turn(span: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two loops run at about the same time, by when each began and ended, in ms."""
    shared_ms = min(span[1], other[1]) - max(span[0], other[0])
    return shared_ms > _IN_TURN * max(span[1] - span[0], other[1] - other[0], 0)


class ProgramLoops:
    """Adds up the jobs of each place, and finds the loops in them.

    Where Spark does not say the place of an SQL execution, its kind is taken for the place.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Jobs] = {}
        self._kinds = KindsOfExecutions()
        # Of places that are called as readers are, the kinds of executions that write, and how many.
        self._writing: dict[str, Counter[str]] = {}
        # An issue keeps its name, whatever else is read later.
        self._labels: dict[str, tuple[str, str]] = {}
        self._told: set[str] = set()

    def execution_planned(self, execution: EndedExecution, places: set[str]) -> str:
        """Called at the end of an SQL execution beside which no other has run.

        Args:
            execution: it, with its plans.
            places: those of its stages that are called as readers are.

        Returns:
            What its stages have for a place where Spark does not say it; empty if that is not known.
        """
        kind = self._kinds.take(execution)
        if execution.written():
            for place in places & self._jobs.keys():
                self._writing.setdefault(place, Counter())[kind] += 1
        return kind if len(self._jobs) < MOST_PLACES else ""

    def add(self, work: WorkDone, busy_ms: int, time_ms: int) -> None:
        """Add a stage attempt to the jobs of its place.

        Args:
            work: what it was for.
            busy_ms: for how long any stage ran since the one before ended.
            time_ms: when it ended, in ms since the epoch.
        """
        if work.place not in self._jobs and len(self._jobs) >= MOST_PLACES:
            return
        jobs = self._jobs.setdefault(work.place, Jobs())
        jobs.number += work.job != jobs.last
        jobs.last = work.job
        jobs.begun_ms, jobs.ended_ms = jobs.begun_ms or time_ms, time_ms
        jobs.stages_ms += busy_ms
        jobs.run_ms += work.run_ms

    def issues(
        self, before: dict[str, Pauses], least_ms: float, cores: int, has_ended: bool
    ) -> Iterator[tuple[Issue, bool]]:
        """Yield the loops, each with whether it costs enough to be told; one that was told stays.

        Args:
            before: the pauses by the place of the stages that came next; those that loops tell, or may once
                tell, are taken out of it, and those before executions without a place are put together.
            least_ms: what a loop costs at least.
            cores: of all executors.
            has_ended: whether the application has, so that no loop comes any more.
        """
        loops = self._possible(before)
        for place, (pauses, jobs) in loops.items():
            is_large = self._in_turn_with(jobs, loops) >= least_ms
            if (is_large or place in self._told) and is_loop(pauses, jobs, _LOOP):
                self._told.add(place)
                _take_out(place, before)
                label = self._labels.setdefault(place, self._label(place, jobs))
                writes = bool(self._written_at(place, jobs))
                yield loop_issue(*label, pauses, jobs, cores, writes), is_large
            elif not has_ended and is_loop(pauses, jobs, _MAY_BE_LOOP):
                _take_out(place, before)
        for place in [place for place in before if self._kinds.get(place)]:
            anywhere = before[ANYWHERE] = replace(before.get(ANYWHERE, Pauses()))
            anywhere.merge(before.pop(place))

    def _possible(self, before: dict[str, Pauses]) -> dict[str, tuple[Pauses, Jobs]]:
        """Return the places that may have a loop, each with what of the pauses it costs."""
        loops: dict[str, tuple[Pauses, Jobs]] = {}
        for place, jobs in self._jobs.items():
            pauses = before.get(place, Pauses())
            of_loop, _ = pauses.of_loop()
            if is_loop(of_loop, jobs, _MAY_BE_LOOP):
                loops[place] = of_loop, jobs
        return loops

    def _label(self, place: str, jobs: Jobs) -> tuple[str, str]:
        """Return what a loop's jobs are called, and the folder of which each reads another part, if any."""
        kinds = self._written_at(place, jobs)
        kind = self._kinds.get(place) or (self._kinds.get(*kinds) if len(kinds) == 1 else None)
        if kind is None:
            return place, ""
        return place if CALL_SITE.fullmatch(place) else kind.label, kind.parts_of

    def _written_at(self, place: str, jobs: Jobs) -> Counter[str]:
        """Return the kinds of writes at a place, if most of its jobs are some: others look for columns."""
        writes = self._writing.get(place, Counter())
        return writes if 2 * writes.total() > jobs.number else Counter()

    def _in_turn_with(self, jobs: Jobs, loops: Mapping[str, tuple[Pauses, Jobs]]) -> int:
        """Return how long a loop takes with those that run in turn with it, in ms."""
        return sum(
            pauses.time_ms + others.stages_ms
            for pauses, others in loops.values()
            if is_loop(pauses, others, _LOOP) and jobs.in_turn_with(others)
        )


def _take_out(place: str, before: dict[str, Pauses]) -> None:
    """Take out of the pauses before a place those that are of a loop; what the program does remains."""
    pauses = before.pop(place, None)
    if pauses is not None and pauses.programs:
        before[place] = pauses.of_loop()[1]


def is_loop(pauses: Pauses, jobs: Jobs, least: int) -> bool:
    """Return whether a loop runs small jobs at a place, so many at least, one after the other."""
    in_turn = min(pauses.number, jobs.number) >= least
    return in_turn and pauses.time_ms + jobs.stages_ms <= _SMALL_MS * jobs.number


def loop_issue(
    place: str, parts_of: str, pauses: Pauses, jobs: Jobs, cores: int, writes: bool = False
) -> Issue:
    """Return that a loop runs small jobs one after the other.

    Args:
        place: of the jobs.
        parts_of: the folder of which each reads another part; empty if they do not.
        pauses, jobs: before them, and what is known of them.
        cores: of all executors.
        writes: whether the jobs write.
    """
    whole_ms = pauses.time_ms + jobs.stages_ms
    # What their tasks do would have to be done by one job as well, at best by all cores.
    needed_ms = min(whole_ms, jobs.run_ms // max(1, cores))
    advice = (
        "A loop in the driver runs a small job each time: let one job do all of it (one agg() for all "
        "columns; a join, a groupBy or a window in place of the loop), or run the jobs at the same time in "
        "threads."
    )
    if parts_of:
        advice = (
            f"Each reads another part of {parts_of}: read all of it at once, as one table, and let one query "
            "do it for all parts (groupBy, a join, or a window by what tells them apart; partitionBy for a "
            "write). Or run them at the same time in threads."
        )
    if place.split(" ")[0] in READERS and not writes:
        advice = (
            "Each reads files to find out which columns they have: give the schema (spark.read.schema(…)), "
            "or read several paths at once, as one table."
        )
    return Issue(
        SMALL_JOBS,
        f"{SMALL_JOBS} {place}",
        (whole_ms - needed_ms) * (jobs.number - 1) // jobs.number,
        None,
        f"{jobs.number:,} small jobs of {place} run one after the other, {duration(whole_ms)} in all; all "
        f"cores could do what their tasks do in {duration(needed_ms)}",
        advice,
        evidence={
            LOOP_AT: place,
            LOOP_SPAN[0]: jobs.begun_ms,
            LOOP_SPAN[1]: jobs.ended_ms,
            LOOP_JOBS: jobs.number,
            "loop.driverAloneMs": pauses.time_ms,
            "loop.runTimeMs": jobs.run_ms,
        },
    )
