"""What more or fewer cores would have made of a run: a model, which knows nothing of what cores share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from spark_events.diagnosis.times.covered import covered_ms
from spark_events.diagnosis.times.run_timeline import JobRun, RunStages, StageRun

_FACTORS = (0.5, 1, 2, 4)
CRITICAL_PATH, CORES, ESTIMATES = "criticalPathMs", "estimatedCores", "estimatedMs"
"""The attributes of the application's span: the critical path, numbers of cores, and the time with each."""


class Estimate(NamedTuple):
    """How long the run would have taken.

    Attributes:
        cores: with so many; None for as many as there are tasks.
        time_ms: in ms.
    """

    cores: int | None
    time_ms: int


def critical_path_ms(run: RunStages) -> int | None:
    """Return the least time that the run could take with endless cores, in ms; None as of ``estimates``.

    It is the time in which no stage ran, and for each job the longest of its chains of stages, each as long
    as its longest task. Jobs that ran at the same time count once, by the longest of them.
    """
    return _time_with(run, None) if run.is_in_order else None


def estimates(run: RunStages) -> list[Estimate]:
    """Return how long the run would have taken with other numbers of cores, endless ones last.

    A stage takes at least as long as its longest task, and as all of its tasks divided by the cores; the time
    in which no stage ran stays. It is empty where nobody knows how many cores there were, or the clock of the
    driver went back.
    """
    if not run.cores or not run.jobs or not run.is_in_order:
        return []
    counts = sorted({max(1, int(run.cores * factor)) for factor in _FACTORS})
    return [Estimate(count, _time_with(run, count)) for count in (*counts, None)]


def _time_with(run: RunStages, cores: int | None) -> int:
    stages_of: dict[int | None, list[StageRun]] = {}
    for stage in run.stages:
        stages_of.setdefault(stage.job, []).append(stage)
    whole_ms = run.ended_ms - run.begun_ms
    for jobs in _at_the_same_time(run.jobs.values()):
        stages = [stage for job in jobs for stage in stages_of.get(job.id, ())]
        longest_ms = max(_longest_chain_ms(stages_of.get(job.id, ()), cores) for job in jobs)
        shared_ms = sum(_run_ms(stage) for stage in stages) // cores if cores else 0
        whole_ms += max(longest_ms, shared_ms) - covered_ms(
            (stage.submitted_ms, stage.ended_ms) for stage in stages
        )
    return max(0, whole_ms)


def _at_the_same_time(jobs: Iterable[JobRun]) -> Iterator[list[JobRun]]:
    """Yield jobs that ran at the same time together."""
    until_ms, number = 0, 0
    numbered = []
    for job in sorted(jobs, key=lambda job: job.begun_ms):
        if job.begun_ms >= until_ms:
            number += 1
        until_ms = max(until_ms, job.ended_ms)
        numbered.append((number, job))
    for _, together in groupby(numbered, key=lambda pair: pair[0]):
        yield [job for _, job in together]


def _longest_chain_ms(stages: Sequence[StageRun], cores: int | None) -> int:
    """Return how long the longest chain of stages takes, each of which waits for its parents."""
    took_ms: dict[int, int] = {}
    for stage in stages:  # one that is retried takes its time again
        took_ms[stage.id] = took_ms.get(stage.id, 0) + _stage_ms(stage, cores)
    parents = {stage.id: stage.parents for stage in stages}
    until_ms: dict[int, int] = {}
    for number in sorted(took_ms):  # Spark numbers parents before their children
        before_ms = max((until_ms.get(parent, 0) for parent in parents[number]), default=0)
        until_ms[number] = before_ms + took_ms[number]
    return max(until_ms.values(), default=0)


def _stage_ms(stage: StageRun, cores: int | None) -> int:
    longest_ms = stage.tasks.longest_ms if stage.tasks else 0
    return max(longest_ms, _run_ms(stage) // cores) if cores else longest_ms


def _run_ms(stage: StageRun) -> int:
    return stage.tasks.total_ms if stage.tasks else 0
