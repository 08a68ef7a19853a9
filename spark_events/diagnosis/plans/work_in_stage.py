"""How much of a stage's time some of its nodes take, as far as that is known.

Spark measures few nodes by time. What else a stage does tells whether its time is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import calls_light
from spark_events.diagnosis.plans.node import IN_MEMORY, Node

SCAN_TIME = "scan time"
_MEASURED = (SCAN_TIME, "sort time", "time to run Python workers")
_KEEPS, _SINKS = ("WriteFiles", "Sort", IN_MEMORY), ("Execute", "Overwrite", "Append", "WriteToDataSource")
_CALLING = ("Project", "Filter", "HashAggregate")
_SCANS = ("Scan ", "BatchScan", "Range", "LocalTableScan", "AQEShuffleRead")


class WorkTime(NamedTuple):
    """How long the work of some nodes took, in ms.

    Attributes:
        time_ms: it; an upper limit if it is not known.
        is_known: whether it is.
    """

    time_ms: int
    is_known: bool


def above(node: Node) -> Iterator[Node]:
    """Yield what is done with the rows of a node within its stage."""
    while node.parent is not None and not node.parent.is_exchange:
        node = node.parent
        yield node


def is_light(node: Node) -> bool:
    """Return whether what a node does takes next to no time: no function that might take long is called."""
    if node.name in _CALLING:
        return calls_light(node.text.partition(" ")[2])
    return node.name in _KEEPS or node.name.startswith(_SINKS)


def work_time(node: Node, execution: EndedExecution) -> WorkTime:
    """Return how much sooner an execution would end if a node and those below it in its stage took no time.

    A stage that does next to nothing else is theirs, as long as no other stage runs beside it. If it does
    more with their rows, only what Spark has measured is: reading, sorting, functions in Python. What it has
    not measured may be all of the stage, if it joins their rows, say; if it only calls functions for them,
    those that are called first are taken for the slow ones.
    """
    stages = node.stages
    wall_ms = execution.freed_ms(stages)
    others = [each for each in above(node) if not is_light(each)]
    if not others:
        return WorkTime(wall_ms, True)
    within = list(node.within_stage())
    if not all(_is_accounted_for(each) for each in within):
        return WorkTime(wall_ms, all(each.name in _CALLING for each in others))
    run_ms = sum(execution.stages[stage].run_ms for stage in stages if stage in execution.stages)
    measured_ms = sum(each.metrics.get(name, 0) for each in within for name in _MEASURED)
    return WorkTime(wall_ms * min(measured_ms, run_ms) // run_ms if run_ms else 0, True)


def _is_accounted_for(node: Node) -> bool:
    """Return whether Spark measures what a node takes, or it takes next to nothing."""
    return (
        node.is_exchange
        or is_light(node)
        or node.name.startswith(_SCANS)
        or any(name in node.metrics for name in _MEASURED)
    )
