"""Functions in Python that actions in ``foreachBatch`` call again: each computes the micro-batch anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import IN_PYTHON, Node
from spark_events.diagnosis.repeated_work.batches import OF_BATCH
from spark_events.diagnosis.thresholds import PYTHON


def without_python_again(issues: Sequence[Issue], execution: EndedExecution) -> list[Issue | None]:
    """Return issues of a micro-batch, each in its place, that count what functions take a second time once.

    What its own functions take for one of the actions is theirs: the longest time. What they take for the
    others, computing it again has lost; their issues are None.

    Args:
        issues: of its stages, and of its plans.
        execution: it.
    """
    again = next((issue for issue in issues if issue.cause == OF_BATCH), None)
    if again is None:
        return [*issues]
    called = _called(execution)
    own = [issue for issue in issues if issue.cause == PYTHON and issue.stages <= again.stages & called]
    if len(own) < 2:
        return [*issues]
    once = max(own, key=lambda issue: issue.time_ms)
    others = [issue for issue in own if issue is not once]
    lost_ms = sum(issue.time_ms for issue in others)
    known = replace(again, lost_ms=lost_ms, share_ms=None, stages=again.stages - once.stages)
    instead = {id(again): known, **dict.fromkeys(map(id, others))}
    return [instead.get(id(issue), issue) for issue in issues]


def _called(execution: EndedExecution) -> frozenset[int]:
    """Return the stages whose functions in Python are all of the micro-batch's own plan, its first."""
    own = {node.text for plan in execution.plans[:1] for node in plan.walk() if _is_call(node)}
    stages = set()
    for stage, nodes in execution.nodes_by_stage().items():
        calls = {node.text for node in nodes if _is_call(node)}
        if calls and calls <= own:
            stages.add(stage)
    return frozenset(stages)


def _is_call(node: Node) -> bool:
    return IN_PYTHON in node.metrics
