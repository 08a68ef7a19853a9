"""What makes SQL executions slow: their plans, and the stages that ran for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage, add_measured, read_stage
from spark_events.diagnosis.plans.joins import joins
from spark_events.diagnosis.plans.node import Measured, read_plans
from spark_events.diagnosis.plans.one_task import why_few_tasks, windows_over_all
from spark_events.diagnosis.plans.scans import full_scans
from spark_events.diagnosis.thresholds import TASK_COUNT, Thresholds
from spark_events.listeners.run import Job

_MOST_STAGES = 2_000
_MOST_METRICS = 100_000
_RULES = (joins, full_scans, windows_over_all)


@dataclass(slots=True)
class _Running:
    """What is known of an execution that runs."""

    job: Job
    stages: dict[int, ExecutedStage] = field(default_factory=dict)
    measured: dict[int, Measured] = field(default_factory=dict)


class Executions:
    """The SQL executions of one application that run, until each has ended.

    Args:
        thresholds: from when on something is an issue.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._running: dict[int, _Running] = {}

    def stage_completed(self, execution: int, job: Job, info: Mapping[str, Any], time_ms: int) -> None:
        """Called when a stage of an execution has ended, with its ``Stage Info``."""
        running = self._running.setdefault(execution, _Running(job))
        stage = read_stage(info, time_ms)
        if len(running.stages) < _MOST_STAGES:
            running.stages[stage.id] = stage
        if len(running.measured) < _MOST_METRICS:
            add_measured(running.measured, info)

    def ended(
        self, record: Mapping[str, Any], begun_ms: int, time_ms: int, cores: int
    ) -> tuple[EndedExecution, Job | None]:
        """Called with an SQLExecutionEnd; returns all that is known of the execution, and its first job."""
        running = self._running.pop(int(record["executionId"]), None)
        plans = tuple(read_plans(record, running.measured if running else {}))
        stages = running.stages if running else {}
        return EndedExecution(begun_ms, time_ms, cores, plans, stages), running.job if running else None

    def issues(self, execution: EndedExecution) -> list[Issue]:
        """Return what the plans of an execution say, however little it cost."""
        return [issue for rule in _RULES for issue in rule(execution, self._thresholds)]

    def forget(self) -> None:
        """Called at the end of the application."""
        self._running.clear()


def explained(issue: Issue, execution: EndedExecution, stage: int) -> Issue:
    """Return an issue of a stage with what the plan says about its cause."""
    if issue.kind != TASK_COUNT or "fewTasks" not in issue.evidence:
        return issue
    reason = why_few_tasks(execution, stage)
    if reason is None:
        return issue
    return replace(issue, sentence=f"{issue.sentence}: {reason.because}", advice=reason.advice)
