"""The columns by which a join compares rows, what these are computed from, and whether that may take long."""

from __future__ import annotations

import re

from spark_events.diagnosis.plans.node import CUT, Node, columns, items, without_ids

BROADCAST_JOIN = "BroadcastHashJoin"
EQUAL = ("SortMergeJoin", BROADCAST_JOIN, "ShuffledHashJoin")
"""The joins that look for rows with equal keys."""
OF_STREAMS = "StreamingSymmetricHashJoin"
"""That of two streams: each new row meets those with equal keys that its state keeps, too."""
_KEYS = re.compile(r"^\w+ (\[[^\]]*\]), (\[[^\]]*\])")
_SMALLER = re.compile(r" [<>]=? ")
_ID = re.compile(r"#(\d+)", re.ASCII)
_CALLED = re.compile(r"([A-Za-z_]\w*)\(")
_TYPES = frozenset(["decimal", "char", "varchar"])
"""Types that a cast names, whose sizes look like arguments."""
_LIGHT = frozenset(
    ["isnotnull", "isnull", "isnan", "cast", "coalesce", "window", "IN", "NOT", "AND", "OR"]
    + [
        f"{way}{name}"
        for way in ("", "partial_", "merge_")
        for name in ("count", "sum", "min", "max", "avg", "approx_percentile")
    ]
)


def join_keys(node: Node) -> str:
    """Return the columns by which a join compares, such as ``k = customer_id``."""
    match = _KEYS.match(node.text)
    if match is None:
        return "its condition"
    sides = [", ".join(columns(side)) or without_ids(side)[1:-1] for side in match.groups()]
    return sides[0] if sides[0] == sides[1] else f"{sides[0]} = {sides[1]}"


def compared_keys(node: Node) -> tuple[list[str], list[str]] | None:
    """Return the keys of both sides of a join, such as ``k#4L``; None if nothing says them all."""
    match = _KEYS.match(node.text)
    if match is None or CUT in match[0]:
        return None
    left, right = ([key.strip() for key in items(side)] for side in match.groups())
    return (left, right) if len(left) == len(right) else None


def has_further_condition(node: Node) -> bool:
    """Return whether a join compares more than keys, or nothing says that it does not."""
    match = _KEYS.match(node.text)
    return match is None or "(" in node.text[match.end() :]


def has_range(node: Node) -> bool:
    """Return whether a join's further condition is about which value is smaller."""
    match = _KEYS.match(node.text)
    return match is not None and _SMALLER.search(node.text, match.end()) is not None


def key_ids(node: Node) -> set[str] | None:
    """Return the ids of the columns by which a join compares; None if these may take long to compute."""
    match = _KEYS.match(node.text)
    if match is None or not calls_light(node.text[: match.end()]):
        return None
    return ids_of(match[0])


def ids_of(text: str) -> set[str]:
    """Return the ids of the columns in a part of a node's text."""
    return set(_ID.findall(text))


def ids_below(node: Node) -> set[str]:
    """Return the ids of the columns that a node and those below it name."""
    return {number for below in node.walk() for number in ids_of(below.text)}


def made_of(keys: set[str], project: Node) -> set[str] | None:
    """Return the ids of the columns out of which a projection makes keys; None if that may take long."""
    if CUT in project.text:
        return None
    below: set[str] = set()
    for item in items(project.text):
        *of, made = _ID.findall(item) or [""]
        if made in keys:
            if not calls_light(item) or item.count("(") != item.count(")"):  # a text may have brackets
                return None
            below.update(of or [made])
    return below


def calls_light(text: str) -> bool:
    """Return whether no function is called that might take long."""
    return all(function in _LIGHT for function in functions_of(text))


def functions_of(text: str) -> list[str]:
    """Return the names of the functions that a part of a node's text calls."""
    return [function for function in _CALLED.findall(text) if function not in _TYPES]


def of_tables(tables: list[str]) -> str:
    """Return the first tables that a join or a side of it reads, as a sentence goes on with them."""
    first = tables[:3]
    return f" of {' and '.join(filter(None, (', '.join(first[:-1]), first[-1])))}" if first else ""
