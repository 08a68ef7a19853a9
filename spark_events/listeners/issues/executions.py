"""What makes SQL executions slow: their plans, and the stages that ran for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_events.diagnosis.costly_nodes.aligned_frames import aligned_frames
from spark_events.diagnosis.costly_nodes.cast_filters import cast_filters
from spark_events.diagnosis.costly_nodes.expanded import expanded
from spark_events.diagnosis.costly_nodes.joins import joins
from spark_events.diagnosis.costly_nodes.late_filters import late_filters
from spark_events.diagnosis.costly_nodes.long_case import long_case
from spark_events.diagnosis.costly_nodes.needless_shuffles import needless_shuffles
from spark_events.diagnosis.costly_nodes.no_duplicates import no_duplicates
from spark_events.diagnosis.costly_nodes.one_task import why_few_tasks, windows_over_all
from spark_events.diagnosis.costly_nodes.paired_elements import paired_elements
from spark_events.diagnosis.costly_nodes.scans import full_scans
from spark_events.diagnosis.costly_nodes.sliding_frames import grows_with_its_key, sliding_frames
from spark_events.diagnosis.costly_nodes.slow_patterns import slow_patterns
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage, add_measured
from spark_events.diagnosis.plans.node import EXCHANGE, MetricValue, Node, columns
from spark_events.diagnosis.plans.recorded_plans import read_plans
from spark_events.diagnosis.queries.foreach_writers import foreach_writers
from spark_events.diagnosis.repeated_work.called_twice import called_twice
from spark_events.diagnosis.repeated_work.parsed_again import parsed_again
from spark_events.diagnosis.repeated_work.projections import projections
from spark_events.diagnosis.repeated_work.self_joins import self_joins
from spark_events.diagnosis.thresholds import PYTHON, SKEW, SPILL, STRAGGLER, TASK_COUNT, Thresholds
from spark_events.diagnosis.writes.rewrites import rewrites
from spark_events.diagnosis.writes.upserts import upserts
from spark_events.listeners.issues.python_calls import WHOLE_GROUPS, of_functions
from spark_events.listeners.record_types import SQLExecutionEndRecord
from spark_events.listeners.run import Job

_HASHED = re.compile(r"(?:hash|range)partitioning\((.*), \d+\)", re.ASCII)
_EXPLODED = re.compile(r"((?:pos)?explode)(?:_outer)?\(")
_LONG_ARRAYS = (
    "See whether a few rows have far longer arrays than the others: explode them, then repartition() by a "
    "column of the elements, so that all tasks get some."
)
_OF_DATABASE = "Scan JDBCRelation("
_BOUNDS = (
    "lowerBound and upperBound say how the values of partitionColumn are divided, and what is beyond them "
    "goes to the first or the last task: give the smallest and the largest value that there are. If these "
    "values are uneven in between, divide by another column, or by predicates."
)
_OF_WINDOW = (
    "All rows of a window's partition are one task's, and Spark cannot split them: treat apart, or leave "
    "out, the few values of {keys} that hold most of the rows (a default, null), or divide them by one more "
    "column of PARTITION BY."
)
_OF_FRAMES = (
    "See whether a few values of {keys} have far more rows than others: a placeholder, a default, null. For "
    "each of their rows, the window goes through a frame of many rows, so that they take long, few bytes as "
    "they are. Leave them out, or treat them apart."
)
_OF_GROUP = (
    "All rows of a group are one call of the function, in one task. If the function needs only a part of "
    "them at once, group by one more column besides {keys}, or by pmod(hash(…), 64) of it. If it needs the "
    "whole group, let Spark aggregate or filter before it, so that it gets fewer rows."
)
_SPILLED = "spill size"
_MOST_STAGES = 2_000
_MOST_METRICS = 100_000
_RULES = (
    joins,
    aligned_frames,
    expanded,
    no_duplicates,
    late_filters,
    needless_shuffles,
    slow_patterns,
    long_case,
    full_scans,
    cast_filters,
    windows_over_all,
    sliding_frames,
    paired_elements,
    self_joins,
    rewrites,
    upserts,
    parsed_again,
    called_twice,
    projections,
    foreach_writers,
)


@dataclass(slots=True)
class _Running:
    """What is known of an execution that runs."""

    job: Job
    stages: dict[int, ExecutedStage] = field(default_factory=dict)
    measured: dict[int, MetricValue] = field(default_factory=dict)


class Executions:
    """The SQL executions of one application that run, until each has ended.

    Args:
        thresholds: from when on something is an issue.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._running: dict[int, _Running] = {}

    def stage_completed(
        self, execution: int, job: Job, stage: ExecutedStage, info: Mapping[str, Any]
    ) -> None:
        """Called when a stage of an execution has ended, with its ``Stage Info``."""
        running = self._running.setdefault(execution, _Running(job))
        if len(running.stages) < _MOST_STAGES:
            running.stages[stage.id] = stage
        if len(running.measured) < _MOST_METRICS:
            add_measured(running.measured, info)

    def ended(
        self, record: SQLExecutionEndRecord, begun_ms: int, time_ms: int, cores: int
    ) -> tuple[EndedExecution, Job | None]:
        """Called with an SQLExecutionEnd; returns all that is known of the execution, and its first job."""
        running = self._running.pop(int(record["executionId"]), None)
        plans = tuple(read_plans(record, running.measured if running else {}))
        stages = running.stages if running else {}
        return EndedExecution(begun_ms, time_ms, cores, plans, stages), running.job if running else None

    def issues(self, execution: EndedExecution) -> list[Issue]:
        """Return what the plans of an execution say, however little it cost; once for each cause."""
        by_cause: dict[str, Issue] = {}
        for rule in _RULES:
            for issue in rule(execution, self._thresholds):
                before = by_cause.get(issue.cause)
                by_cause[issue.cause] = before.plus(issue) if before else issue
        return list(by_cause.values())

    def forget(self) -> None:
        """Called at the end of the application."""
        self._running.clear()


def explained(issue: Issue, nodes: Sequence[Node], execution: EndedExecution) -> Issue:
    """Return an issue of a stage with what the nodes of its plan say about its cause."""
    if issue.kind == TASK_COUNT and "fewTasks" in issue.evidence:
        reason = why_few_tasks(nodes, int(str(issue.evidence["numTasks"])))
        if reason is not None:
            return replace(issue, sentence=f"{issue.sentence}: {reason.because}", advice=reason.advice)
    if issue.kind == STRAGGLER and (exploded := _exploded(nodes)):
        made, of, by = exploded
        known = f"{by} makes {made:,} rows of {of:,} here, and Spark does not count how many of each"
        return replace(
            issue,
            lost_ms=issue.lost_ms if issue.uneven_ms is None else min(issue.lost_ms or 0, issue.uneven_ms),
            sentence=f"{issue.sentence}; {known}",
            advice=f"{_LONG_ARRAYS} {issue.advice}",
        )
    if issue.kind == SPILL and (spilling := _spilling(nodes)):
        return replace(issue, sentence=f"{issue.sentence}: {spilling}")
    if issue.kind == SKEW and any(node.name.startswith(_OF_DATABASE) for node in nodes):
        return replace(issue, advice=_BOUNDS)
    if issue.kind in (SKEW, STRAGGLER) and (keys := _shuffled_by(nodes)):
        evidence = {**issue.evidence, "shuffle.keys": keys}
        if issue.kind == STRAGGLER and any(grows_with_its_key(node, execution) for node in nodes):
            because = (
                f"rows are divided by {keys}, and the frame of a row has the more rows, the more its key has"
            )
            advice = _OF_FRAMES.format(keys=keys)
            sentence = f"{issue.sentence}; {because}"
            return replace(issue, kind=SKEW, sentence=sentence, advice=advice, evidence=evidence)
        if issue.kind == SKEW and any(node.name == "Window" for node in nodes):
            issue = replace(issue, advice=_OF_WINDOW.format(keys=keys))
        elif issue.kind == SKEW and any(node.name.endswith(WHOLE_GROUPS) for node in nodes):
            issue = replace(issue, advice=_OF_GROUP.format(keys=keys))
        return replace(issue, sentence=f"{issue.sentence}; rows are divided by {keys}", evidence=evidence)
    if issue.kind == PYTHON:
        return of_functions(issue, nodes)
    return issue


def _exploded(nodes: Iterable[Node]) -> tuple[int, int, str] | None:
    """Return how many rows a stage makes of how many by exploding which array; None if it does not."""
    for node in nodes:
        made, of = node.rows or 0, node.children[0].rows or 0 if node.children else 0
        function = _EXPLODED.search(node.text) if node.name == "Generate" else None
        if function and of and made >= 2 * of:
            return made, of, " of ".join((function[1], *columns(node.text)[:1]))
    return None


def _spilling(nodes: Iterable[Node]) -> str:
    """Return what in a stage has spilled most, and by which columns; empty if unknown."""
    spilled = [node for node in nodes if node.metrics.get(_SPILLED)]
    if not spilled:
        return ""
    most = max(spilled, key=lambda node: node.metrics[_SPILLED])
    by = columns(most.text.partition("]")[0])[:3]
    return f"{most.name} by {', '.join(by)}" if by else most.name


def _shuffled_by(nodes: Iterable[Node]) -> str:
    """Return the columns by which rows were divided among the tasks of a stage; empty if they were not."""
    for node in nodes:
        for child in node.children:
            match = _HASHED.search(child.text) if child.name == EXCHANGE else None
            if match and (by := columns(match[1])):
                return ", ".join(by)
    return ""
