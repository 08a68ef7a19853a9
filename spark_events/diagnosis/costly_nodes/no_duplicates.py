"""The rule about duplicates that are looked for among rows of which none repeats: by DISTINCT, say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import AGGREGATES, CUT, MOVES, ROWS, Node, columns, first_of
from spark_events.diagnosis.plans.work_in_stage import (
    WorkInStages,
    above,
    freed_besides_ms,
    is_accounted_for,
    measured_ms,
    over,
)
from spark_events.diagnosis.thresholds import NO_DUPLICATES, Thresholds

_BY = re.compile(r"\(keys?=\[(.+)\], functions=\[(.*?)\]", re.ASCII | re.DOTALL)
_FIRST = re.compile(r"^(?:(?:partial_|merge_)?first\([^()]*\)(?:, |$))*$", re.ASCII)
"""How Spark keeps the other columns of ``dropDuplicates``."""
_COUNTED = "distinct "
"""What is in the functions that count distinct values: the rows below them are not the result."""
_MARKS = {"gid", "spark_grouping_id"}
_MOST_NAMES = 4


def no_duplicates(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each search for duplicates that drops no row.

    ``share_ms`` is the time of the stages that compare the rows and that write them for it, but for what else
    these are known to do.
    """
    for node in execution.nodes():
        partial = next_aggregate(node) if node.name in AGGREGATES else None
        if partial is None or len(partial.children) != 1:
            continue
        rows, of = node.metrics.get(ROWS) or 0, partial.children[0].rows
        by = _keys(node)
        if rows != of or rows < thresholds.explosion_rows or not by or not _keys(partial):
            continue
        if _is_counted(node) or _is_of_sets(partial.children[0]):
            continue
        others = (*above(node), *(each for each in node.within_stage() if each not in (node, partial)))
        compared_ms = freed_besides_ms(execution, node.stages, others) + _written_ms(partial, node, execution)
        tables = first_of(node.tables(), _MOST_NAMES)
        yield Issue(
            NO_DUPLICATES,
            f"{NO_DUPLICATES} {by}",
            None,
            None,
            f"looks for duplicates by {by} among {rows:,} rows{f' of {tables}' if tables else ''}, and finds "
            "none",
            "DISTINCT, dropDuplicates() and UNION move all rows to compare them. Leave that out where rows "
            "cannot repeat: UNION ALL, joins that find one row each, a key that is unique in its table.",
            evidence={
                "duplicates.rows": rows,
                "duplicates.columns": by,
                "duplicates.stages": ", ".join(map(str, sorted(node.stages | partial.stages))),
            },
            share_ms=round(compared_ms),
            stages=node.stages | partial.stages,
        )


def _written_ms(partial: Node, node: Node, execution: EndedExecution) -> float:
    """Return how long rows are compared before their shuffle, and written for it, in ms.

    If nobody knows how long it takes to make them, that is what is measured: to sort and to write them.
    """
    stages = partial.stages - node.stages
    makes = [each for each in partial.children[0].within_stage() if each is not _sort_of(partial)]
    if all(map(is_accounted_for, makes)):
        return freed_besides_ms(execution, stages, makes)
    freed_ms = WorkInStages(execution).freed_ms(stages)
    ended = [execution.stages[stage] for stage in stages & execution.stages.keys()]
    run_ms = sum(stage.run_ms for stage in ended)
    sort_ms = measured_ms(filter(None, [_sort_of(partial)]))
    own_ms = sort_ms + sum(stage.shuffle_write_ms for stage in ended)
    return freed_ms * min(own_ms, run_ms) / run_ms if run_ms else 0.0


def _sort_of(aggregate: Node) -> Node | None:
    """Return the sort that an aggregate needs; None if it needs none."""
    return aggregate.children[0] if aggregate.children[0].name == "Sort" else None


def next_aggregate(node: Node) -> Node | None:
    """Return the aggregate whose rows another one merges."""
    below = node.children
    while len(below) == 1 and below[0].name in (*MOVES, "Project"):
        below = below[0].children
    return below[0] if len(below) == 1 and below[0].name in AGGREGATES else None


def _keys(node: Node) -> str:
    """Return by which columns an aggregate keeps one row each; empty if it does more, or its text is cut."""
    match = _BY.search(node.text)
    if match is None or CUT in node.text or not _FIRST.match(match[2]):
        return ""
    names = columns(match[1])
    return "" if _MARKS.intersection(names) else first_of(names, _MOST_NAMES)


def _is_of_sets(node: Node) -> bool:
    """Return whether rows come from INTERSECT or EXCEPT, or from a join that is planned as these are."""
    while node.name in ("Project", "Filter", "Sort") and len(node.children) == 1:
        node = node.children[0]
    return any(kind in node.text for kind in ("LeftSemi", "LeftAnti"))


def _is_counted(node: Node) -> bool:
    """Return whether what is left of rows is counted: that has to find out whether there are duplicates."""
    above = over(node, ("Project",))
    return above is not None and above.name in AGGREGATES and _COUNTED in above.text
