"""The rule about projections one after the other, each of which copies all columns: withColumn in a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node, items
from spark_events.diagnosis.plans.work_in_stage import SCAN_TIME
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_PROJECT = "Project"
_MANY, _FEW = 20, 5
"""So many are of a loop; so few remain where columns are added together, for those that need others first."""
_COLUMN_US = 0.2
"""What it takes of a CPU to copy a column of a row at most; what takes longer is for what is computed."""
_CUT = re.compile(r"\.\.\. (\d+) more fields")
_TOGETHER = (
    "withColumn in a loop makes them. Add columns together: with withColumns({...}), or one select(), and "
    "another one for columns that are made of these. Spark merges projections only where the columns below "
    "are used once, or cost nothing."
)


def projections(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield chains of projections that Spark has not merged into one.

    What they cost is known where their stage does next to nothing else: by its CPU time, each row's columns
    are copied again and again. Else only how long that stage takes is known, besides reading.
    """
    for node in execution.nodes():
        if node.name != _PROJECT or (node.parent is not None and node.parent.name == _PROJECT):
            continue
        chain = list(_chain(node))
        if len(chain) >= _MANY:
            yield _issue(chain, execution)


def _chain(node: Node) -> Iterator[Node]:
    """Yield a projection, and those below it."""
    while True:
        yield node
        if len(node.children) != 1 or node.children[0].name != _PROJECT:
            return
        node = node.children[0]


def _issue(chain: list[Node], execution: EndedExecution) -> Issue:
    top, number, rows = chain[0], len(chain), chain[0].rows or 0
    columns = max(map(_columns, chain))
    stages = [execution.stages[stage] for stage in top.stages if stage in execution.stages]
    run_ms, cpu_ms = sum(stage.run_ms for stage in stages), sum(stage.cpu_ms for stage in stages)
    read_ms = min(run_ms, sum(below.metrics.get(SCAN_TIME, 0) for below in top.within_stage()))
    rest = 1 - read_ms / run_ms if run_ms else 1.0
    saved_ms = round(execution.wall_ms(top.stages) * rest * (number - _FEW) / number)
    copying_ms = rows * number * columns * _COLUMN_US / 1_000
    only_copies = 0 < cpu_ms <= copying_ms
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} projections",
        saved_ms if only_copies else None,
        None,
        f"{number:,} projections, one after the other, copy up to {columns:,} columns of {rows:,} rows",
        _TOGETHER,
        evidence={"recomputation.times": number, "recomputation.what": "copies of all columns"},
        share_ms=None if only_copies else saved_ms,
        stages=top.stages,
    )


def _columns(node: Node) -> int:
    cut = _CUT.search(node.text)
    return len(items(node.text)) + (int(cut[1]) - 1 if cut else 0)
