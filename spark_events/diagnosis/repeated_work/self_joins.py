"""The rule about tables that are joined with themselves again and again, such as once for each lag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import EQUAL, compared_keys, ids_of
from spark_events.diagnosis.plans.node import (
    BROADCAST,
    IN_MEMORY,
    IN_PYTHON,
    MOVES,
    Node,
    columns,
    first_of,
    items,
    without_ids,
)
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_LEAST_JOINS = 3
_MOST_FOR_A_ROW, _NEARLY_ALL = 1.2, 0.9
_PASSES = ("Project", "Filter", BROADCAST, *MOVES)
_MOST_NAMES = 4
_SHIFTED = " (one of them shifted)"
_LAGS = (
    "lag() and lead(), or an aggregate over a frame, see the rows before and after in one window (PARTITION "
    "BY the other keys, ORDER BY the one that is shifted), for which the table is read once. Where values "
    "are missing in between, a frame of values finds the right row (RANGE BETWEEN 3 PRECEDING AND 3 "
    "PRECEDING)."
)
_VALUES = (
    "One aggregation by {keys} reads the table once, with a column for each of what the joins add: "
    "max(value) FILTER (WHERE …), or pivot() with its values named."
)


class _SelfJoin(NamedTuple):
    """A join of a table's rows with others of the same table.

    Attributes:
        table: it.
        keys: its columns by which both are compared.
        is_shifted: whether one side adds something to a key, so that it has the row before, say.
        is_broadcast: whether the driver sends the rows of that side to all executors.
        stages: in which the rows of the side that has nothing else are read, and joined.
    """

    table: str
    keys: tuple[str, ...]
    is_shifted: bool
    is_broadcast: bool
    stages: frozenset[int]


def self_joins(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each table that is joined with itself three times or more, by the same of its columns."""
    known: defaultdict[tuple[str, tuple[str, ...]], list[_SelfJoin]] = defaultdict(list)
    for node in execution.nodes():
        if node.name in EQUAL and len(node.children) == 2 and (of_table := _self_join(node)):
            known[of_table.table, of_table.keys].append(of_table)
    for (table, keys), joins in known.items():
        if len(joins) >= _LEAST_JOINS:
            yield _issue(table, keys, joins, execution)


def _self_join(join: Node) -> _SelfJoin | None:
    """Return what a join compares, if one of its sides is a table alone, and the other has the same one."""
    sides = compared_keys(join)
    if sides is None:
        return None
    for own, other in ((1, 0), (0, 1)):
        made = _of_table(join.children[own], sides[own])
        if made is None:
            continue
        within, of = made
        scan = within[-1]
        names = tuple(columns(key)[0] if len(columns(key)) == 1 else "" for key in of)
        is_shifted = any(without_ids(key) != name for key, name in zip(of, names, strict=True))
        looks_up = _looks_up(join, join.children[own], scan, is_shifted)
        if looks_up and all(names) and _has(join.children[other], _source(scan), sides[other], names):
            return _SelfJoin(
                ", ".join(scan.tables()),
                names,
                is_shifted,
                any(node.name == BROADCAST for node in within),
                frozenset().union(join.stages, *(node.stages for node in within)),
            )
    return None


def _looks_up(join: Node, side: Node, scan: Node, is_shifted: bool) -> bool:
    """Return whether a join looks up a row for each of the other side, by shifted keys or among fewer."""
    most = max(child.rows or 0 for child in join.children)
    is_part = (side.rows or 0) < _NEARLY_ALL * (scan.rows or 0)
    return bool(scan.tables()) and (join.rows or 0) <= _MOST_FOR_A_ROW * most and (is_shifted or is_part)


def _of_table(side: Node, keys: list[str]) -> tuple[list[Node], list[str]] | None:
    """Return the nodes of a side that only reads, filters and computes columns, and its keys in its scan."""
    nodes = [side]
    while side.children and side.name != IN_MEMORY:
        if side.name not in _PASSES or len(side.children) != 1:
            return None
        if side.name == "Project":
            made = dict(_named(item) for item in items(side.text))
            keys = [made.get(key, key) for key in keys]
        side = side.children[0]
        nodes.append(side)
    return nodes, keys


def _named(item: str) -> tuple[str, str]:
    """Return the column that an item of a list is, and what it is made of."""
    of, _, name = item.strip().rpartition(" AS ")
    return name, of or name


def _source(scan: Node) -> str:
    """Return what tells what a scan reads: a table, or the plan of what is cached."""
    return "\n".join(child.signature() for child in scan.children) or scan.table()


def _has(side: Node, source: str, keys: list[str], names: tuple[str, ...]) -> bool:
    """Return whether the keys of a side are those columns of what is read."""
    ids = [ids_of(key) for key in keys]
    return [without_ids(key) for key in keys] == list(names) and any(
        (node.name == IN_MEMORY or not node.children)
        and all(key <= ids_of(node.text) for key in ids)
        and _source(node) == source
        for node in side.walk()
    )


def _took_ms(stages: frozenset[int], joins: list[_SelfJoin], execution: EndedExecution) -> int:
    """Return how long stages took, in ms, without functions in Python that they call, too.

    What the driver does between them to broadcast rows is a part of it.
    """
    ended = [execution.stages[stage] for stage in stages & execution.stages.keys()]
    took_ms, run_ms = execution.wall_ms(stages), sum(stage.run_ms for stage in ended)
    if ended and any(join.is_broadcast for join in joins):
        took_ms = max(stage.ended_ms for stage in ended) - min(stage.begun_ms for stage in ended)
    python_ms = sum(node.metrics.get(IN_PYTHON, 0) for node in execution.nodes() if node.stages & stages)
    return took_ms * max(0, run_ms - python_ms) // run_ms if run_ms else took_ms


def _issue(table: str, keys: tuple[str, ...], joins: list[_SelfJoin], execution: EndedExecution) -> Issue:
    times, stages = len(joins), frozenset().union(*(join.stages for join in joins))
    is_shifted = sum(join.is_shifted for join in joins) >= _LEAST_JOINS
    by = first_of(keys, _MOST_NAMES)
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} joins of {table} with itself",
        None,
        None,
        f"{table} is joined with itself {times:,} times, by {by}{_SHIFTED if is_shifted else ''}: "
        "each time, it is read anew, and its rows are brought together",
        _LAGS if is_shifted else _VALUES.format(keys=by),
        evidence={"recomputation.times": times, "recomputation.what": f"joins of {table} with itself"},
        share_ms=_took_ms(stages, joins, execution) * times // (times + 1),
        stages=stages,
    )
