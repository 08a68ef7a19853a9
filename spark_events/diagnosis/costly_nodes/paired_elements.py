"""The rule about functions of arrays that go through the whole array again for each of its elements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import AGGREGATES, MOVES, Node
from spark_events.diagnosis.plans.work_in_stage import (
    MEASURED_TIMES,
    cpu_us_of_row,
    freed_besides_ms,
    in_stage_with,
    is_accounted_for,
)
from spark_events.diagnosis.thresholds import CROSS_JOIN, Thresholds

_NODES = ("Project", "Filter", "Generate", *AGGREGATES)
_OUTER = re.compile(
    r"\b(transform|filter|exists|forall|aggregate|reduce)\(([A-Za-z_][\w.]*)(#\d+), lambda", re.ASCII
)
_WHOLE = (
    "transform|filter|exists|forall|aggregate|reduce|array_contains|array_position|array_remove|array_sort"
)
"""Functions that go through an array from its beginning."""
_COLLECTS = re.compile(r"\bcollect_(?:list|set)\(")
_LONG_FOR_A_ROW_US = 500
"""What a row takes of a CPU from here on: arrays whose elements are looked at once take less."""
_MOST_PAIR_US, _LEAST_SHARE = 0.5, 0.5
"""What a pair of elements takes at most, of a CPU; if a row's cannot explain half of its time, something else
takes long."""


def paired_elements(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each array that a function goes through for each of its own elements: pairs of them, in all."""
    for node in execution.nodes():
        nested = _nested(node.text) if node.name in _NODES else None
        rows = node.children[0].rows if node.children else None
        if nested is None or not rows:
            continue
        each_us, elements = cpu_us_of_row(node, rows, execution), _elements(node, rows)
        explains = elements**2 * _MOST_PAIR_US >= _LEAST_SHARE * each_us if elements else _is_alone(node)
        if each_us >= _LONG_FOR_A_ROW_US and explains:
            yield _issue(node, *nested, rows, elements, execution)


def _is_alone(node: Node) -> bool:
    """Return whether nothing else in a node's stage may take long."""
    return all(each is node or is_accounted_for(each) for each in in_stage_with(node))


def _nested(text: str) -> tuple[str, str, str] | None:
    """Return a function of an array, another one within it that goes through it again, and the array."""
    for outer in _OUTER.finditer(text):
        function, column, number = outer.groups()
        again = re.compile(rf"\b({_WHOLE})\({re.escape(column + number)}L?, ")
        if inner := again.search(_body(text, outer.end())):
            return function, inner[1], column
    return None


def _body(text: str, begin: int) -> str:
    """Return what a function is called with, up to its closing bracket; to the end, if the text is cut."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return text[begin:at]
    return text[begin:]


def _elements(node: Node, rows: int) -> int:
    """Return how many elements an array has on average; 0 if nothing says it.

    A row is made of each, or it was collected from as many rows, perhaps in two steps.
    """
    if node.name == "Generate":
        return (node.rows or 0) // rows
    collects = next((below for below in node.within_stage() if _COLLECTS.search(below.text)), None)
    while collects is not None and (collects.name in (*AGGREGATES, *MOVES)):
        collects = collects.children[0] if collects.children else None
    return (collects.rows or 0) // rows if collects is not None else 0


def _issue(
    node: Node, function: str, again: str, array: str, rows: int, elements: int, execution: EndedExecution
) -> Issue:
    of = f", of {elements:,} on average: at least {rows * elements**2:,} pairs in" if elements else ", in"
    return Issue(
        CROSS_JOIN,
        f"{CROSS_JOIN} of elements of {array}",
        None,
        None,
        f"for each element of {array}{of} {rows:,} rows, {function}() goes through {array} again ({again})",
        "Work on rows instead of arrays: a window function (PARTITION BY, ORDER BY, and a frame of rows or "
        "of values) sees what is around each row. If the array is sorted, aggregate() with what is needed "
        "of the elements before goes through it once.",
        evidence={"array.column": array} | ({"array.elements": elements} if elements else {}),
        share_ms=int(freed_besides_ms(execution, node.stages, in_stage_with(node), MEASURED_TIMES)),
        stages=node.stages,
    )
