"""The rules about time in which only the driver works, while the cores of all executors wait."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import OUTGROWN, Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.rdds.one_by_one import is_fetch
from spark_events.diagnosis.repeated_work.growing_plans import GrowingPlans
from spark_events.diagnosis.repeated_work.projections import longest_chain
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.driver_issues import (
    AFTER,
    AT_END,
    AT_START,
    READERS,
    TO_PANDAS,
    Collected,
    Jobs,
    Looped,
    Pauses,
    collect_issue,
    driver_issue,
    is_loop,
    loop_issue,
)
from spark_events.diagnosis.times.first_use import FirstUse, computes_many_columns, has_many_columns
from spark_events.diagnosis.times.kinds_of_executions import KindsOfExecutions

_MOST_PLACES, _MOST_UNDECIDED = 1_000, 100
_LEAST_COLLECTED = 4 << 20
_ROWS_PER_MS, _ARROW_PER_MS = 4 << 10, 16 << 10
"""Python takes rows from the JVM at 4 MB a second or faster, and what Arrow brings at four times that; longer
pauses are for something else."""
_LOOP, _MAY_BE_LOOP = 20, 3
"""From so many jobs of one place on, it is a loop, or may become one."""
_ANYWHERE = "stages of DataFrames"
"""Where Spark does not say for which place in the code stages are: they may be for many."""
_LONG_MS = 10_000
"""So long a pause has the name of the SQL execution that comes next, if that writes."""
_STARTS = 8
"""So many times as long as Spark takes to start, it takes until the first stage, on a busy machine, too."""
_USUAL_PAUSE_MS, _MOST_USUAL = 300, 32
"""So long Spark plans, compiles and commits between two stages, whatever the program does; so many of these
pauses are no reason to say anything."""
_SLOWLY = 2
"""Results may come that much more slowly than is assumed; what lasts longer is work on them."""
_CALL_SITE = re.compile(r"\w+ at \S+:\d+")
_OTHERS, _LISTINGS = "other stages", "jobs that list files"


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What a stage attempt that has ended worked for.

    Attributes:
        place: in the user's code, or the stage's name; empty if unknown.
        job: tells the jobs of one place apart; those of one SQL execution are the same.
        run_ms: how long its tasks ran, in all.
        result_bytes: the size of the rows that they sent to the driver.
        lists_files: whether they list files, which no program asks for as such.
        told_ms: how much of the pause before it another issue tells, in ms.
        by_arrow: whether Arrow is to bring the rows to Python; None if it is as for the application.
    """

    place: str
    job: str
    run_ms: int
    result_bytes: int
    lists_files: bool = False
    told_ms: int = 0
    by_arrow: bool | None = None


class DriverTime:
    """Adds up the time in which no stage of an application ran although it had cores, by what came after it.

    Time in which a streaming query runs does not count: between its micro-batches it waits for data, or for
    its trigger.

    Args:
        thresholds: from when on something is an issue.
        growing: takes the plans of all executions; one of its own if None.

    Attributes:
        cores: of all executors that live.
        by_arrow: whether Arrow is to bring rows to Python, where a job does not say it.
    """

    def __init__(self, thresholds: Thresholds, growing: GrowingPlans | None = None) -> None:
        self._thresholds = thresholds
        self._usual_start_ms = thresholds.usual_start_ms
        self._usual_pause_ms = _USUAL_PAUSE_MS
        self._executors: dict[str, int] = {}
        # With the pause before each, where that was, if not before the stage's own place, and when it ended.
        self._stages: dict[tuple[int, int], tuple[str, Pauses, int]] = {}
        self._queries: set[str] = set()
        self._ending = False
        self._executions = 0
        self._last_ms: int | None = None
        self._wall_ms = self._busy_ms = 0
        self._after = ""  # what brought a large result before the pause
        self._last_place = ""
        # The last large result, or a larger one right before it: its place and size.
        self._result: tuple[str, int] | None = None
        self._result_goes_on = False
        self._pause = Pauses()
        self._before: dict[str, Pauses] = {}
        # Those within SQL executions that run on: at their end, another issue may tell what they were for.
        self._undecided: list[tuple[str, Pauses, int]] = []
        self._jobs: dict[str, Jobs] = {}
        self._collected: dict[str, Collected] = {}
        self._collects: WorkDone | None = None  # the last stage, if it sent much to the driver
        self._any_stage = self._any_query = self._has_ended = False
        self._first_use = FirstUse(self._usual_start_ms)
        # What has once been told goes on: its cost is that of the whole application.
        self._is_told = False
        self._loops_told: set[str] = set()
        self._labels: dict[str, tuple[str, str]] = {}
        self._looped = Looped()
        self._kinds, self._growing = KindsOfExecutions(), growing or GrowingPlans()
        # Of places that are called as readers are, the kinds of executions that write, and how many.
        self._writing: dict[str, Counter[str]] = {}
        self._places_now: set[str] = set()
        # The stages of the SQL execution that runs whose place Spark does not say, until its plan is known.
        self._unplaced: list[tuple[WorkDone, int, int]] = []
        self._are_mixed = False  # whether other executions have run beside the one that runs
        self.by_arrow = False
        self.cores = 0

    def spark_started(self, took_ms: int) -> None:
        """Called in local mode with how long Spark took to start: whatever is loaded then takes long, too."""
        self._usual_start_ms = max(self._usual_start_ms, _STARTS * took_ms)
        self._usual_pause_ms = max(_USUAL_PAUSE_MS, took_ms // _STARTS)
        self._first_use.usual_ms = self._usual_start_ms

    def executor_added(self, executor: str, cores: int, time_ms: int) -> None:
        """Called when an executor was added."""
        self._advance(time_ms)
        self._executors[executor] = cores
        self.cores = sum(self._executors.values())

    def executor_removed(self, executor: str, time_ms: int) -> None:
        """Called when an executor was removed."""
        self._advance(time_ms)
        self._executors.pop(executor, None)
        self.cores = sum(self._executors.values())

    def query_started(self, run_id: str, time_ms: int) -> None:
        """Called when a streaming query has begun.

        Before the first one, Spark loads the code of streaming queries, which takes as long as any first use;
        where no stage has run, that is a part of the application's start.
        """
        self._advance(time_ms)
        if self._any_stage and not self._any_query:
            outside_ms = self._pause.time_ms - self._pause.within_ms
            self._pause.time_ms -= min(outside_ms, self._usual_start_ms)
        self._any_query = True
        self._queries.add(run_id)

    def query_ended(self, run_id: str, time_ms: int) -> None:
        """Called when a streaming query has ended, at the latest: an event log does not say when."""
        self._advance(time_ms)
        self._ending = run_id in self._queries or self._ending
        self._queries.discard(run_id)

    def executions(self, change: int, time_ms: int) -> None:
        """Called when an SQL execution has begun, or ended where the change is negative."""
        self._advance(time_ms)
        self._executions = max(0, self._executions + change)
        self._are_mixed = bool(self._executions) and (self._are_mixed or self._executions > 1)
        if not self._executions:
            self._first_use.ended()
            self._unplaced.clear()
            self._places_now.clear()
            self._decide()

    def execution_planned(self, execution: EndedExecution) -> None:
        """Called before the end of an SQL execution with its plans."""
        self._growing.take(execution)
        self._first_use.planned(execution)
        self._looped.any_planned = True
        self._looped.many_columns = self._looped.many_columns or has_many_columns(execution)
        if self._looped.many_columns and not self._looped.computed:
            self._looped.computed = computes_many_columns(execution)
        self._looped.projections = max(self._looped.projections, longest_chain(execution))
        if written := execution.written():
            write = f"the write into {written[0]}"
            self._last_place = self._last_place or write
            if self._executions == 1:
                self._undecided = [
                    (write if place == _ANYWHERE and pause.time_ms >= _LONG_MS else place, pause, ended_ms)
                    for place, pause, ended_ms in self._undecided
                ]
        if not (self._are_mixed or self._queries):
            kind = self._kinds.take(execution)
            self._place(kind, f"execution {execution.begun_ms}")
            if written:
                for place in self._places_now & self._jobs.keys():
                    self._writing.setdefault(place, Counter())[kind] += 1

    def _place(self, kind: str, execution: str) -> None:
        """Book what Spark does not say the place of by the kind of the execution, which may be of a loop."""
        works, self._unplaced = self._unplaced, []
        if not kind or len(self._jobs) >= _MOST_PLACES:
            return
        self._undecided = [
            (kind if place == _ANYWHERE else place, pause, ended_ms)
            for place, pause, ended_ms in self._undecided
        ]
        for work, busy_ms, time_ms in works:
            self._add_job(replace(work, place=kind, job=execution), busy_ms, time_ms)

    def told_elsewhere(self, time_ms: int, since_ms: int, until_ms: int) -> None:
        """Called before the end of an SQL execution with what another issue has as the cost of its driver.

        While that worked, stages may have run, so that there was no pause.

        Args:
            time_ms: how long the driver worked.
            since_ms, until_ms: when it began at the earliest, and ended at the latest, in ms since the epoch.
        """
        for _, pause, ended_ms in self._undecided:
            if since_ms < ended_ms <= until_ms:
                time_ms -= pause.take(min(time_ms, pause.within_ms))

    def stage_submitted(self, key: tuple[int, int], time_ms: int) -> None:
        """Called when a stage attempt has begun."""
        self._advance(time_ms)
        pause = self._ended_pause()
        if not self._any_stage:
            pause = Pauses(1, max(0, pause.time_ms - self._usual_start_ms), 0)
        if self._executions:
            self._first_use.add(pause)
        at = f"{AFTER}{self._after}" if self._after else ""
        at_start = f"{AT_START}{duration(self._usual_start_ms)}"
        self._stages[key] = at if self._any_stage else at_start, pause, time_ms
        self._after = ""
        self._any_stage = True

    def stage_completed(self, key: tuple[int, int], work: WorkDone, time_ms: int) -> None:
        """Called when a stage attempt has ended.

        Args:
            key: the stage and the number of its attempt.
            work: what it was for.
            time_ms: when, in ms since the epoch.
        """
        self._advance(time_ms)
        at, pause, paused_until_ms = self._stages.pop(key, ("", Pauses(), 0))
        pause.take(work.told_ms)
        place = _LISTINGS if work.lists_files else work.place
        self._book(at or place or _ANYWHERE, pause, paused_until_ms)
        busy_ms, self._busy_ms = self._busy_ms, 0
        if work.place and not at and not is_fetch(work.place) and not work.lists_files:
            self._add_job(work, busy_ms, time_ms)
        elif not place and not at and len(self._unplaced) < _MOST_UNDECIDED:
            self._unplaced.append((work, busy_ms, time_ms))
        if self._executions and place.split(" ")[0] in READERS and len(self._places_now) < _MOST_PLACES:
            self._places_now.add(place)
        self._collects = work if work.result_bytes >= _LEAST_COLLECTED else None
        # Another result of the same kind may follow: the stages before that have its place.
        self._result_goes_on = self._result_goes_on and work.place.startswith(TO_PANDAS)
        self._last_place = work.place if _CALL_SITE.fullmatch(work.place) else ""

    def end(self, time_ms: int) -> None:
        """Called at the end of the application."""
        self._advance(time_ms)
        self._has_ended = True
        for at, pause, paused_until_ms in self._stages.values():
            self._book(at or _OTHERS, pause, paused_until_ms)
        self._stages.clear()
        if self._any_stage:
            pause = self._ended_pause()
            self._book(f"{AFTER}{self._after}" if self._after else AT_END, pause, time_ms)
        self._decide()

    def issues(self, time_ms: int) -> Iterator[Issue]:
        """Yield what the time of the driver alone has cost so far, however little."""
        self._advance(time_ms)
        for place, collected in self._collected.items():
            yield collect_issue(place, collected)
        least_ms = max(
            self._thresholds.least_idle_ms,
            self._thresholds.idle_share * self._wall_ms,
            1,
        )
        others = dict(self._before)
        loops = self._loops(others)
        for place, (pauses, jobs) in loops.items():
            is_large = self._in_turn_with(jobs, loops) >= least_ms
            if (is_large or place in self._loops_told) and is_loop(pauses, jobs, _LOOP):
                self._loops_told.add(place)
                others.pop(place, None)
                # An issue keeps its name, whatever else is read later.
                label = self._labels.setdefault(place, self._label(place, jobs))
                loop = loop_issue(*label, pauses, jobs, self.cores, bool(self._written_at(place, jobs)))
                yield self._by_now(loop, is_large)
            elif not self._has_ended and is_loop(pauses, jobs, _MAY_BE_LOOP):
                others.pop(place, None)
        for place in [place for place in others if self._kinds.get(place)]:
            anywhere = others[_ANYWHERE] = replace(others.get(_ANYWHERE, Pauses()))
            anywhere.merge(others.pop(place))
        self._looped.grown = self._growing.most()
        alone_ms = sum(pause.time_ms for pause in others.values())
        usual_ms = sum(pause.usual_ms for pause in others.values())
        usual_ms = min(usual_ms, _MOST_USUAL * self._usual_pause_ms)
        is_large = alone_ms - usual_ms >= least_ms
        if is_large or (self._is_told and alone_ms):
            self._is_told = True
            issue = driver_issue(
                alone_ms,
                self._wall_ms,
                self.cores,
                others,
                self._collected,
                self._looped,
                self._usual_start_ms,
            )
            yield self._by_now(issue, is_large)

    def _loops(self, before: dict[str, Pauses]) -> dict[str, tuple[Pauses, Jobs]]:
        """Return the places that may have a loop, and move what the program does between SQL executions."""
        loops: dict[str, tuple[Pauses, Jobs]] = {}
        for place, jobs in self._jobs.items():
            pauses = before.get(place, Pauses())
            if self._kinds.get(place):
                of_loop, of_program = pauses.of_loop()
                if is_loop(of_loop, jobs, _MAY_BE_LOOP):
                    pauses = before[place] = of_loop
                    anywhere = before[_ANYWHERE] = replace(before.get(_ANYWHERE, Pauses()))
                    anywhere.merge(of_program)
            if is_loop(pauses, jobs, _MAY_BE_LOOP):
                loops[place] = pauses, jobs
        return loops

    def _label(self, place: str, jobs: Jobs) -> tuple[str, str]:
        """Return what a loop's jobs are called, and the folder of which each reads another part, if any."""
        kinds = self._written_at(place, jobs)
        kind = self._kinds.get(place) or (self._kinds.get(*kinds) if len(kinds) == 1 else None)
        if kind is None:
            return place, ""
        return place if _CALL_SITE.fullmatch(place) else kind.label, kind.parts_of

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

    def _by_now(self, issue: Issue, is_large: bool) -> Issue:
        """Return an issue that says at the end of the application if it is no longer worth telling."""
        if is_large or not self._has_ended:
            return issue
        return replace(issue, evidence={**issue.evidence, OUTGROWN: True})

    def _ended_pause(self) -> Pauses:
        """Return the pause that ends now, without the part in which a result came to the driver."""
        pause, self._pause = self._pause, Pauses()
        pause.usual_ms = min(pause.time_ms, self._usual_pause_ms)
        pause.after = self._last_place
        return self._settle_collect(pause) if self._collects is not None and pause.time_ms else pause

    def _book(self, place: str, pause: Pauses, ended_ms: int) -> None:
        if not pause.time_ms:
            return
        self._undecided.append((place, pause, ended_ms))
        if not self._executions or not pause.within_ms or len(self._undecided) > _MOST_UNDECIDED:
            self._decide()

    def _decide(self) -> None:
        """Book the pauses of which no other issue may tell any more."""
        for place, pause, _ in self._undecided:
            if not pause.time_ms:
                continue  # another issue has told all of it
            if place not in self._before and len(self._before) >= _MOST_PLACES:
                place = _OTHERS
            self._before.setdefault(place, Pauses()).add(pause)
        self._undecided.clear()

    def _add_job(self, work: WorkDone, busy_ms: int, time_ms: int) -> None:
        if work.place not in self._jobs and len(self._jobs) >= _MOST_PLACES:
            return
        jobs = self._jobs.setdefault(work.place, Jobs())
        jobs.number += work.job != jobs.last
        jobs.last = work.job
        jobs.begun_ms, jobs.ended_ms = jobs.begun_ms or time_ms, time_ms
        jobs.stages_ms += busy_ms
        jobs.run_ms += work.run_ms

    def _settle_collect(self, pause: Pauses) -> Pauses:
        """Book the part of a pause in which a result came to the driver, and return the rest of it."""
        assert self._collects is not None  # asked before
        work, self._collects = self._collects, None
        place, result_bytes = work.place or _ANYWHERE, work.result_bytes
        per_ms = _ARROW_PER_MS if place.startswith(TO_PANDAS) else _ROWS_PER_MS
        taken_ms = min(pause.time_ms, result_bytes // per_ms)
        if place in self._collected or len(self._collected) < _MOST_PLACES:
            collected = self._collected.setdefault(place, Collected())
            collected.by_arrow = self.by_arrow if work.by_arrow is None else work.by_arrow
            collected.times += 1
            collected.size_bytes += result_bytes
            collected.taken_ms += taken_ms
            collected.pauses_ms += pause.time_ms
        before, self._result = self._result, (place, result_bytes)
        if before is not None and self._result_goes_on and before[1] > result_bytes:
            self._result = before
        left_ms = pause.time_ms - taken_ms
        # A program that works for long then, works on this one before it asks for another.
        self._after, self._result_goes_on = self._result[0], left_ms <= _SLOWLY * taken_ms
        return Pauses(1, left_ms, max(0, pause.within_ms - taken_ms))

    def _advance(self, time_ms: int) -> None:
        passed_ms = max(0, time_ms - self._last_ms) if self._last_ms is not None else 0
        self._last_ms = max(time_ms, self._last_ms or 0)
        of_query = self._queries or self._ending
        self._ending = self._ending and not passed_ms
        if not self.cores or of_query or not passed_ms:
            return
        self._wall_ms += passed_ms
        self._busy_ms += passed_ms if self._stages else 0
        if not self._stages:
            self._pause.time_ms += passed_ms
            self._pause.within_ms += passed_ms if self._executions else 0
