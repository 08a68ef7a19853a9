"""What happened in a run and when: its jobs, stages, cores and streaming queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class TaskTimes(NamedTuple):
    """What the tasks of a stage spent their time on; all of it in ms.

    Attributes:
        first_ms, last_ms: when the first of them began, and the last ended, since the epoch.
        longest_ms, total_ms: the duration of the longest, and of all that succeeded at their first attempt or
            have not ended.
        repeated_ms: of all attempts that failed or were killed.
        unfinished_ms: of those that have not ended when the stage does, as far as that is known.
    """

    first_ms: int
    last_ms: int
    longest_ms: int
    total_ms: int
    repeated_ms: int = 0
    scheduling_ms: int = 0
    gc_ms: int = 0
    shuffle_ms: int = 0
    shuffle_write_ms: int = 0
    python_start_ms: int = 0
    python_ms: int = 0
    computing_ms: int = 0
    unfinished_ms: int = 0


class StageRun(NamedTuple):
    """A stage attempt that has ended: when, and its tasks' times; None if no task is known.

    Attributes:
        repeats: whether the stage had succeeded before, and what it made was lost since.
    """

    id: int
    repeats: bool
    job: int | None
    parents: tuple[int, ...]
    submitted_ms: int
    ended_ms: int
    tasks: TaskTimes | None


@dataclass(slots=True)
class JobRun:
    """A job: when it began and ended, in ms since the epoch; the end is 0 while it runs."""

    id: int
    begun_ms: int
    ended_ms: int = 0


@dataclass(slots=True)
class RunStages:
    """The jobs and stages of a run, by which a model estimates what other numbers of cores would change.

    Attributes:
        begun_ms, ended_ms: the run's first and last moment, in ms since the epoch.
        cores: the most that there were at once; 0 if nobody knows.
        jobs: by id.
        stages: the attempts that have ended.
    """

    begun_ms: int = 0
    ended_ms: int = 0
    cores: int = 0
    jobs: dict[int, JobRun] = field(default_factory=dict)
    stages: list[StageRun] = field(default_factory=list)

    @property
    def is_in_order(self) -> bool:
        """Whether all stages ran within the run, each until after its beginning; else the clock went back."""
        return all(
            self.begun_ms <= stage.submitted_ms <= stage.ended_ms <= self.ended_ms for stage in self.stages
        )
