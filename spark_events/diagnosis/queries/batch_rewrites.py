"""The rule about ``foreachBatch`` that writes a table again to add the few rows of a micro-batch to it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from spark_events.diagnosis.costly_nodes.scans import prunes
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import OF_PROGRAM, Node
from spark_events.diagnosis.repeated_work.batches import batch_scans
from spark_events.diagnosis.thresholds import REWRITE

_LEAST_BATCHES, _LEAST_RATIO = 3, 20
"""So many micro-batches each write so many times as many rows of a table as they have rows of their own."""
_WRITES = (
    "Execute InsertInto",
    "Execute CreateDataSourceTableAsSelect",
    "Overwrite",
    "ReplaceTable",
    "AtomicReplaceTable",
)
_APPENDS = ", Append,"
_SCANS = ("Scan ", "BatchScan ")
_JOINS = ("Join", "CartesianProduct")
_KEEP_LEFT = (", LeftOuter", ", FullOuter", ", LeftAnti", ", ExistenceJoin")
_KEEP_RIGHT = (", RightOuter", ", FullOuter")
"""The joins out of which rows of a side come that have no match on the other one."""


@dataclass(frozen=True, slots=True)
class _Copied:
    """The rows of a table that one action reads, and writes with those of the batch.

    Attributes:
        rows: how many of them are written.
        of_rows: how many are written in all.
        table: of which they are, as the scan names it.
        stages: in which they are.
    """

    rows: int
    of_rows: int
    table: str
    stages: frozenset[int]


class BatchRewrites:
    """Finds that each micro-batch reads a table and writes it again, for a few rows of its own."""

    def __init__(self) -> None:
        self._batches = self._lost_ms = self._copied = self._own = 0
        self._tables: list[str] = []

    def take(self, execution: EndedExecution, parts_ms: int) -> int:
        """Called with the SQL execution of each micro-batch; returns what copied rows cost in it, in ms.

        Args:
            execution: with the plans of all actions in it.
            parts_ms: how long these took; 0 if unknown.
        """
        own = _rows_of_batch(execution)
        copies = [] if own is None else list(_copies(execution, _LEAST_RATIO * max(1, own)))
        if not copies:
            return 0
        most = max(copies, key=lambda each: each.rows)
        self._batches += 1
        self._copied, self._own = most.rows, own or 0
        self._tables = [*self._tables[:1], most.table]
        lost_ms = sum(_cost_ms(each, execution, parts_ms) for each in copies)
        self._lost_ms += lost_ms
        return lost_ms

    def issue(self) -> Issue | None:
        """Return what that has cost so far; None if too few micro-batches did so."""
        if self._batches < _LEAST_BATCHES:
            return None
        table = _common(self._tables)
        return Issue(
            REWRITE,
            f"{REWRITE} batch",
            self._lost_ms,
            None,
            f"{self._batches:,} micro-batches each read a table and write it again, the latest "
            f"{self._copied:,} rows{f' of {table}' if table else ''}, for {self._own:,} rows of its own",
            "MERGE the batch into a table of Delta Lake or Iceberg, write only the partitions concerned "
            "(spark.sql.sources.partitionOverwriteMode=dynamic), or append its rows and remove duplicates "
            "later.",
            evidence={
                "rewrite.copiedRows": self._copied,
                "rewrite.changedRows": self._own,
                "rewrite.table": table,
                "rewrite.batches": self._batches,
            },
        )


def _rows_of_batch(execution: EndedExecution) -> int | None:
    """Return how many rows actions got of the batch; None if none of them got it, or nobody has counted."""
    texts = batch_scans(execution)
    nodes = (node for plan in execution.plans[1:] for node in plan.walk())
    return max((node.rows for node in nodes if node.text in texts and node.rows is not None), default=None)


def _copies(execution: EndedExecution, least: int) -> Iterator[_Copied]:
    """Yield what each action of a micro-batch has copied, if it is so many rows at least."""
    batch, staged = batch_scans(execution), set[str]()
    for plan in execution.plans[1:]:
        if not plan.name.startswith(_WRITES) or _APPENDS in plan.text:
            continue
        scans = list(_table_scans(plan))
        if not _contains(plan, batch):  # what was written aside is read, and written to its place
            scans = [scan for scan in scans if scan.table() in staged]
        copied = [_copied(scan, plan, batch) for scan in scans]
        most = max(copied, key=lambda each: each.rows, default=None)
        if most is not None and most.rows >= least:
            yield most
            staged.add(plan.table())


def _table_scans(plan: Node) -> Iterator[Node]:
    """Yield the scans of tables below a write, but for those that make the batch."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.name.startswith(OF_PROGRAM):
            continue
        if node.name.startswith(_SCANS) and node.table() and not prunes(node):
            yield node
        waiting += node.children


def _copied(scan: Node, write: Node, batch: Collection[str]) -> _Copied:
    """Return how many rows of a scan reach the write above it: not those that it only looks up.

    A join with the batch copies a table only if rows come out that have no match: else their number follows
    from the batch, as with a lookup that finds many rows for each of its own.
    """
    rows, stages, node = scan.rows or 0, set(scan.stages), scan
    while (above := node.parent) is not None:
        if above.name.endswith(_JOINS) and not _keeps(above, node, batch):
            rows = 0
        rows = rows if above.rows is None else min(rows, above.rows)
        stages |= above.measured_in
        node = above
    return _Copied(rows, write.rows or rows, scan.table(), frozenset(stages))


def _keeps(join: Node, side: Node, batch: Collection[str]) -> bool:
    """Return whether rows of one side come out of a join, whether or not the batch has a match for them."""
    if not any(_contains(other, batch) for other in join.children if other is not side):
        return True
    kept = _KEEP_LEFT if join.children[0] is side else _KEEP_RIGHT
    return any(kind in join.text for kind in kept)


def _contains(node: Node, texts: Collection[str]) -> bool:
    return any(each.text in texts for each in node.walk())


def _cost_ms(copied: _Copied, execution: EndedExecution, parts_ms: int) -> int:
    """Return the part of the actions' time that is for copied rows: by stages, and there by rows."""
    all_stages = {stage for plan in execution.plans for node in plan.walk() for stage in node.measured_in}
    all_ms = execution.wall_ms(all_stages)
    share = min(1.0, execution.wall_ms(copied.stages) / all_ms) if all_ms else 0.0
    return int((parts_ms or all_ms) * share * copied.rows / max(1, copied.of_rows, copied.rows))


def _common(tables: list[str]) -> str:
    """Return the table's name, or the folder of all of them, if each batch writes to another place."""
    if not all(tables):
        return ""
    if len(set(tables)) == 1:
        return tables[0]
    folder = posixpath.commonprefix(tables).rpartition("/")[0]
    return f"{folder}/…" if folder else tables[-1]
