"""The rule about window frames of many rows, each of which Spark goes through again for each row."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node, columns
from spark_events.diagnosis.thresholds import WINDOW, Thresholds

_BOUND = r"(-?\d+|currentrow\$\(\))"
_FRAME = re.compile(rf"specifiedwindowframe\(RowFrame, {_BOUND}, {_BOUND}\)", re.ASCII)
_LEAST_ROWS = 100
_STEP_NS = 20
"""What a row of a frame takes, of a CPU; less, where nothing but a sum is made of it."""
_LEAST_SHARE = 0.2
"""Of the CPU time of a window's stages: if its frames can explain less, something else takes long."""
_MOST_TIMES = 4
"""If they would take so many times as long, they are shorter: a frame ends where its partition does."""
_TREES = "number of segment-tree frames prepared"


def sliding_frames(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield windows whose frames have many rows: Spark aggregates all of a frame anew for each row."""
    for node in execution.nodes():
        frame_rows, rows = _longest_frame(node), node.rows
        if frame_rows < _LEAST_ROWS or not rows or node.metrics.get(_TREES):
            continue
        stages = [execution.stages[stage] for stage in node.stages & execution.stages.keys()]
        run_ms, cpu_ms = (sum(getattr(stage, name) for stage in stages) for name in ("run_ms", "cpu_ms"))
        steps_ms = rows * frame_rows * _STEP_NS / 1e6
        took_ms = cpu_ms or run_ms
        if not took_ms or not _LEAST_SHARE * took_ms <= steps_ms <= _MOST_TIMES * took_ms:
            continue
        wall_ms = execution.wall_ms(node.stages)
        share = min(0.95, steps_ms / took_ms)
        yield _issue(node, frame_rows, rows, round(wall_ms * share))


def _issue(node: Node, frame_rows: int, rows: int, lost_ms: int) -> Issue:
    by = ", ".join(columns(node.text.rpartition("[")[2]))
    return Issue(
        WINDOW,
        f"{WINDOW} frames",
        lost_ms,
        None,
        f"for each of {rows:,} rows, a window{f' ordered by {by}' if by else ''} aggregates a frame of up to "
        f"{frame_rows:,} rows anew",
        "For sums, counts and averages, subtract running totals: sum() from UNBOUNDED PRECEDING to the row, "
        "minus the same as of the row before the frame (lag). Or aggregate by a coarser time before.",
        evidence={"window.rows": rows, "window.frameRows": frame_rows},
        stages=node.stages,
    )


def _longest_frame(node: Node) -> int:
    """Return how many rows the longest frame of a window has that slides; 0 if none does."""
    if node.name != "Window":
        return 0
    bounds = ([_offset(bound) for bound in frame] for frame in _FRAME.findall(node.text))
    return max((last - first + 1 for first, last in bounds), default=0)


def _offset(bound: str) -> int:
    return 0 if bound.startswith("c") else int(bound)
