"""The rule about tables of files of which a few rows change: whole files are written anew."""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.thresholds import REWRITE, Thresholds

COPIED = ("number of rows copied.", "number of rows copied", "number of target rows rewritten unmodified")
CHANGED = (
    "number of rows updated.",
    "number of rows deleted.",
    "number of updated rows",
    "number of deleted rows",
    "number of inserted rows",
)
REWRITE_MS = ("time taken to rewrite the matched files",)
"""Metrics of Delta Lake's UPDATE, DELETE and MERGE."""
_LEAST_RATIO = 10


def rewrites(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each command that copied many more rows than it changed."""
    for node in execution.nodes():
        copied, changed = _sum(node, COPIED), _sum(node, CHANGED)
        if not changed or copied < _LEAST_RATIO * changed:  # no measurement is none
            continue
        table = node.table()
        lost_ms = (_sum(node, REWRITE_MS) or execution.lasted_ms) * copied // (copied + changed)
        yield Issue(
            REWRITE,
            f"{REWRITE} {table}",
            lost_ms,
            None,
            f"{copied:,} rows{f' of {table}' if table else ''} are written again, to change {changed:,}: "
            "they are in the same files",
            "Let deletion vectors say which rows are gone (delta.enableDeletionVectors=true), collect "
            "changes and apply them together, or cluster the table by what the changes ask for.",
            evidence={"rewrite.copiedRows": copied, "rewrite.changedRows": changed, "rewrite.table": table},
        )


def _sum(node: Node, names: tuple[str, ...]) -> int:
    return sum(node.metrics.get(name, 0) for name in names)
