"""The rule about projections one after the other, each of which copies all columns: withColumn in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import CUT, Node, items
from spark_events.diagnosis.plans.work_in_stage import above, freed_besides_ms
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_PROJECT = "Project"
_MANY, _FEW = 20, 5
"""So many are of a loop; so few remain where columns are added together, for those that need others first."""
_TOGETHER = (
    "withColumn in a loop makes them. Add columns together: with withColumns({...}), or one select(), and "
    "another one for columns that are made of these. Spark merges projections only where the columns below "
    "are used once, or cost nothing."
)


def projections(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield chains of projections that Spark has not merged into one.

    What they cost is not known: their text, which Spark cuts, may hide functions that take long, and a reader
    of text does not say what it takes. It is at most what their stage does besides what Spark measures.
    """
    for chain in _chains(execution):
        yield _issue(chain, execution)


def longest_chain(execution: EndedExecution) -> int:
    """Return how many projections are one after the other, if so many that a loop makes them; else 0."""
    return max(map(len, _chains(execution)), default=0)


def _chains(execution: EndedExecution) -> Iterator[list[Node]]:
    for node in execution.nodes():
        if node.name != _PROJECT or (node.parent is not None and node.parent.name == _PROJECT):
            continue
        chain = list(_chain(node))
        if len(chain) >= _MANY:
            yield chain


def _chain(node: Node) -> Iterator[Node]:
    """Yield a projection, and those below it."""
    while True:
        yield node
        if len(node.children) != 1 or node.children[0].name != _PROJECT:
            return
        node = node.children[0]


def _issue(chain: list[Node], execution: EndedExecution) -> Issue:
    top, number = chain[0], len(chain)
    others = (*above(top), *chain[-1].within_stage())
    columns, of_rows = max(map(_columns, chain)), f" of {top.rows:,} rows" if top.rows else ""
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} projections",
        None,
        None,
        f"{number:,} projections, one after the other, copy up to {columns:,} columns{of_rows}",
        _TOGETHER,
        evidence={"recomputation.times": number, "recomputation.what": "copies of all columns"},
        share_ms=round(freed_besides_ms(execution, top.stages, others) * (number - _FEW) / number),
        stages=top.stages,
    )


def _columns(node: Node) -> int:
    """Return how many columns come out of a projection, as far as its text says it."""
    last = node.text.rpartition(CUT)[0].rpartition(" ")[2]
    return len(items(node.text)) + (int(last) - 1 if last.isdecimal() else 0)
