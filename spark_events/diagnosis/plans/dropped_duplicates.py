"""Duplicates that a join makes, and that are dropped afterwards: rows that nobody needs."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_events.diagnosis.plans.node import EXCHANGE, Node, columns

FACTOR = 2
"""How many times the rows that are kept a join makes at least."""
_MOST_COLUMNS = 3
_DROPS = re.compile(
    r"^\w*Aggregate\(keys?=\[(.*?)\], functions=\[(?:(?:partial_|merge_)?first\(|\])", re.DOTALL
)
"""What Spark makes of dropDuplicates, which keeps the first row of each key, and of DISTINCT."""
_BETWEEN = (EXCHANGE, "AQEShuffleRead", "Sort")
"""Nodes between the two steps of an aggregation."""


class DroppedDuplicates(NamedTuple):
    """What is left of a join's rows.

    Attributes:
        columns: by which duplicates are dropped, for a sentence.
        kept: how many rows are left.
    """

    columns: str
    kept: int


def duplicates_dropped_of(join: Node) -> DroppedDuplicates | None:
    """Return what is left of a join's rows once duplicates are dropped; None if that is most of them."""
    rows, node = join.rows or 0, join.parent
    while node is not None and "Aggregate" not in node.name:
        if not rows // FACTOR < (node.rows or 0) < rows * FACTOR:
            return None
        node = node.parent
    drops = _DROPS.match(node.text) if node is not None else None
    if node is None or drops is None:
        return None
    kept, by, above = node.rows, columns(drops[1]), node.parent
    while above is not None and (above.name in _BETWEEN or _DROPS.match(above.text)):
        kept, above = above.rows, above.parent
    if kept is None or kept * FACTOR > rows:
        return None
    more = ", …" if len(by) > _MOST_COLUMNS else ""
    return DroppedDuplicates(f"{', '.join(by[:_MOST_COLUMNS])}{more}", kept)
