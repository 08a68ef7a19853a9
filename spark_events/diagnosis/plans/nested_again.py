"""Arrays of which a row is made for each element, and that are then put together again, one for each row."""

from __future__ import annotations

import re

from spark_events.diagnosis.plans.join_keys import ids_of
from spark_events.diagnosis.plans.node import AGGREGATES, MOVES, Node, columns, first_of, items

_ONE_FOR_EACH = re.compile(
    r"Generate (?:pos)?(?:explode|inline)\((?!sequence\()(.*)\), \[[^\]]*\], \w+, \[([^\]]*)\]", re.ASCII
)
_PARTITIONED = re.compile(r"\], \[([^\]]*)\]")
"""By what a window divides rows: the second list in its text."""
_EXTRACTED = "_extract_"
"""How Spark names a field of all elements of an array, if nothing else of them is needed."""
_FIELD = re.compile(r"([A-Za-z_][\w.]*)#\d+L?((?:\.\w+)+)", re.ASCII)
_NAMING = ("Project", *AGGREGATES)
_JOINS = ("BroadcastHashJoin", "SortMergeJoin", "ShuffledHashJoin")
_PASSES = (*_NAMING, *MOVES, "Filter")
_AS_MANY = 0.8
_MOST_NAMES = 4


def nested_again(node: Node, made: int, of: int) -> tuple[str, str] | None:
    """Return what is said of a Generate whose rows are aggregated to as many as there were; None otherwise.

    Args:
        node: it.
        made: how many rows it makes.
        of: out of how many.
    """
    generates = _ONE_FOR_EACH.match(node.text)
    if generates is None or node.is_cut:
        return None
    of_elements = ids_of(generates[2])
    above = node.parent
    while above is not None and not (above.is_cut and above.name in _NAMING):
        if above.name not in _PASSES and not _is_by_row(above, of_elements):
            return None
        if above.name == "Project":
            of_elements |= _made_of(above, of_elements)
        if above.name.endswith("Aggregate"):
            keys = above.text.partition("[")[2].partition("]")[0]
            if not ids_of(keys) or of_elements & ids_of(keys):
                return None
            if "partial_" not in above.text and _AS_MANY * of <= (above.rows or 0) <= of:
                return _said(exploded_columns(node), columns(keys), made, of)
        above = above.parent
    return None


def _is_by_row(node: Node, of_elements: set[str]) -> bool:
    """Return whether a node joins, or takes together, rows by what a row has beside its elements.

    So could it rows with arrays.
    """
    if node.name == "Window":
        by = _PARTITIONED.search(node.text)
        return by is not None and bool(ids_of(by[1])) and not of_elements & ids_of(by[1])
    return node.name in _JOINS and not of_elements & ids_of(node.text)


def _made_of(project: Node, ids: set[str]) -> set[str]:
    """Return the ids of the columns that a projection makes of others."""
    named = (item.rpartition(" AS ") for item in items(project.text))
    return {made for of, _, name in named if ids & ids_of(of) for made in ids_of(name)}


def exploded_columns(node: Node) -> list[str]:
    """Return what a Generate takes its rows from, as a program names it: ``items.price``, say."""
    below = node.children[0]
    fields = {}
    for item in items(below.text) if below.name == "Project" else ():
        of, _, name = item.rpartition(" AS ")
        field = _FIELD.fullmatch(of.strip())
        if field and name.strip().startswith(_EXTRACTED):
            fields[columns(name)[0]] = "".join(field.groups())
    return [fields.get(name, name) for name in columns(node.text.partition("[")[0])]


def _said(exploded: list[str], keys: list[str], made: int, of: int) -> tuple[str, str]:
    what = first_of(exploded, _MOST_NAMES) or "an array"
    by = first_of(keys, _MOST_NAMES)
    return (
        f"explode() makes {made:,} rows of the elements of {what} in {of:,} rows, which are then put "
        f"together again by {by}, about one for each row",
        "Work on the array where it is, without moving rows: transform(), filter(), aggregate(), "
        "array_max(), array_distinct(), array_sort().",
    )
