"""Duplicates that a join makes, and that are dropped afterwards: rows that nobody needs."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_events.diagnosis.plans.join_keys import has_further_condition, has_range, ids_below, ids_of
from spark_events.diagnosis.plans.node import MOVES, Node, columns, first_of, items

FACTOR = 2
"""How many times the rows that are kept a join makes at least."""
_FACTOR_OF_LATEST = 10
"""The same of a join that finds many rows of other times for each, of which the latest is kept."""
_MOST_COLUMNS = 3
_AGGREGATE = re.compile(r"^\w*Aggregate\(keys?=\[(.*?)\], functions=(\[.*)", re.DOTALL)
_FIRST = re.compile(r"\s*(?:(?:partial_|merge_)?first\(|\.\.\. |$)")
"""What Spark makes of dropDuplicates, which keeps the first row of each key; DISTINCT has no functions."""
_FIRST_BY_WINDOW = re.compile(r"^WindowGroupLimit (\[[^\]]*\]), .*row_number\(\), 1, ", re.DOTALL)
"""What Spark makes of a filter for the first row by row_number() of each key."""
_NEARLY_ALL = 0.9


class DroppedDuplicates(NamedTuple):
    """What is left of a join's rows.

    Attributes:
        columns: of which one row of each value is left, for a sentence.
        kept: how many rows are left.
    """

    columns: str
    kept: int


def duplicates_dropped_of(join: Node) -> DroppedDuplicates | None:
    """Return what is left of a join's rows once duplicates are dropped; None if that is most of them.

    They have to be copies of one side's rows. Who asks for pairs of products that are bought together, say,
    joins a table with itself and drops pairs that occur again: no row can be left out before that join.
    """
    rows, node = join.rows or 0, join.parent
    while node is not None and not ("Aggregate" in node.name or node.name == "WindowGroupLimit"):
        if not rows // FACTOR < (node.rows or 0) < rows * FACTOR:
            return None
        node = node.parent
    keys = dropped_by(node) if node is not None else ""
    if node is None or not keys:
        return None
    least = FACTOR
    if node.name == "WindowGroupLimit" and has_further_condition(join):
        if not has_range(join):
            return None
        least = _FACTOR_OF_LATEST  # where times are few for each row, nothing else is much quicker
    kept, above = node.rows, node.parent
    while above is not None and (above.name in MOVES or dropped_by(above)):
        kept, above = above.rows, above.parent
    if kept is None or kept * least > rows or not any(_are_of(side, keys, kept) for side in join.children):
        return None
    return DroppedDuplicates(first_of(columns(keys), _MOST_COLUMNS), kept)


def dropped_by(node: Node) -> str:
    """Return by which columns a node drops duplicates, as its text has them; empty if it does not."""
    if by_window := _FIRST_BY_WINDOW.match(node.text):
        return by_window[1]
    match = _AGGREGATE.match(node.text)
    return match[1] if match is not None and all(map(_FIRST.match, items(match[2]))) else ""


def _are_of(side: Node, keys: str, kept: int) -> bool:
    """Return whether rows that are kept are those of one side: it has all their keys, or as many rows."""
    if _NEARLY_ALL * (side.rows or 0) <= kept <= (side.rows or 0):
        return True
    return ids_of(keys) <= ids_below(side)
