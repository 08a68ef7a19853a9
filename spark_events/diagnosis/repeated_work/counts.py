"""The rule about rows that are counted, as for a log, and then computed again for what is done with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import EQUAL, join_keys
from spark_events.diagnosis.plans.node import (
    EXCHANGE,
    FILES,
    IN_MEMORY,
    OF_PROGRAM,
    REUSED,
    Node,
    without_ids,
)
from spark_events.diagnosis.plans.plan_part import MOST_PLACES, named_places
from spark_events.diagnosis.thresholds import RECOMPUTATION

_AGGREGATE = "HashAggregate"
_COUNT = f"{_AGGREGATE}(keys=[], functions=[count(1)]"
_FILTER = "Filter"
_PASSED = ("Project", "Sort", "AQEShuffleRead", EXCHANGE, "BroadcastExchange")
"""Nodes that make the same rows, of other columns or in another order."""
_MOST_WAITING, _MOST_NODES, _MOST_TABLES = 100, 500, 3
_LEAST = 2
"""Who counts once may need the number."""


class _Rows(NamedTuple):
    """What rows are made of, whatever columns they have.

    Attributes:
        shape: a digest of the tables, joins and aggregates.
        filters: the conditions above each of those.
        size: how many there are of both; one is a whole table.
    """

    shape: str
    filters: tuple[frozenset[str], ...]
    size: int


class _Counted(NamedTuple):
    """An SQL execution that has counted rows.

    Attributes:
        rows: which.
        digest: of their plan.
        place: in the user's code.
        wall_ms: how long it took, in ms.
        parts_ms: the same of its parts, by their digests.
        tables: that it read.
    """

    rows: _Rows
    digest: str
    place: str
    wall_ms: int
    parts_ms: Mapping[str, int]
    tables: tuple[str, ...]


@dataclass(slots=True)
class CountedRows:
    """Finds counts of rows of which a later SQL execution computes all, or some, again."""

    times: int = 0
    lost_ms: int = 0
    tables: dict[str, None] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    _waiting: list[_Counted] = field(default_factory=list)

    def take(self, execution: EndedExecution, plan: Node, digests: Mapping[int, str], place: str) -> bool:
        """Called with a plan of an execution that has ended; returns whether a count was in vain.

        Args:
            execution: it.
            plan: its root.
            digests: of the nodes, by their ids: what is the same in two plans is told elsewhere.
            place: in the user's code that it is for; empty if unknown.
        """
        counted = _counted(plan)
        if counted is None and not self._waiting:
            return False
        made = _made(plan)
        rows = None if counted is None else made.get(id(counted))
        known = set(digests.values())
        wall_ms = execution.wall_ms(execution.stages)
        left, again = [], False
        for each in self._waiting:
            if each.digest in known:
                continue
            if not any(_has(of, each.rows) for of in made.values()):
                left.append(each)
                continue
            again = True
            told_ms = max((part_ms for part, part_ms in each.parts_ms.items() if part in known), default=0)
            self._add(each, max(0, min(each.wall_ms, wall_ms) - told_ms))
        self._waiting = left[-_MOST_WAITING:]
        if counted is not None and rows is not None and rows.size > 1:
            parts_ms = {
                digests[id(node)]: execution.wall_ms(node.stages)
                for node in counted.walk()
                if node.children and id(node) in digests
            }
            digest, tables = digests.get(id(counted), ""), tuple(counted.tables())
            self._waiting.append(_Counted(rows, digest, place, wall_ms, parts_ms, tables))
        return again

    def issues(self) -> Iterator[Issue]:
        """Yield what the counts have cost so far."""
        if self.times < _LEAST:
            return
        places = f" ({named_places(self.places)})" if self.places else ""
        tables = list(self.tables)
        of = f" of {', '.join(tables[:_MOST_TABLES])}{' and others' if len(tables) > _MOST_TABLES else ''}"
        yield Issue(
            RECOMPUTATION,
            f"{RECOMPUTATION} counts",
            self.lost_ms,
            None,
            f"rows{of if tables else ''} are counted {self.times} times{places}, and "
            "each time a later SQL execution computes them again",
            "Leave the counts out, or let observe() count the rows while they are written; if a count is "
            "needed before that, cache() or persist() what it counts.",
            evidence={"recomputation.times": self.times, "recomputation.what": "counted rows"},
        )

    def _add(self, counted: _Counted, lost_ms: int) -> None:
        self.times += 1
        # With a cache, only the longer of both would be left.
        self.lost_ms += lost_ms
        self.tables.update(dict.fromkeys(counted.tables[:_MOST_TABLES]))
        if counted.place and len(self.places) < MOST_PLACES:
            self.places[counted.place] = None


def _counted(plan: Node) -> Node | None:
    """Return what an execution only counts the rows of; None if it does something else."""
    if not plan.text.startswith(_COUNT):
        return None
    node, partial = plan, False
    while node.children and (node.name in _PASSED or not partial):
        (node, *others) = node.children
        if others or (not partial and node.name not in (*_PASSED, _AGGREGATE)):
            return None
        partial = partial or node.name == _AGGREGATE
        if node.name == _AGGREGATE:
            (node,) = node.children
    return node if partial else None


def _made(plan: Node) -> dict[int, _Rows]:
    """Return what the rows of each node are made of; a plan that is too large is left out."""
    nodes = list(plan.walk())
    made: dict[int, _Rows] = {}
    for node in nodes[::-1] if len(nodes) <= _MOST_NODES else ():
        below = [made[id(child)] for child in node.children if id(child) in made]
        elsewhere = node.name == IN_MEMORY or node.name in REUSED
        if elsewhere or node.name.startswith(OF_PROGRAM) or len(below) < len(node.children):
            continue
        made[id(node)] = _of(node, below)
    return made


def _of(node: Node, below: list[_Rows]) -> _Rows:
    if node.name in _PASSED and len(below) == 1:
        return below[0]
    if node.name == _FILTER and len(below) == 1:
        (rows,) = below
        conditions = rows.filters[0] | _conditions(node)
        return _Rows(rows.shape, (conditions, *rows.filters[1:]), rows.size + 1)
    digest = sha256("\n".join((*_described(node), *(rows.shape for rows in below))).encode(errors="replace"))
    filters = (frozenset[str](), *(conditions for rows in below for conditions in rows.filters))
    return _Rows(digest.hexdigest()[:16], filters, 1 + sum(rows.size for rows in below))


def _described(node: Node) -> list[str]:
    """Return what a node does, without its columns."""
    if not node.children:
        where = node.table() or without_ids(node.text)
        sizes = [str(node.metrics.get(name)) for name in FILES]
        return [where, node.metadata.get("Location", ""), *sizes]
    if node.name in EQUAL:
        kind = next((word for word in node.text.split(", ") if word[:1].isupper() and " " not in word), "")
        return ["Join", join_keys(node), kind]
    return [without_ids(node.text)]


def _conditions(node: Node) -> frozenset[str]:
    """Return the conditions of a filter; one of them is like no other if Spark's text of them is cut."""
    text = without_ids(node.text).removeprefix(f"{_FILTER} ")
    known = {part.strip("() ") for part in text.split(" AND ")}
    return frozenset(known if text.count("(") == text.count(")") else {*known, f"cut {id(node)}"})


def _has(rows: _Rows, counted: _Rows) -> bool:
    """Return whether rows are some of those that were counted."""
    same = rows.shape == counted.shape
    return same and all(map(frozenset.issuperset, rows.filters, counted.filters))
