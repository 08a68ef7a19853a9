"""The rule about a filter that comes after ``dropDuplicates``, and drops most of what that has kept."""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.diagnosis.costly_nodes.dropped_duplicates import dropped_by
from spark_events.diagnosis.costly_nodes.no_duplicates import next_aggregate
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import calls_light, of_tables
from spark_events.diagnosis.plans.node import AGGREGATES, Node, columns, first_of, items
from spark_events.diagnosis.plans.work_in_stage import (
    SCAN_TIME,
    above,
    freed_besides_ms,
    is_accounted_for,
    is_light,
    over,
)
from spark_events.diagnosis.thresholds import LATE_FILTER, Thresholds

_KEPT = 5
"""One row of so many, at most, is left by a filter that comes late."""
_MOST_NAMES = 4
_PASSES_FILTERS = ("Project", "Filter")
"""Nodes before which Spark moves a filter that comes after them."""


def late_filters(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each filter for the few rows of all those that were compared for duplicates before.

    Spark moves a filter before ``dropDuplicates`` only where it is about the columns that are compared:
    otherwise, other rows of the same keys might be kept.
    """
    for node in execution.nodes():
        kept = over(node, ("Project",)) if node.name in AGGREGATES else None
        keys = dropped_by(node) if kept is not None and kept.name == "Filter" else ""
        if kept is None or not keys:
            continue
        rows, left = node.rows or 0, kept.rows
        # What asks for no other column is by chance, rand() say: it would keep others if it came first.
        asked = [name for name in columns(kept.text) if name not in columns(keys)]
        if asked and rows >= thresholds.explosion_rows and left is not None and left * _KEPT <= rows:
            yield _issue(node, kept, keys, asked, execution)


def _issue(node: Node, kept: Node, keys: str, asked: list[str], execution: EndedExecution) -> Issue:
    rows, left = node.rows or 0, kept.rows or 0
    partial = next_aggregate(node) or node
    read = (partial.children[0].rows if partial.children else None) or rows
    by = first_of(columns(keys), _MOST_NAMES)
    stages = node.stages | partial.stages
    below = list(partial.within_stage())[1:]
    others = [*above(kept), *(each for each in below if each.name not in _PASSES_FILTERS)]
    lost_ms = round(freed_besides_ms(execution, stages, others) * (1 - left / rows))
    is_known = all(map(is_accounted_for, others)) and is_light(kept) and _is_quick_to_ask(asked, below)
    return Issue(
        LATE_FILTER,
        f"{LATE_FILTER} {by}",
        lost_ms if is_known else None,
        None,
        f"looks for duplicates by {by} among {read:,} rows{of_tables(node.tables())}, and a filter "
        f"on {first_of(asked, _MOST_NAMES)} then drops all but {left:,} of the {rows:,} that are left",
        f"Filter before dropDuplicates(), where rows with the same {by} agree on what the filter asks for, "
        "or any of them will do. Spark does not do it by itself, because another one of them may be kept.",
        evidence={
            "lateFilter.rows": rows,
            "lateFilter.keptRows": left,
            "lateFilter.columns": ", ".join(asked),
            "lateFilter.stages": ", ".join(map(str, sorted(stages))),
        },
        share_ms=None if is_known else lost_ms,
        stages=stages,
    )


def _is_quick_to_ask(asked: list[str], below: list[Node]) -> bool:
    """Return whether a filter that comes first needs no more of all rows than to read them, as measured."""
    reads = [node for node in below if not node.children and node.name != "Range"]
    projects = [node for node in below if node.name == "Project"]
    if any(SCAN_TIME not in node.metrics for node in reads) or any(node.is_cut for node in projects):
        return False
    made = (item for node in projects for item in items(node.text))
    return all(calls_light(item) for item in made if columns(item)[-1:] and columns(item)[-1] in asked)
