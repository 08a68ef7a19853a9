"""Reads the plans in the record of an SQL execution's end, with what their nodes measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spark_events.diagnosis.plans.node import (
    CACHED_TABLE,
    IN_MEMORY,
    IN_PYTHON,
    PLAN_METRICS,
    MetricValue,
    Node,
)

_AROUND = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "ColumnarToRow", "RowToColumnar")
_AROUND_ENDS = "QueryStage"
_NUMBER = re.compile(r"(?: \(\d+\))?\s*$", re.ASCII)


def read_plans(record: Mapping[str, Any], measured: Mapping[int, MetricValue]) -> list[Node]:
    """Return the roots of the plans in the record of an SQL execution's end, each once.

    Spark may run a plan as an execution within another one of the same plan, such as a micro-batch's: what
    its nodes measured, in accumulators that both have, has been measured once.

    Args:
        record: an SQLExecutionEnd.
        measured: the accumulators to which tasks of the execution's stages have added.
    """
    values = dict(measured)
    for number, value in (record.get("Driver Metrics") or {}).items():
        values.setdefault(int(number), MetricValue(max(0, int(value))))
    plans: list[Sequence[Sequence[Any]]] = []
    for plan in record.get("Plans") or ():
        if plan not in plans or not any(node[-1] for node in plan):
            plans.append(plan)
    return [root for plan in plans if (root := _tree(plan, values)) is not None]


def _tree(plan: Sequence[Sequence[Any]], values: Mapping[int, MetricValue]) -> Node | None:
    root: Node | None = None
    path: list[tuple[int, Node]] = []
    in_python: list[Node] = []
    for depth, name, text, metadata, metrics in plan:
        name = _NUMBER.sub("", name)
        while path and path[-1][0] >= depth:
            path.pop()
        if name in _AROUND or name.endswith(_AROUND_ENDS):
            continue
        if name.startswith(CACHED_TABLE):
            name = IN_MEMORY
        known = [(PLAN_METRICS[index], values[number]) for index, number in metrics if number in values]
        node = Node(
            name,
            text,
            metadata,
            {metric: value.value for metric, value in known},
            frozenset().union(*(value.stages for _, value in known)),
            path[-1][1] if path else None,
        )
        if path:
            path[-1][1].children.append(node)
        elif root is None:
            root = node
        path.append((depth, node))
        if IN_PYTHON in node.metrics:
            in_python.append(node)
    _take_off_nested(in_python)
    return root


def _take_off_nested(in_python: Sequence[Node]) -> None:
    """Leave nodes their own time in Python: Spark counts how long a worker waits for those below, too."""
    nested_ms: dict[int, int] = {}
    for node in in_python:
        above = node.parent
        while above is not None and not above.is_exchange and IN_PYTHON not in above.metrics:
            above = above.parent
        if above is not None and not above.is_exchange:
            nested_ms[id(above)] = nested_ms.get(id(above), 0) + node.metrics[IN_PYTHON]
    for node in in_python:
        if id(node) in nested_ms:
            own_ms = max(0, node.metrics[IN_PYTHON] - nested_ms[id(node)])
            node.metrics = {**node.metrics, IN_PYTHON: own_ms}
