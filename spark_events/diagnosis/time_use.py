"""Where the time of a run went: each moment belongs to one part, so they add up to all of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_events.diagnosis.run_timeline import StageRun, TaskTimes

WAITING = "waiting for executors"
DRIVER = "driver alone"
BATCH = "driver in a micro-batch"
STREAM = "waiting for data or a trigger"
SCHEDULING = "scheduling and starting tasks"
GC = "garbage collection"
SHUFFLE = "waiting for shuffle data"
PYTHON = "Python functions"
COMPUTING = "reading, computing and writing"
UNKNOWN = "tasks that measured nothing"
PARTS = {
    WAITING: "stages have no executors to run on",
    DRIVER: "no stage runs: the driver plans, collects, commits, or runs code of its own",
    BATCH: "no job runs within a micro-batch: foreachBatch code, planning, commits",
    STREAM: "a streaming query runs, and no job nor micro-batch",
    SCHEDULING: "tasks wait for a core, or are sent, unpacked and sent back",
    SHUFFLE: "tasks wait for what other tasks wrote",
    GC: "the JVMs of tasks collect garbage",
    PYTHON: "tasks wait for functions in Python (since Spark 4)",
    COMPUTING: "all else that tasks do; Spark does not measure it apart",
    UNKNOWN: "tasks run, and their metrics are zero",
}
"""The parts, with what each means."""
KEYS = {
    WAITING: "timeUse.waitingForExecutors",
    DRIVER: "timeUse.driver",
    BATCH: "timeUse.microBatch",
    STREAM: "timeUse.queryIdle",
    SCHEDULING: "timeUse.scheduling",
    GC: "timeUse.gc",
    SHUFFLE: "timeUse.shuffleWait",
    PYTHON: "timeUse.python",
    COMPUTING: "timeUse.computing",
    UNKNOWN: "timeUse.unmeasured",
}
"""The attributes of the application's span that have them, in ms."""


class TimeUse:
    """Divides the time of a run among the ``PARTS``, from what begins and ends in it.

    What happened may be told in any order; what is folded is final, and takes no memory any more.
    """

    def __init__(self) -> None:
        self._changes: list[_Change] = []
        self._state = _State()
        self._used = dict.fromkeys(PARTS, 0.0)
        self._before_ms: int | None = None

    @property
    def pending(self) -> int:
        """How many beginnings and ends are not folded yet."""
        return len(self._changes)

    def jobs(self, time_ms: int, number: int) -> None:
        """Let jobs begin, or end where the number is negative."""
        self._changes.append((time_ms, _State.add_jobs, number))

    def queries(self, time_ms: int, number: int) -> None:
        """Let streaming queries begin, or end where the number is negative."""
        self._changes.append((time_ms, _State.add_queries, number))

    def batches(self, time_ms: int, number: int) -> None:
        """Let micro-batches of streaming queries begin, or end where the number is negative."""
        self._changes.append((time_ms, _State.add_batches, number))

    def cores(self, time_ms: int, number: int) -> None:
        """Let there be so many cores from a moment on."""
        self._state.known_executors = True
        self._changes.append((time_ms, _State.set_cores, number))

    def stage(self, stage: StageRun) -> None:
        """Add a stage attempt that has ended."""
        self._changes += (
            (stage.submitted_ms, _State.add_stages, 1),
            (stage.ended_ms, _State.add_stages, -1),
        )
        if stage.tasks is not None:
            first_ms = max(stage.tasks.first_ms, stage.submitted_ms)
            last_ms = max(first_ms, min(stage.tasks.last_ms, stage.ended_ms))
            self._changes += ((first_ms, _State.run, stage), (last_ms, _State.rest, stage))

    def fold(self, begun_ms: int, until_ms: int) -> None:
        """Add up what happened until a moment; what is added later does not change the time before it."""
        changes = sorted(self._changes, key=_time_of)
        number = bisect_right(changes, until_ms, key=_time_of)
        self._changes = changes[number:]
        self._before_ms = _add_up(changes[:number], self._state, self._used, self._begin(begun_ms), until_ms)

    def parts(self, begun_ms: int, ended_ms: int) -> dict[str, int]:
        """Return how long each of the ``PARTS`` took, in ms; they add up to the time of the run.

        While tasks run, a moment is divided among the parts as all the time of those tasks is.

        Args:
            begun_ms, ended_ms: the run's first and last moment, in ms since the epoch.
        """
        used = dict(self._used)
        state = replace(self._state, running=dict(self._state.running))
        before_ms = self._begin(begun_ms)
        before_ms = _add_up(sorted(self._changes, key=_time_of), state, used, before_ms, ended_ms)
        _pass(state, used, ended_ms - before_ms)
        return _rounded(used, ended_ms - begun_ms)

    def _begin(self, begun_ms: int) -> int:
        return begun_ms if self._before_ms is None else self._before_ms


@dataclass(slots=True)
class _State:
    """What goes on at a moment."""

    known_executors: bool = False
    cores: int = 0
    stages: int = 0
    jobs: int = 0
    queries: int = 0
    batches: int = 0
    running: dict[int, StageRun] = field(default_factory=dict)

    def parts(self) -> dict[str, float]:
        """Return the share of each part in this moment."""
        if self.running:
            return _shares(self.running.values())
        if self.stages:
            return {WAITING if self.known_executors and not self.cores else SCHEDULING: 1.0}
        if self.jobs or not self.queries:
            return {DRIVER: 1.0}
        return {BATCH if self.batches > 0 else STREAM: 1.0}

    def add_stages(self, number: int) -> None:
        """Let stages begin, or end where the number is negative."""
        self.stages += number

    def add_jobs(self, number: int) -> None:
        """Let jobs begin or end."""
        self.jobs += number

    def add_queries(self, number: int) -> None:
        """Let streaming queries begin or end."""
        self.queries += number

    def add_batches(self, number: int) -> None:
        """Let micro-batches begin or end."""
        self.batches += number

    def set_cores(self, number: int) -> None:
        """Let there be so many cores."""
        self.cores = number

    def run(self, stage: StageRun) -> None:
        """Let the tasks of a stage begin."""
        self.running[id(stage)] = stage

    def rest(self, stage: StageRun) -> None:
        """Let them end."""
        self.running.pop(id(stage), None)


_Change = tuple[int, Callable[[_State, Any], None], Any]


def _time_of(change: _Change) -> int:
    return change[0]


def _add_up(
    changes: Iterable[_Change], state: _State, used: dict[str, float], before_ms: int, last_ms: int
) -> int:
    """Let changes happen one after the other, and return the moment of the last of them."""
    for time_ms, change, value in changes:
        at_ms = min(max(time_ms, before_ms), last_ms)
        _pass(state, used, at_ms - before_ms)
        before_ms = at_ms
        change(state, value)
    return before_ms


def _pass(state: _State, used: dict[str, float], time_ms: int) -> None:
    for part, share in state.parts().items():
        used[part] += share * time_ms


def _shares(stages: Iterable[StageRun]) -> dict[str, float]:
    """Return the parts of the time of some stages' tasks, which add up to 1."""
    total: dict[str, float] = {}
    for stage in stages:
        if stage.tasks is None:
            continue
        # A stage with many tasks at once counts more.
        lasted_ms = max(1, stage.tasks.last_ms - stage.tasks.first_ms)
        for part, time_ms in _parts_of(stage.tasks):
            total[part] = total.get(part, 0.0) + time_ms / lasted_ms
    whole = sum(total.values())
    return {part: time / whole for part, time in total.items()} if whole else {UNKNOWN: 1.0}


def _parts_of(tasks: TaskTimes) -> Iterator[tuple[str, int]]:
    yield SCHEDULING, tasks.scheduling_ms
    yield GC, tasks.gc_ms
    yield SHUFFLE, tasks.shuffle_ms
    yield PYTHON, tasks.python_ms
    yield COMPUTING, tasks.computing_ms


def _rounded(used: Mapping[str, float], whole_ms: int) -> dict[str, int]:
    """Return the times in whole ms; what rounding leaves over goes to the largest."""
    rounded = {part: int(time_ms) for part, time_ms in used.items()}
    largest = max(used, key=lambda part: used[part])
    rounded[largest] += max(0, whole_ms) - sum(rounded.values())
    return rounded
