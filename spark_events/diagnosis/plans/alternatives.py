"""Whether the condition of a join is equalities joined by OR, by its text in the plan, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.plans.join_keys import ids_below, ids_of
from spark_events.diagnosis.plans.node import Node

_CONDITION = re.compile(r"^\w+(?: Build\w+, (\w+)(?:\([^)]*\))?,)? (\(.+\)|.+ IN \(.+\))", re.DOTALL)
_OR, _AND, _EQUAL, _IN = " OR ", " AND ", (" = ", " <=> "), " IN "
_UNION = (
    "Write one join for each equality: such joins look rows up, and compare no pairs. Combine the results by "
    "UNION (in PySpark, union() and then distinct()), so that a pair that fulfills several counts once"
)
_ONE_JOIN_EACH = (
    f"{_UNION}. If the tables themselves have equal rows, take the UNION of only the pairs of keys, and join "
    "both tables by these."
)
_OF_OUTER = f"{_UNION}: the keys of both tables, by which the outer side is then joined."
_OF_ANTI = (
    "Write one anti join (NOT EXISTS) for each equality, one after the other: such joins look rows up, and "
    "compare no pairs."
)


def advice_on_or(join: Node) -> str:
    """Return what to do about a join whose condition is equalities joined by OR; empty if it is not."""
    match = _CONDITION.match(join.text)
    if match is None:
        return ""
    sides = [ids_below(child) for child in join.children]
    if not any(_is_alternative(part, sides) for part in _parts(match[2], _AND)):
        return ""
    kind = match[1] or ""
    if kind == "LeftAnti":
        return _OF_ANTI
    return _OF_OUTER if kind.endswith("Outer") else _ONE_JOIN_EACH


def _is_alternative(text: str, sides: list[set[str]]) -> bool:
    """Return whether a condition is several equalities, of which one is enough."""
    parts = _parts(text, _OR)
    if len(parts) > 1:
        return all(_is_equality(part, sides) for part in parts)
    return _IN in text and _is_equality(text, sides)


def _is_equality(text: str, sides: list[set[str]]) -> bool:
    """Return whether a condition demands that something of one side is equal to something of the other."""
    conditions = _parts(text, _AND)
    if len(conditions) > 1:
        return any(_is_equality(condition, sides) for condition in conditions)
    if len(_parts(text, _OR)) > 1:
        return _is_alternative(text, sides)
    for sign in (*_EQUAL, _IN):
        operands = [ids_of(part) for part in _parts(text, sign)]
        if len(operands) == 2:
            return all(operands) and not any(operands[0] | operands[1] <= side for side in sides)
    return False


def _parts(text: str, sign: str) -> list[str]:
    """Return what a sign joins outside of parentheses, also where these are around all of it.

    Nothing is joined in a text that was cut, or has parentheses in a value.
    """
    text = text.strip()
    while (ends := list(_depths(text))) and text[0] == "(" and not ends[-1] and 0 not in ends[:-1]:
        text = text[1:-1].strip()
    if not ends or ends[-1] or min(ends) < 0:
        return [text]
    parts, begun = [], 0
    for place in (match.start() for match in re.finditer(re.escape(sign), text)):
        if ends[place] == 0:
            parts.append(text[begun:place])
            begun = place + len(sign)
    return [*parts, text[begun:]]


def _depths(text: str) -> Iterator[int]:
    """Yield within how many parentheses each character is."""
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        yield depth
