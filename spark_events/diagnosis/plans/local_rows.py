"""Plans that have many rows in themselves, which the driver handles anew in each query of them."""

from __future__ import annotations

from spark_events.diagnosis.plans.execution import EndedExecution

_LOCAL = "LocalTableScan"
_MANY_ROWS = 100_000
"""So many rows at least take the driver a while."""


def with_local_rows(before: tuple[int, int], execution: EndedExecution) -> tuple[int, int]:
    """Return the most rows that a plan has in itself, and how long the driver planned such plans, in ms.

    What it does after the first stage has begun, such as to commit files, takes as long for other rows.

    Args:
        before: the same of the executions before.
        execution: one more that has ended.
    """
    rows = max((node.rows or 0 for node in execution.nodes() if node.name == _LOCAL), default=0)
    if rows < _MANY_ROWS:
        return before
    first_ms = min((stage.begun_ms for stage in execution.stages.values()), default=execution.ended_ms)
    return max(before[0], rows), before[1] + max(0, first_ms - execution.begun_ms)
