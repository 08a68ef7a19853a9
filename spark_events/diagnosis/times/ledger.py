"""Where the time of a run went: each moment of each core belongs to one account, so they add up."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from spark_events.diagnosis.times.run_timeline import StageRun, TaskTimes


class Account(NamedTuple):
    """What time is booked to.

    Attributes:
        attribute: of the application's span that has it, in ms.
        meaning: when time belongs to it.
    """

    attribute: str
    meaning: str


WAITING = "waiting for executors"
DRIVER = "driver alone"
QUERY = "driver within a query"
BATCH = "driver in a micro-batch"
STREAM = "waiting for data or a trigger"
IDLE = "idle cores"
SCHEDULING = "scheduling and starting tasks"
PYTHON_START = "starting Python workers"
REPEATED = "wasted attempts"
SHUFFLE = "waiting for shuffle data"
SHUFFLE_WRITE = "writing shuffle data"
GC = "garbage collection"
PYTHON = "Python functions"
COMPUTING = "reading, computing and writing"
UNKNOWN = "tasks that measured nothing"
ACCOUNTS = {
    WAITING: Account("timeUseMs.waitingForExecutors", "stages have no executors to run on"),
    DRIVER: Account(
        "timeUseMs.driver", "no job nor query runs: the program computes, waits, or calls something else"
    ),
    QUERY: Account(
        "timeUseMs.driverInQueries", "no stage runs: Spark's driver plans, lists files, collects or commits"
    ),
    BATCH: Account(
        "timeUseMs.microBatch", "no job runs within a micro-batch: foreachBatch code, planning, commits"
    ),
    STREAM: Account("timeUseMs.queryIdle", "a streaming query runs, and no job nor micro-batch"),
    IDLE: Account("timeUseMs.idleCores", "stages run, with fewer tasks than there are cores, or uneven ones"),
    SCHEDULING: Account("timeUseMs.scheduling", "tasks wait for a core, or are sent, unpacked and sent back"),
    PYTHON_START: Account(
        "timeUseMs.pythonStart", "tasks wait for Python workers that start, or load functions (since Spark 4)"
    ),
    REPEATED: Account(
        "timeUseMs.repeated",
        "attempts of tasks that failed or were killed, and stages that run again after they had succeeded",
    ),
    SHUFFLE: Account("timeUseMs.shuffleWait", "tasks wait for what other tasks wrote"),
    SHUFFLE_WRITE: Account("timeUseMs.shuffleWrite", "tasks write what other tasks read"),
    GC: Account("timeUseMs.gc", "the JVMs of tasks collect garbage"),
    PYTHON: Account(
        "timeUseMs.python",
        "tasks wait for Python: all that those of RDDs do there; of DataFrames, since Spark 4, its functions",
    ),
    COMPUTING: Account(
        "timeUseMs.computing", "everything else tasks do; Spark does not break it down further"
    ),
    UNKNOWN: Account("timeUseMs.unmeasured", "tasks run that never end, or whose metrics are zero"),
}
"""The accounts, in the order in which they are shown."""


class Booked(NamedTuple):
    """What is booked to each account, in ms.

    Attributes:
        time_ms: of the run: they add up to its time.
        core_ms: of cores: they add up to the time for which each core was there.
    """

    time_ms: dict[str, int]
    core_ms: dict[str, int]


class Ledger:
    """Books the time of a run, and of its cores, to ``ACCOUNTS``, by what begins and ends in it.

    What happened may be told in any order; what is folded is final, and takes no memory any more.
    """

    def __init__(self) -> None:
        self._changes: list[_Change] = []
        self._state = _State()
        self._sums = _Sums()
        self._before_ms: int | None = None

    @property
    def pending(self) -> int:
        """How many beginnings and ends are not folded yet."""
        return len(self._changes)

    def jobs(self, time_ms: int, number: int) -> None:
        """Let jobs begin, or end where the number is negative."""
        self._changes.append((time_ms, _State.add_jobs, number))

    def executions(self, time_ms: int, number: int) -> None:
        """Let SQL executions begin, or end where the number is negative."""
        self._changes.append((time_ms, _State.add_executions, number))

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
        self._state.without_cores = _times_without_cores(changes)
        self._before_ms = _add_up(changes[:number], self._state, self._sums, self._begin(begun_ms), until_ms)

    def booked(self, begun_ms: int, ended_ms: int) -> Booked:
        """Return what is booked to each account.

        While tasks run, the cores that have one are divided among the accounts as all the time of those tasks
        is; the others are without a task.

        Args:
            begun_ms, ended_ms: the run's first and last moment, in ms since the epoch.
        """
        sums = _Sums(dict(self._sums.time_ms), dict(self._sums.core_ms))
        state = replace(self._state, running=dict(self._state.running))
        changes = sorted(self._changes, key=_time_of)
        state.without_cores = _times_without_cores(changes)
        before_ms = _add_up(changes, state, sums, self._begin(begun_ms), ended_ms)
        sums.add(state, ended_ms - before_ms)
        whole_core_ms = round(math.fsum(sums.core_ms.values()))
        return Booked(_rounded(sums.time_ms, ended_ms - begun_ms), _rounded(sums.core_ms, whole_core_ms))

    def _begin(self, begun_ms: int) -> int:
        return begun_ms if self._before_ms is None else self._before_ms


class _Running(NamedTuple):
    """A stage whose tasks run, and for how long it has cores meanwhile, in ms."""

    stage: StageRun
    lasts_ms: int


@dataclass(slots=True)
class _State:
    """What goes on at a moment."""

    known_executors: bool = False
    cores: int = 0
    stages: int = 0
    jobs: int = 0
    executions: int = 0
    queries: int = 0
    batches: int = 0
    running: dict[int, _Running] = field(default_factory=dict)
    without_cores: list[tuple[int, int]] = field(default_factory=list)

    def shares(self) -> dict[str, float]:
        """Return the share of each account in this moment; they add up to 1."""
        if self.stages and self.known_executors and not self.cores:  # their tasks have gone with them
            return {WAITING: 1.0}
        if self.running:
            return _shares(self.running.values(), self.cores)
        if self.stages:
            return {SCHEDULING: 1.0}
        if self.jobs:
            return {QUERY: 1.0}
        if self.queries:
            return {BATCH if self.batches > 0 else STREAM: 1.0}
        return {QUERY if self.executions > 0 else DRIVER: 1.0}

    def add_stages(self, number: int) -> None:
        """Let stages begin, or end where the number is negative."""
        self.stages += number

    def add_jobs(self, number: int) -> None:
        """Let jobs begin or end."""
        self.jobs += number

    def add_executions(self, number: int) -> None:
        """Let SQL executions begin or end."""
        self.executions += number

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
        """Let the tasks of a stage begin, which are spread over the time in which it has cores."""
        self.running[id(stage)] = _Running(stage, self._with_cores_ms(stage.tasks))

    def rest(self, stage: StageRun) -> None:
        """Let them end."""
        self.running.pop(id(stage), None)

    def _with_cores_ms(self, tasks: TaskTimes | None) -> int:
        if tasks is None:
            return 1
        first_ms, last_ms = tasks.first_ms, tasks.last_ms
        without = (min(end_ms, last_ms) - max(begin_ms, first_ms) for begin_ms, end_ms in self.without_cores)
        return max(1, last_ms - first_ms - sum(ms for ms in without if ms > 0))


@dataclass(slots=True)
class _Sums:
    """What was booked so far, by account, in ms of the run and in ms of cores."""

    time_ms: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ACCOUNTS, 0.0))
    core_ms: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ACCOUNTS, 0.0))

    def add(self, state: _State, passed_ms: int) -> None:
        """Book a time in which nothing changes."""
        if passed_ms <= 0:
            return
        for account, share in state.shares().items():
            self.time_ms[account] += share * passed_ms
            self.core_ms[account] += share * passed_ms * state.cores


_Change = tuple[int, Callable[[_State, Any], None], Any]


def _times_without_cores(changes: Iterable[_Change]) -> list[tuple[int, int]]:
    """Return from when there are no cores, until there are some again, in ms since the epoch."""
    times: list[tuple[int, int]] = []
    since_ms = None
    for time_ms, change, value in changes:
        if change is _State.set_cores:
            if since_ms is not None:
                times.append((since_ms, time_ms))
            since_ms = None if value else time_ms
    return times


def _time_of(change: _Change) -> int:
    return change[0]


def _add_up(changes: Iterable[_Change], state: _State, sums: _Sums, before_ms: int, last_ms: int) -> int:
    """Let changes happen one after the other, and return the moment of the last of them."""
    for time_ms, change, value in changes:
        at_ms = min(max(time_ms, before_ms), last_ms)
        sums.add(state, at_ms - before_ms)
        before_ms = at_ms
        change(state, value)
    return before_ms


def _shares(stages: Iterable[_Running], cores: int) -> dict[str, float]:
    """Return how the cores are divided while the tasks of some stages run."""
    busy: dict[str, float] = {}
    for stage, lasts_ms in stages:
        if stage.tasks is None:
            continue
        for account, time_ms in _accounts_of(stage, stage.tasks):
            busy[account] = busy.get(account, 0.0) + time_ms / lasts_ms
    whole = math.fsum(busy.values())  # ``sum`` of floats differs between versions of Python
    if not whole:
        return {UNKNOWN: 1.0}
    # As many cores as that have a task, on average; nobody may know how many there are.
    with_task = min(1.0, whole / cores) if cores > 0 else 1.0
    shares = {account: with_task * time / whole for account, time in busy.items()}
    return shares if with_task == 1.0 else {**shares, IDLE: 1.0 - with_task}


def _accounts_of(stage: StageRun, tasks: TaskTimes) -> Iterator[tuple[str, int]]:
    spent = (
        (SCHEDULING, tasks.scheduling_ms),
        (GC, tasks.gc_ms),
        (SHUFFLE, tasks.shuffle_ms),
        (SHUFFLE_WRITE, tasks.shuffle_write_ms),
        (PYTHON_START, tasks.python_start_ms),
        (PYTHON, tasks.python_ms),
        (COMPUTING, tasks.computing_ms),
    )
    yield REPEATED, tasks.repeated_ms
    yield UNKNOWN, tasks.unfinished_ms
    if not any(time_ms for _, time_ms in spent):
        yield UNKNOWN, tasks.total_ms - tasks.unfinished_ms
    for account, time_ms in spent:
        yield REPEATED if stage.repeats else account, time_ms


def _rounded(sums: Mapping[str, float], whole_ms: int) -> dict[str, int]:
    """Return the times in whole ms; what rounding leaves over goes to the largest."""
    rounded = {account: int(time_ms) for account, time_ms in sums.items()}
    largest = max(sums, key=lambda account: sums[account])
    rounded[largest] += max(0, whole_ms) - sum(rounded.values())
    return rounded
