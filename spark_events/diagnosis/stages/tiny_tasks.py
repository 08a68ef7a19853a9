"""The rule about stages that have far more tasks than cores, each of which has next to nothing to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.costs_of_places import CostsOfPlaces
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.stage_rules import FEWER_OF_SOURCE, fewer_tasks, for_tasks_ms
from spark_events.diagnosis.thresholds import TASK_COUNT, Thresholds

_LEAST_SHARE = 1 / 3
"""So much of the time of its tasks goes into scheduling and starting them, at least."""
_MOST_RUN_MS, _MOST_CPU_MS = 200, 50
"""So long a task runs, and has a CPU, at most, that has next to nothing to do: more is work of its own."""


class TinyTasks(NamedTuple):
    """Tasks of stages that have far too many.

    Attributes:
        stages: how many such stages there are.
        tasks, most_tasks: how many tasks those have in all, and how many one of them has.
        around_ms, run_ms: for how long their tasks were scheduled and started, and ran.
        lost_ms: how much shorter they would be with a task for each core.
        lost_by: how much of that is of stages with each advice.
    """

    stages: int = 0
    tasks: int = 0
    most_tasks: int = 0
    around_ms: int = 0
    run_ms: int = 0
    lost_ms: int = 0
    lost_by: Mapping[str, int] = MappingProxyType({})

    def plus(self, other: TinyTasks) -> TinyTasks:
        """Return both."""
        return TinyTasks(
            self.stages + other.stages,
            self.tasks + other.tasks,
            max(self.most_tasks, other.most_tasks),
            self.around_ms + other.around_ms,
            self.run_ms + other.run_ms,
            self.lost_ms + other.lost_ms,
            Counter(self.lost_by) + Counter(other.lost_by),
        )


def tiny_tasks(stage: EndedStage, thresholds: Thresholds) -> TinyTasks | None:
    """Return the tasks of a stage that has far too many; None if it has not.

    Args:
        stage: one that has ended.
        thresholds: what short tasks are. A stage that has so many that it is told for itself does not count.
    """
    measured, run = stage.measured, stage.measured.run
    computes = measured.cpu_ms > _MOST_CPU_MS * measured.tasks
    if not stage.has_far_more_tasks or not stage.slots or computes:
        return None
    if run.median >= min(thresholds.short_task_ms, _MOST_RUN_MS):
        return None
    around_ms, overhead_ms = for_tasks_ms(measured)
    if overhead_ms < _LEAST_SHARE * (around_ms + run.total):
        return None
    needless_ms = overhead_ms * (measured.tasks - stage.slots) // measured.tasks
    lost_ms = min(stage.as_wall_ms(needless_ms), stage.wall_ms)
    if measured.tasks > thresholds.least_many_tasks and lost_ms >= thresholds.min_time_ms:
        return None
    tasks = measured.tasks
    return TinyTasks(1, tasks, tasks, around_ms, run.total, lost_ms, {fewer_tasks(stage): lost_ms})


def tiny_tasks_issue(tiny: TinyTasks, cores: int, place: str = "") -> Issue:
    """Return that stages have far too many tasks.

    Args:
        tiny: those tasks.
        cores: of all executors.
        place: in the user's code, of the stages that lose most; empty if all are of one.
    """
    is_single, each_ms = tiny.stages == 1, tiny.run_ms // tiny.tasks
    has = (
        f"a stage has {tiny.tasks:,} tasks"
        if is_single
        else f"{tiny.stages:,} stages have {tiny.tasks:,} tasks"
    )
    most = "" if is_single else f", up to {tiny.most_tasks:,} each"
    return Issue(
        TASK_COUNT,
        f"{TASK_COUNT} tiny",
        tiny.lost_ms,
        None,
        f"{has}{most}, for {cores} cores, which run for {duration(each_ms)} each on average: scheduling and "
        f"starting them takes {duration(tiny.around_ms)}, running them {duration(tiny.run_ms)}"
        f"{f'; most of that is for {place}' if place else ''}",
        next((advice for advice, ms in tiny.lost_by.items() if 2 * ms >= tiny.lost_ms), FEWER_OF_SOURCE),
        evidence={
            "numTasks": tiny.tasks,
            "stages": tiny.stages,
            "cores": cores,
            "overheadMs": tiny.around_ms,
            "runTimeMs": tiny.run_ms,
        },
    )


class TinyTasksOfRun:
    """Adds up the stages of an application that have far too many tasks, of which each may lose little."""

    def __init__(self) -> None:
        self._all = TinyTasks()
        self._costs = CostsOfPlaces()

    def take(self, place: str, tiny: TinyTasks, cores: int) -> Issue:
        """Return what such stages have cost so far.

        Args:
            place: in the user's code, or the name of the stage.
            tiny: the tasks of one more stage.
            cores: of all executors.
        """
        self._all = self._all.plus(tiny)
        self._costs.add(place, tiny.lost_ms)
        return tiny_tasks_issue(self._all, cores, self._costs.most[0])
