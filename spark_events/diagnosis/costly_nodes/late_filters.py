"""The rule about a filter that comes after ``dropDuplicates``, and drops most of what that has kept."""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.diagnosis.costly_nodes.dropped_duplicates import dropped_by
from spark_events.diagnosis.costly_nodes.no_duplicates import next_aggregate
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import of_tables
from spark_events.diagnosis.plans.node import AGGREGATES, Node, columns, first_of
from spark_events.diagnosis.plans.work_in_stage import above, freed_besides_ms, is_accounted_for, over
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
        if rows >= thresholds.explosion_rows and left is not None and left * _KEPT <= rows:
            yield _issue(node, kept, keys, execution)


def _issue(node: Node, kept: Node, keys: str, execution: EndedExecution) -> Issue:
    rows, left = node.rows or 0, kept.rows or 0
    partial = next_aggregate(node) or node
    read = (partial.children[0].rows if partial.children else None) or rows
    by = first_of(columns(keys), _MOST_NAMES)
    of = [name for name in columns(kept.text) if name not in columns(keys)]
    stages = node.stages | partial.stages
    below = list(partial.within_stage())[1:]
    others = [*above(kept), *(each for each in below if each.name not in _PASSES_FILTERS)]
    lost_ms = round(freed_besides_ms(execution, stages, others) * (1 - left / rows))
    is_known = all(map(is_accounted_for, others))
    condition = f"a filter on {first_of(of, _MOST_NAMES)}" if of else "a filter"
    return Issue(
        LATE_FILTER,
        f"{LATE_FILTER} {by}",
        lost_ms if is_known else None,
        None,
        f"looks for duplicates by {by} among {read:,} rows{of_tables(node.tables())}, and {condition} then "
        f"drops all but {left:,} of the {rows:,} that are left",
        f"Filter before dropDuplicates(), where rows with the same {by} agree on what the filter asks for, "
        "or any of them will do. Spark does not do it by itself, because another one of them may be kept.",
        evidence={
            "lateFilter.rows": rows,
            "lateFilter.keptRows": left,
            "lateFilter.columns": ", ".join(of),
            "lateFilter.stages": ", ".join(map(str, sorted(stages))),
        },
        share_ms=None if is_known else lost_ms,
        stages=stages,
    )
