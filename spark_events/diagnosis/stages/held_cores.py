"""The rule about tasks that are given several cores each, and use one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import IDLE_CORES

_CORES_OF_TASK = "spark.task.cpus"
_MORE = 1.1
"""Spark may report the start of a task before the end of the one that made room for it."""


class HeldCores:
    """Adds up what stages of SQL lose because each of their tasks holds several cores.

    Args:
        cores_of_task: how many; see ``cores_of_task``.
    """

    def __init__(self, cores_of_task: int = 1) -> None:
        self._cores_of_task = cores_of_task
        self._stages = self._lost_ms = 0

    def take(self, stage: EndedStage) -> Issue | None:
        """Called with a stage of SQL that has ended, and calls no Python, which may use several cores.

        Returns:
            What all such stages have lost so far; None if this one has lost nothing.
        """
        of_tasks = stage.measured.spreads["Duration"]
        at_once = stage.cores // self._cores_of_task
        if self._cores_of_task < 2 or not at_once or of_tasks.total > _MORE * at_once * stage.wall_ms:
            return None
        with_all_ms = max(of_tasks.total // (at_once * self._cores_of_task), of_tasks.highest)
        lost_ms = min(of_tasks.total // at_once, stage.wall_ms) - with_all_ms
        if lost_ms <= 0:
            return None
        self._stages += 1
        self._lost_ms += lost_ms
        stages = "a stage" if self._stages == 1 else f"{self._stages:,} stages"
        return Issue(
            IDLE_CORES,
            f"{IDLE_CORES} held",
            self._lost_ms,
            None,
            f"each task holds {self._cores_of_task} cores ({_CORES_OF_TASK}={self._cores_of_task}) and "
            f"computes with one, in {stages} of SQL",
            f"Remove {_CORES_OF_TASK}. If other stages have tasks that use several cores, give these to them "
            "alone: RDD.withResources(), and mapInPandas(…, profile=…).",
            evidence={"cores": stage.cores, "task.cpus": self._cores_of_task, "stages": self._stages},
        )


def cores_of_task(conf: Mapping[str, object]) -> int:
    """Return how many cores Spark gives each task, by its properties; 1 unless they say otherwise."""
    value = str(conf.get(_CORES_OF_TASK) or "1").strip()
    return int(value) if re.fullmatch("[0-9]{1,6}", value) else 1
