"""The rules about time in which only the driver works, while the cores of all executors wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import OUTGROWN, Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.local_rows import with_local_rows
from spark_events.diagnosis.rdds.one_by_one import is_fetch
from spark_events.diagnosis.repeated_work.growing_plans import GrowingPlans
from spark_events.diagnosis.repeated_work.projections import longest_chain
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.collected_results import CollectedResults
from spark_events.diagnosis.times.driver_issues import AFTER, AT_END, AT_START, Looped, driver_issue
from spark_events.diagnosis.times.first_use import FirstUse, computes_many_columns, has_many_columns
from spark_events.diagnosis.times.pauses import ANYWHERE, MOST_PLACES, Pauses, WorkDone
from spark_events.diagnosis.times.program_loops import CALL_SITE, READERS, ProgramLoops

_MOST_UNDECIDED = 100
_LONG_MS = 10_000
"""So long a pause has the name of the SQL execution that comes next, if that writes."""
_STARTS = 8
"""So many times as long as Spark takes to start, it takes until the first stage, on a busy machine, too."""
_USUAL_PAUSE_MS, _MOST_USUAL = 300, 32
"""So long Spark plans, compiles and commits between two stages, whatever the program does; so many of these
pauses are no reason to say anything."""
_OTHERS, _LISTINGS = "other stages", "jobs that list files"


class DriverTime:
    """Adds up the time in which no stage of an application ran although it had cores, by what came after it.

    Time in which a streaming query runs does not count: between its micro-batches it waits for data, or for
    its trigger.

    Args:
        thresholds: from when on something is an issue.
        growing: takes the plans of all executions; one of its own if None.

    Attributes:
        cores: of all executors that live.
        results: that came to the driver.
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
        self._last_place = ""
        self._pause = Pauses()
        self._before: dict[str, Pauses] = {}
        # Those within SQL executions that run on: at their end, another issue may tell what they were for.
        self._undecided: list[tuple[str, Pauses, int]] = []
        self._loops = ProgramLoops()
        self._any_stage = self._any_query = self._has_ended = False
        self._first_use = FirstUse(self._usual_start_ms)
        # What has once been told goes on: its cost is that of the whole application.
        self._is_told = False
        self._looped = Looped()
        self._growing = growing or GrowingPlans()
        # Of the SQL execution that runs, those of its stages' places that are called as readers are.
        self._places_now: set[str] = set()
        # The stages of the SQL execution that runs whose place Spark does not say, until its plan is known.
        self._unplaced: list[tuple[WorkDone, int, int]] = []
        self._are_mixed = False  # whether other executions have run beside the one that runs
        self.results = CollectedResults()
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
        self._looped.local = with_local_rows(self._looped.local, execution)
        if written := execution.written():
            write = f"the write into {written[0]}"
            self._last_place = self._last_place or write
            if self._executions == 1:
                self._undecided = [
                    (write if place == ANYWHERE and pause.time_ms >= _LONG_MS else place, pause, ended_ms)
                    for place, pause, ended_ms in self._undecided
                ]
        if not (self._are_mixed or self._queries):
            kind = self._loops.execution_planned(execution, self._places_now)
            self._place(kind, f"execution {execution.begun_ms}")

    def _place(self, kind: str, execution: str) -> None:
        """Book what Spark does not say the place of by the kind of the execution, which may be of a loop."""
        works, self._unplaced = self._unplaced, []
        if not kind:
            return
        self._undecided = [
            (kind if place == ANYWHERE else place, pause, ended_ms)
            for place, pause, ended_ms in self._undecided
        ]
        for work, busy_ms, time_ms in works:
            self._loops.add(replace(work, place=kind, job=execution), busy_ms, time_ms)

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
        at = f"{AFTER}{self.results.after}" if self.results.after else ""
        at_start = f"{AT_START}{duration(self._usual_start_ms)}"
        self._stages[key] = at if self._any_stage else at_start, pause, time_ms
        self.results.after = ""
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
        self._book(at or place or ANYWHERE, pause, paused_until_ms)
        busy_ms, self._busy_ms = self._busy_ms, 0
        if work.place and not at and not is_fetch(work.place) and not work.lists_files:
            self._loops.add(work, busy_ms, time_ms)
        elif not place and not at and len(self._unplaced) < _MOST_UNDECIDED:
            self._unplaced.append((work, busy_ms, time_ms))
        if self._executions and place.split(" ")[0] in READERS and len(self._places_now) < MOST_PLACES:
            self._places_now.add(place)
        self.results.stage_completed(work)
        self._last_place = work.place if CALL_SITE.fullmatch(work.place) else ""

    def end(self, time_ms: int) -> None:
        """Called at the end of the application."""
        self._advance(time_ms)
        self._has_ended = True
        for at, pause, paused_until_ms in self._stages.values():
            self._book(at or _OTHERS, pause, paused_until_ms)
        self._stages.clear()
        if self._any_stage:
            pause = self._ended_pause()
            self._book(f"{AFTER}{self.results.after}" if self.results.after else AT_END, pause, time_ms)
        self._decide()

    def issues(self, time_ms: int) -> Iterator[Issue]:
        """Yield what the time of the driver alone has cost so far, however little."""
        self._advance(time_ms)
        yield from self.results.issues()
        least_ms = max(
            self._thresholds.least_idle_ms,
            self._thresholds.idle_share * self._wall_ms,
            1,
        )
        others = dict(self._before)
        for loop, is_large in self._loops.issues(others, least_ms, self.cores, self._has_ended):
            yield self._by_now(loop, is_large)
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
                self.results.places,
                self._looped,
                self._usual_start_ms,
            )
            yield self._by_now(issue, is_large)

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
        return self.results.take(pause)

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
            if place not in self._before and len(self._before) >= MOST_PLACES:
                place = _OTHERS
            self._before.setdefault(place, Pauses()).add(pause)
        self._undecided.clear()

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
