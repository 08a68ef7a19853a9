"""What the plans of one DataFrame have in common, though each needs other columns of it.

Spark leaves out the columns that an action does not need, so that plans of one DataFrame differ in what they
read and hand on. What they filter, join and group by is the same, and so is what the columns are made of
that they need for that; a query that only looks alike makes them of something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_events.diagnosis.plans.column_meanings import ColumnMeanings
from spark_events.diagnosis.plans.node import FILES, Node, without_plan_ids
from spark_events.diagnosis.plans.work_in_stage import is_light

_HANDING_ON = ("Project", "Exchange", "BroadcastExchange", "Sort", "AQEShuffleRead", "Coalesce", "LocalLimit")
"""The names of nodes that only hand rows on, or whose order is named by what needs it."""
_OF_ALL = "], true, "
"""In the text of a sort that the program asks for: what is above it may depend on its order, unnamed."""
_COLUMNS_LAST = ("Generate", "BatchEvalPython", "ArrowEvalPython")
"""The names of nodes whose text ends with the columns that come out of them."""
_HEAVY = re.compile(r"Join|Window|Aggregate|Generate|Python|InPandas|InArrow", re.ASCII)
_KEPT = re.compile(r"(?:, )?(?:partial_|merge_)?first\([A-Za-z_][\w.]*#\d+L?, false\)", re.ASCII)
"""What ``dropDuplicates`` keeps of the other columns, as far as they are needed."""
_BY = re.compile(r"^(?:SortAggregate\(key|ObjectHashAggregate\(keys)=", re.ASCII)
_OUTPUT = ", output=["
_PUSHED = ("Location", "PartitionFilters", "PushedFilters")


def is_heavy(node: Node) -> bool:
    """Return whether what a node does is worth keeping: more than a look at each row."""
    return bool(_HEAVY.search(node.name)) or (node.name == "Filter" and not is_light(node))


def only_hands_on(node: Node) -> bool:
    """Return whether plans of one DataFrame may differ in a node, and yet do the same work below it."""
    is_asked_for = node.name == "Sort" and _OF_ALL in node.text
    return len(node.children) == 1 and node.name in _HANDING_ON and not is_asked_for


def work_of(node: Node, columns: ColumnMeanings) -> str:
    """Return what a node does, whatever columns it reads and hands on.

    Args:
        node: it.
        columns: what the columns of the nodes below it are made of.
    """
    if node.name.startswith("Scan "):
        return "\n".join((node.name, *_read(node, node.metadata)))
    text = without_plan_ids(node.text).partition(_OUTPUT)[0]
    if node.name.endswith("Aggregate"):
        text = _BY.sub("HashAggregate(keys=", _KEPT.sub("", text))
    return columns.in_text(text.partition(", [")[0] if node.name in _COLUMNS_LAST else text)


def _read(scan: Node, metadata: Mapping[str, str]) -> tuple[str, ...]:
    figures = (scan.rows, *(scan.metrics.get(name) for name in FILES))
    return (*(metadata.get(name, "") for name in _PUSHED), *map(str, figures))
