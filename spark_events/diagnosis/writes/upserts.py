"""The rule about tables that are written as a whole to replace a few of their rows by a join and a union."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import EQUAL, join_keys
from spark_events.diagnosis.plans.node import MOVES, WRITES_TABLE, Node, items
from spark_events.diagnosis.plans.work_in_stage import over
from spark_events.diagnosis.thresholds import REWRITE, Thresholds

_LEAST_RATIO = 10
_PASSES = ("Project", "Filter", *MOVES)
_DROPS_MATCHES = ", LeftAnti"
_AS_IT_IS = re.compile(r"(?:cast\()?[\w.]+#\d+L?(?: as [\w(),<>: ]+\))?(?: AS [\w.]+#\d+L?)?$", re.ASCII)
"""A column of a table, perhaps with another type and name."""


def upserts(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each write of a union of new rows with those of a table whose keys these do not have."""
    for union in execution.nodes():
        if union.name != "Union" or len(union.children) < 2 or _written(union) is None:
            continue
        for child in union.children:
            join = _way(child)[-1]
            if join.name not in EQUAL or _DROPS_MATCHES not in join.text or not child.rows:
                continue
            others = [other for other in union.children if other is not child]
            new = sum(other.rows or 0 for other in others)
            is_large = child.rows >= max(_LEAST_RATIO * new, thresholds.explosion_rows)
            if new and is_large and _are_as_read(child, join) and _are_of_same(join.children[1], others, new):
                yield _issue(union, join, child.rows, new, execution)
                break


def _are_as_read(child: Node, join: Node) -> bool:
    """Return whether a side of a union has rows of a table as they are there, but for types of columns."""
    way = [*_way(child)[:-1], *_way(join.children[0])]
    made = [items(node.text)[: -1 if node.is_cut else None] for node in way if node.name == "Project"]
    return not way[-1].children and all(_AS_IT_IS.match(item.strip()) for each in made for item in each)


def _way(node: Node) -> list[Node]:
    """Return the nodes that filter and move a node's rows, or compute their columns, and what makes them."""
    way = [node]
    while node.name in _PASSES and len(node.children) == 1:
        node = node.children[0]
        way.append(node)
    return way


def _written(union: Node) -> Node | None:
    """Return the write of a union's rows; None if something else is made of them."""
    above = over(union, ("Project", "Filter", "WriteFiles"))
    return above if above is not None and above.name.startswith(WRITES_TABLE) else None


def _are_of_same(keys: Node, others: list[Node], new: int) -> bool:
    """Return whether the keys that are left out are those of the new rows: as far as one can see, by what
    they are read from, and by how many there are, since several rows may have one key.
    """
    sources = {table for other in others for table in other.tables()}
    return set(keys.tables()) == sources and 0 < (keys.rows or 0) <= new


def _issue(union: Node, join: Node, kept: int, new: int, execution: EndedExecution) -> Issue:
    (of, *_), written = join.children[0].tables() or [""], _written(union)
    into = written.table() if written is not None else ""
    stages = frozenset().union(union.stages, *(node.stages for node in join.children[0].walk()))
    return Issue(
        REWRITE,
        f"{REWRITE} {into or of}",
        None,
        None,
        f"{kept:,} rows{f' of {of}' if of else ''} are written again{f' to {into}' if into else ''} as they "
        f"are, to replace or add {new:,}, by {join_keys(join)}",
        "Read and write only the partitions that have such rows: filter by the partition column, and write "
        "with spark.sql.sources.partitionOverwriteMode=dynamic. Or keep the table as Delta Lake or Iceberg, "
        "whose MERGE writes only files that have such rows.",
        evidence={"rewrite.copiedRows": kept, "rewrite.changedRows": new, "rewrite.table": into or of},
        share_ms=execution.wall_ms(stages) * kept // (kept + new),
        stages=stages,
    )
