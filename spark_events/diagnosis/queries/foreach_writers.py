"""The rule about sinks that call the program's own code for each row: ``foreach``."""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.plans.work_in_stage import WorkInStages, measured_ms
from spark_events.diagnosis.thresholds import FOREACH_BATCH, Thresholds

_WRITE, _WRITER = "WriteToDataSourceV2", "ForeachWrite"
_LEAST_SHARE = 0.5
"""Of the tasks' time: for so much of it they wait."""
_LEAST_ROW_MS = 0.5
"""For so long at least, whoever calls another system for a row waits for it."""
_TASK_MS = 200
"""For so long a task may wait however many rows it writes: to connect, to commit, for its Python worker."""


def foreach_writers(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield that the tasks of a micro-batch wait, for the most part, while ``foreach`` writes its rows.

    Spark does not measure what the writer takes. A writer that calls another system for each row, or that
    runs in Python, leaves the task's own thread without a CPU. How long another one would take is not known.
    """
    for node in execution.nodes():
        stage = _stage(node, execution) if node.name == _WRITE and _WRITER in node.text else None
        if stage is None or not stage.run_ms or not stage.cpu_ms:
            continue
        waited_ms = stage.run_ms - stage.cpu_ms - stage.waited_ms - _waits_besides_ms(node)
        for_rows_ms = waited_ms - stage.tasks * _TASK_MS
        if for_rows_ms >= max(_LEAST_SHARE * stage.run_ms, _LEAST_ROW_MS * _rows(node)):
            freed_ms = WorkInStages(execution).freed_ms({stage.id})
            yield _issue(node, stage, waited_ms, freed_ms * for_rows_ms // stage.run_ms)


def _stage(write: Node, execution: EndedExecution) -> ExecutedStage | None:
    """Return the stage that writes; None if nobody knows which it is.

    Where all that it does is to write what was shuffled, none of its nodes has measured anything: then it is
    the only one in which none has.
    """
    measured = frozenset[int]().union(*(node.measured_in for node in execution.nodes()))
    stages = write.stages or execution.stages.keys() - measured
    return execution.stages.get(next(iter(stages))) if len(stages) == 1 else None


def _waits_besides_ms(write: Node) -> int:
    """Return for how long what else the stage does may wait, as far as Spark measures it by nodes."""
    return measured_ms(write.within_stage())


def _rows(write: Node) -> int:
    return (write.children[0].rows or 0) if write.children else 0


def _issue(write: Node, stage: ExecutedStage, waited_ms: int, share_ms: int) -> Issue:
    rows = _rows(write)
    of_each = f", {waited_ms / rows:,.1f} ms for each of {rows:,} rows" if rows else ""
    return Issue(
        FOREACH_BATCH,
        f"{FOREACH_BATCH} writer",
        None,
        None,
        f"tasks that write rows with foreach run for {duration(stage.run_ms)} in all, and have no CPU for "
        f"{duration(waited_ms)} of it{of_each}",
        "If the writer calls another system for each row, let it keep rows in process(), and send many at "
        "once, the rest in close(); or use foreachBatch with a sink of Spark's. Connect in open(), not for "
        "each row.",
        evidence={"foreach.rows": rows, "foreach.waitMs": waited_ms, "foreach.runTimeMs": stage.run_ms},
        share_ms=share_ms,
        stages=frozenset((stage.id,)),
    )
