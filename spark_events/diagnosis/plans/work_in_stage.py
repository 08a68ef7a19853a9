"""How much of a stage's time some of its nodes take, as far as that is known.

Spark measures few nodes by time. What else a stage does tells whether its time is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import calls_light
from spark_events.diagnosis.plans.node import IN_MEMORY, MOVES, Node

SCAN_TIME = "scan time"
MEASURED_TIMES = (SCAN_TIME, "sort time", "time to run Python workers")
"""The metrics of nodes that say how long these took."""
_KEEPS, _SINKS = ("WriteFiles", "Sort", IN_MEMORY), ("Execute", "Overwrite", "Append", "WriteToDataSource")
_OBJECTS = "ObjectHashAggregate"
"""An aggregate whose functions may keep all that comes."""
_CALLING = ("Project", "Filter", "HashAggregate", "SortAggregate", _OBJECTS)
_GENERATES_ONE = re.compile(r"Generate (?:pos)?explode\(array\(\w[\w.]*#\d+L?\)\)", re.ASCII)
"""A node that makes one row of each, of one of its columns, as for ``approxQuantile``."""
USUAL_FOR_A_ROW_US = 3
"""What a row takes of a CPU at most where nothing slow is done with it."""
_SCANS = ("Scan ", "BatchScan", "Range", "LocalTableScan", "AQEShuffleRead")
_PARSES = re.compile(r"Scan (?:json|csv|xml|text)\b", re.ASCII)


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


def in_stage_with(node: Node) -> list[Node]:
    """Return what is done with a node's rows within its stage, the node, and what is below it there."""
    return [*above(node), *node.within_stage()]


def tasks_time(node: Node, execution: EndedExecution) -> tuple[int, int]:
    """Return how long the tasks of a node's stages ran, and for how long they had a CPU, in ms."""
    stages = [execution.stages[stage] for stage in node.stages & execution.stages.keys()]
    return sum(stage.run_ms for stage in stages), sum(stage.cpu_ms for stage in stages)


def cpu_us_of_row(node: Node, rows: int, execution: EndedExecution) -> float:
    """Return what a row that goes into a node takes of a CPU, in µs, without what other rows there take.

    Args:
        node: it.
        rows: how many go into it.
        execution: that has computed it.
    """
    nodes = in_stage_with(node)
    run_ms, cpu_ms = tasks_time(node, execution)
    own_ms = cpu_ms or run_ms - measured_ms(nodes)
    others = max(each.rows or 0 for each in nodes) - rows
    return max(0.0, own_ms * 1_000 - max(0, others) * USUAL_FOR_A_ROW_US) / rows


def over(node: Node, passed: Collection[str] = ()) -> Node | None:
    """Return what takes a node's rows, past nodes that only move them, and past others by their names."""
    parent = node.parent
    while parent is not None and (parent.name in MOVES or parent.name in passed):
        parent = parent.parent
    return parent


def is_light(node: Node) -> bool:
    """Return whether what a node does takes next to no time: no function that might take long is called."""
    if node.name == _OBJECTS and node.is_cut:
        return False
    if node.name in _CALLING:
        return calls_light(node.text.partition(" ")[2])
    if _GENERATES_ONE.match(node.text):
        return True
    return node.name in _KEEPS or node.name.startswith(_SINKS)


def stages_of_rows(node: Node, rows: int) -> frozenset[int]:
    """Return the stages in which the rows are that a node makes, until there are far fewer of them."""
    stages, over = node.stages, node.parent
    while over is not None and (over.rows or 0) > rows // 2:
        stages |= over.stages
        over = over.parent
    return stages


def is_accounted_for(node: Node) -> bool:
    """Return whether Spark measures what a node takes, or it takes next to nothing."""
    return (
        node.is_exchange
        or is_light(node)
        or (node.name.startswith(_SCANS) and not parses(node))
        or any(name in node.metrics for name in MEASURED_TIMES)
    )


def parses(node: Node) -> bool:
    """Return whether it reads files line by line: Spark does not measure how long that takes."""
    return _PARSES.match(node.name) is not None and SCAN_TIME not in node.metrics


def freed_besides_ms(
    execution: EndedExecution,
    stages: Collection[int],
    others: Iterable[Node],
    metrics: Collection[str] = MEASURED_TIMES,
) -> float:
    """Return how much sooner an execution would end without some stages, but for what some nodes take, in ms.

    Args:
        others: the nodes whose time is not counted, as far as Spark measures it.
        metrics: the names of what they measure.
    """
    freed_ms = WorkInStages(execution).freed_ms(stages)
    run_ms = sum(execution.stages[stage].run_ms for stage in stages if stage in execution.stages)
    others_ms = measured_ms(others, metrics)
    return freed_ms * (1 - min(others_ms, run_ms) / run_ms) if run_ms else freed_ms


class _Done(NamedTuple):
    """What nodes do.

    Attributes:
        measured_ms: how long that took, as far as Spark measures it.
        is_accounted_for: whether the rest takes next to nothing.
        only_calls: whether the rest, if any, only calls functions for each row.
        only_parses: whether the rest, if any, only parses files.
    """

    measured_ms: int = 0
    is_accounted_for: bool = True
    only_calls: bool = True
    only_parses: bool = True

    def plus(self, other: _Done) -> _Done:
        return _Done(
            self.measured_ms + other.measured_ms,
            self.is_accounted_for and other.is_accounted_for,
            self.only_calls and other.only_calls,
            self.only_parses and other.only_parses,
        )


class WorkInStages:
    """What the nodes of an SQL execution take within their stages; each node is looked at once."""

    def __init__(self, execution: EndedExecution) -> None:
        self._execution = execution
        self._alone_ms = execution.alone_ms()
        self._above: dict[int, _Done] = {}
        self._within: dict[int, _Done] = {}

    def time(self, node: Node) -> WorkTime:
        """Return how much sooner the execution would end if a node and those below it took no time.

        Those below are of the same stage. One that does next to nothing else is theirs, as long as no other
        stage runs beside it. If it does more with their rows, only what Spark has measured is: reading,
        sorting, functions in Python. What it has not measured may be all of the stage, if it joins their
        rows, say; if it only calls functions for them, those called first are taken for the slow ones.
        """
        stages, above = node.stages, self._done_above(node)
        freed_ms = self.freed_ms(stages)
        run_ms = sum(self._execution.stages[n].run_ms for n in stages if n in self._execution.stages)
        others_ms = freed_ms * min(above.measured_ms, run_ms) // run_ms if run_ms else 0
        if above.is_accounted_for:
            return WorkTime(freed_ms - others_ms, True)
        within = self._done_within(node)
        if not within.is_accounted_for:
            return WorkTime(freed_ms - others_ms, above.only_calls and not within.only_parses)
        return WorkTime(freed_ms * min(within.measured_ms, run_ms) // run_ms if run_ms else 0, True)

    def freed_ms(self, stages: Collection[int]) -> int:
        """Return how much sooner the others would end without some stages, in ms.

        For as long as they run alone; where others run beside them, these get their share of the cores.
        """
        execution = self._execution
        if len(stages) == 1:
            alone_ms = sum(self._alone_ms.get(stage, 0) for stage in stages)
        else:
            others = execution.stages.keys() - stages
            alone_ms = execution.wall_ms(execution.stages) - execution.wall_ms(others)
        run_ms = sum(execution.stages[stage].run_ms for stage in stages if stage in execution.stages)
        shared_ms = run_ms // execution.cores if execution.cores else 0
        return max(alone_ms, min(execution.wall_ms(stages), shared_ms))

    def _done_above(self, node: Node) -> _Done:
        """Return what is done with the rows of a node within its stage."""
        way: list[Node] = []
        while id(node) not in self._above:
            way.append(node)
            if node.parent is None or node.parent.is_exchange:
                self._above[id(way.pop())] = _Done()
                break
            node = node.parent
        for below in reversed(way):
            assert below.parent is not None  # the way ends there
            self._above[id(below)] = self._above[id(below.parent)].plus(_above(below.parent))
        return self._above[id(way[0] if way else node)]

    def _done_within(self, node: Node) -> _Done:
        """Return what a node does, and those below it that run in the same stage."""
        waiting = [node]
        while waiting:
            here = waiting[-1]
            below = [child for child in here.children if not child.is_exchange]
            unknown = [child for child in below if id(child) not in self._within]
            if unknown:
                waiting += unknown
                continue
            is_quick = is_accounted_for(here)
            done = _Done(measured_ms([here]), is_quick, only_parses=is_quick or parses(here))
            for child in below:
                done = done.plus(self._within[id(child)])
            self._within[id(here)] = done
            waiting.pop()
        return self._within[id(node)]


def _above(node: Node) -> _Done:
    """Return what a node does with the rows of others."""
    light = is_light(node)
    return _Done(measured_ms([node]), light, light or node.name in _CALLING)


def measured_ms(nodes: Iterable[Node], metrics: Collection[str] = MEASURED_TIMES) -> int:
    """Return how long nodes took as far as Spark measures it, by the names of such metrics, in ms."""
    return sum(node.metrics.get(name, 0) for node in nodes for name in metrics)
