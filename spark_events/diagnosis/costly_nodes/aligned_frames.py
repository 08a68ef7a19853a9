"""The rule about columns that the pandas API combines from several frames of a table, joined by index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from spark_events.diagnosis.costly_nodes.broadcasts import driver_ms
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import BROADCAST, Node
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_ALIGNS = re.compile(r"Join \[__this_[^\]]*\], \[__that_", re.ASCII)
"""How ``compute.ops_on_diff_frames`` names the index columns by which it joins."""


def aligned_frames(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield that frames of the same table are numbered, shuffled and joined to be in one frame.

    A frame that has all the columns reads the table once, and needs no order: what remains is at most what
    the quickest of the frames would take on all cores.
    """
    for plan in execution.plans:
        for join in _tops(plan):
            tables = join.tables()
            if len(tables) == 1 and (stages := _stages(join) & execution.stages.keys()):
                frames = 1 + sum(1 for node in join.walk() if _aligns(node))
                reading_ms = min((_run_ms(execution, read) for read in _reading(join) if read), default=0)
                sent = (driver_ms(node, execution) for node in join.walk() if node.name == BROADCAST)
                # Stages of other frames may run meanwhile, whose time counts as it is.
                sent_ms = min(sum(sent), execution.lasted_ms - execution.wall_ms(execution.stages))
                lost_ms = execution.wall_ms(stages) + sent_ms - reading_ms // max(1, execution.cores)
                issue = _issue(tables[0], frames, max(0, lost_ms), stages)
                span_ms = execution.begun_ms, execution.ended_ms
                yield replace(issue, driver_ms=sent_ms, driver_span_ms=span_ms)


def is_of_one_table(join: Node) -> bool:
    """Return whether ``aligned_frames`` tells of a join: of frames of the same table."""
    if not _aligns(join):
        return False
    while join.parent is not None and _aligns(join.parent):
        join = join.parent
    return len(join.tables()) == 1


def _issue(table: str, frames: int, lost_ms: int, stages: frozenset[int]) -> Issue:
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} frames of {table}",
        lost_ms,
        None,
        f"{frames} frames of {table} are read, numbered, shuffled and joined by their index, as the pandas "
        "API does where an operation has columns of different frames (compute.ops_on_diff_frames)",
        "Read the table into one frame, and compute with the columns of that; or join the frames by a key of "
        "their own (merge).",
        evidence={
            "recomputation.times": frames,
            "recomputation.cached": False,
            "recomputation.what": f"frames of {table}",
        },
        stages=stages,
    )


def _aligns(node: Node) -> bool:
    return _ALIGNS.search(node.text) is not None


def _tops(plan: Node) -> Iterator[Node]:
    """Yield the joins of frames that are not a side of another."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if _aligns(node):
            yield node
        else:
            waiting += node.children


def _stages(join: Node) -> frozenset[int]:
    return frozenset().union(*(node.stages for node in join.walk()))


def _reading(join: Node) -> Iterator[frozenset[int]]:
    """Yield the stages of each scan."""
    return (node.stages for node in join.walk() if not node.children)


def _run_ms(execution: EndedExecution, stages: frozenset[int]) -> int:
    return sum(execution.stages[stage].run_ms for stage in stages & execution.stages.keys())
