"""Where the time of an application went: each moment belongs to one part, so they add up to all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.why.application_timeline import Stage, TaskTimes, Timeline

WAITING = "waiting for executors"
DRIVER = "driver alone"
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
    STREAM: "no stage runs while a streaming query does",
    SCHEDULING: "tasks wait for a core, or are sent, unpacked and sent back",
    SHUFFLE: "tasks wait for what other tasks wrote",
    GC: "the JVMs of tasks collect garbage",
    PYTHON: "tasks wait for functions in Python (since Spark 4)",
    COMPUTING: "all else that tasks do; Spark does not measure it apart",
    UNKNOWN: "tasks run, and their metrics are zero",
}
"""The parts, with what each means."""


def time_use(timeline: Timeline) -> dict[str, int]:
    """Return how long each of the ``PARTS`` took, in ms; they add up to the time of the application.

    While tasks run, a moment is divided among the parts as all the time of those tasks is.
    """
    used, state = dict.fromkeys(PARTS, 0.0), _State(known_executors=bool(timeline.cores))
    before_ms = timeline.begun_ms
    for time_ms, change, value in sorted(_changes(timeline), key=lambda change: change[0]):
        at_ms = min(max(time_ms, before_ms), timeline.ended_ms)
        for part, share in state.parts().items():
            used[part] += share * (at_ms - before_ms)
        before_ms = at_ms
        change(state, value)
    for part, share in state.parts().items():
        used[part] += share * (timeline.ended_ms - before_ms)
    return _rounded(used, timeline.ended_ms - timeline.begun_ms)


@dataclass(slots=True)
class _State:
    """What goes on at a moment."""

    known_executors: bool
    cores: int = 0
    stages: int = 0
    jobs: int = 0
    queries: int = 0
    running: dict[int, Stage] = field(default_factory=dict)

    def parts(self) -> dict[str, float]:
        """Return the share of each part in this moment."""
        if self.running:
            return _shares(self.running.values())
        if self.stages:
            return {WAITING if self.known_executors and not self.cores else SCHEDULING: 1.0}
        return {STREAM if self.queries and not self.jobs else DRIVER: 1.0}

    def add_stages(self, number: int) -> None:
        """Let stages begin, or end where the number is negative."""
        self.stages += number

    def add_jobs(self, number: int) -> None:
        """Let jobs begin or end."""
        self.jobs += number

    def add_queries(self, number: int) -> None:
        """Let streaming queries begin or end."""
        self.queries += number

    def set_cores(self, number: int) -> None:
        """Let there be so many cores."""
        self.cores = number

    def run(self, stage: Stage) -> None:
        """Let the tasks of a stage begin."""
        self.running[id(stage)] = stage

    def rest(self, stage: Stage) -> None:
        """Let them end."""
        self.running.pop(id(stage), None)


_Change = tuple[int, Callable[[_State, Any], None], Any]


def _changes(timeline: Timeline) -> Iterator[_Change]:
    """Yield when something changes, and what."""
    for time_ms, cores in timeline.cores:
        yield time_ms, _State.set_cores, cores
    for job in timeline.jobs.values():
        yield job.begun_ms, _State.add_jobs, 1
        yield job.ended_ms, _State.add_jobs, -1
    for begun_ms, ended_ms in timeline.queries:
        yield begun_ms, _State.add_queries, 1
        yield ended_ms, _State.add_queries, -1
    for stage in timeline.stages:
        yield stage.submitted_ms, _State.add_stages, 1
        yield stage.ended_ms, _State.add_stages, -1
        if stage.tasks is not None:
            yield max(stage.tasks.first_ms, stage.submitted_ms), _State.run, stage
            yield min(stage.tasks.last_ms, stage.ended_ms), _State.rest, stage


def _shares(stages: Iterable[Stage]) -> dict[str, float]:
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
