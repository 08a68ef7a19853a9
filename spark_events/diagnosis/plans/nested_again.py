"""Arrays of which a row is made for each element, and that are then put together again, one for each row."""

from __future__ import annotations

import re

from spark_events.diagnosis.plans.node import MOVES, Node, columns, first_of, items

_ONE_FOR_EACH = re.compile(
    r"Generate (?:pos)?(?:explode|inline)\((?!sequence\()(.*)\), \[[^\]]*\], \w+, \[([^\]]*)\]", re.ASCII
)
_COLUMN = re.compile(r"[A-Za-z_][\w.]*#\d+", re.ASCII)
_MADE_OF = re.compile(r"^(.*) AS ([A-Za-z_][\w.]*#\d+)L?$", re.ASCII | re.DOTALL)
_NAMING = ("Project", "HashAggregate", "SortAggregate", "ObjectHashAggregate")
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
    of_elements = set(_COLUMN.findall(generates[2]))
    above = node.parent
    while above is not None and above.name in _PASSES and not (above.is_cut and above.name in _NAMING):
        if above.name == "Project":
            of_elements |= _made_of(above, of_elements)
        if above.name.endswith("Aggregate"):
            keys = _COLUMN.findall(above.text.partition("[")[2].partition("]")[0])
            if not keys or of_elements.intersection(keys):
                return None
            if "partial_" not in above.text and _AS_MANY * of <= (above.rows or 0) <= of:
                return _said(generates[1], keys, made, of)
        above = above.parent
    return None


def _made_of(project: Node, of_elements: set[str]) -> set[str]:
    """Return the columns of a projection that are made of others."""
    made = (_MADE_OF.match(item.strip()) for item in items(project.text))
    return {each[2] for each in made if each and of_elements.intersection(_COLUMN.findall(each[1]))}


def _said(exploded: str, keys: list[str], made: int, of: int) -> tuple[str, str]:
    what = first_of(columns(exploded), _MOST_NAMES) or "an array"
    by = first_of([key.partition("#")[0] for key in keys], _MOST_NAMES)
    return (
        f"explode() makes {made:,} rows of the elements of {what} in {of:,} rows, which are then put "
        f"together again by {by}, about one for each row",
        "Work on the array where it is, without moving rows: transform(), filter(), aggregate(), "
        "array_max(), array_distinct(), array_sort().",
    )
