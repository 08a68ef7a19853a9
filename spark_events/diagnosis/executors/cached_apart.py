"""The rule about cached partitions that are on few executors: all tasks that read them wait for these."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import HostWork
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import IDLE_CORES

_WAIT, _USUAL_WAIT, _LEVELS = "spark.locality.wait", "3s", ("process", "node")
_ZERO = re.compile(r"0+[a-z]*", re.IGNORECASE)
_MOST_RDDS = 10_000
_NONE = HostWork(0, 0, 0)
_LEAST_TASKS, _LEAST_SHARE = 2, 0.25
"""How many tasks there are for each core, and which share of a stage is lost, at least."""


class LivingExecutor(NamedTuple):
    """An executor that lives: where, with how many cores, and since when, in ms since the epoch."""

    host: str
    cores: int
    added_ms: int


class CachedApart:
    """Adds up what stages lose that read a cache, because one executor has more of it than its share."""

    def __init__(self) -> None:
        self._cached: set[int] = set()
        self._stages = self._lost_ms = 0
        self._most = (0, "", 0, 0)

    def stage_succeeded(self, kept: Collection[int]) -> None:
        """Called at the end of a stage with the RDDs in it that are kept, by their ids."""
        self._cached.update(number for number in kept if len(self._cached) < _MOST_RDDS)

    def unpersisted(self, number: int) -> None:
        """Called with an RDD that the program no longer keeps."""
        self._cached.discard(number)

    def take(
        self,
        stage: EndedStage,
        kept: Collection[int],
        executors: Mapping[str, LivingExecutor],
        wait: str,
        beside: Callable[[], int],
    ) -> Issue | None:
        """Called with each stage that has ended and has RDDs that are kept, before ``stage_succeeded``.

        Args:
            stage: it.
            kept: these RDDs, by their ids; only of those that an earlier stage had, partitions are cached.
            executors: those that live, by their ids.
            wait: see ``locality_wait``.
            beside: returns for how long other stages ran at the same time: their tasks may be on the others.

        Returns:
            What all of them have lost so far; None if this one has lost nothing.
        """
        measured = stage.measured
        if not wait or not self._cached.issuperset(kept) or measured.without_input.tasks:
            return None
        work = {name: _work_of(name, stage, executors) for name in executors}
        late = any(executor.added_ms > measured.first_ms for executor in executors.values())
        cores = sum(executor.cores for executor in executors.values())
        if late or sum(each.tasks for each in work.values()) != measured.tasks or len(work) < 2:
            return None  # some ran on others, or these came later
        if measured.tasks < _LEAST_TASKS * cores or not all(each.cores for each in executors.values()):
            return None
        busiest = max(work, key=lambda name: work[name].run_ms / executors[name].cores)
        if work[busiest].tasks * cores <= measured.tasks * executors[busiest].cores:
            return None  # its tasks are longer, and not more
        busy_ms = work[busiest].run_ms // executors[busiest].cores
        even_ms = max(measured.run.total // cores, measured.run.highest)
        lost_ms = min(busy_ms, stage.wall_ms) - even_ms
        if lost_ms < _LEAST_SHARE * stage.wall_ms or beside():
            return None
        self._stages += 1
        self._lost_ms += lost_ms
        self._most = max(self._most, (lost_ms, busiest, work[busiest].tasks, measured.tasks))
        return self._issue(wait)

    def _issue(self, wait: str) -> Issue:
        _, executor, tasks, of = self._most
        stages = f" in the most uneven of {self._stages} stages" if self._stages > 1 else ""
        return Issue(
            IDLE_CORES,
            f"{IDLE_CORES} cached",
            self._lost_ms,
            None,
            f"executor {executor} runs {tasks} of {of} tasks{stages}, because it has their cached "
            f"partitions, while others wait: {duration(self._lost_ms)} in all",
            "Tasks wait for the executor that has their partitions, each time one begins there, up to "
            f"{wait}: lower that, so that any executor takes them, or spread the "
            "partitions (repartition() before cache(), once all executors are there).",
            evidence={"cached.executorId": executor, "cached.tasks": tasks, "stages": self._stages},
        )


def _work_of(name: str, stage: EndedStage, executors: Mapping[str, LivingExecutor]) -> HostWork:
    """Return what an executor did: of one that has its host for itself, what was done there."""
    if name in stage.measured.executors:
        return stage.measured.executors[name].work
    host = executors[name].host
    alone = sum(each.host == host for each in executors.values()) == 1
    return stage.measured.hosts.get(host, _NONE) if alone else _NONE


def locality_wait(conf: Mapping[str, object]) -> str:
    """Return the setting, with its value, by which tasks wait for the executor that has their partitions.

    Args:
        conf: Spark's properties.

    Returns:
        Such as ``spark.locality.wait=3s``; an empty text if they wait for none.
    """
    usual = str(conf.get(_WAIT) or _USUAL_WAIT)
    for level in _LEVELS:
        of_level = conf.get(f"{_WAIT}.{level}")
        if not _ZERO.fullmatch(str(of_level or usual).strip()):
            return f"{_WAIT}.{level}={of_level}" if of_level else f"{_WAIT}={usual}"
    return ""
