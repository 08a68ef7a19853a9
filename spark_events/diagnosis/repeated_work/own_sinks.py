"""The rule about micro-batches that read all of the table that they write, for few rows that have come."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.costly_nodes.scans import EXISTS, PARTITIONS, filter_above, prunes
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import FILES, WRITES_TABLE, Node, columns
from spark_events.diagnosis.repeated_work.batches import batch_scans
from spark_events.diagnosis.thresholds import RECOMPUTATION

_TIMES_AS_MANY, _LEAST_ROWS = 20, 100_000
"""So many times as many rows as the micro-batch has, and so many at all, are read of its sink."""
_APPENDS = ", Append"
_WRITTEN_PARTITIONS, _MOST_NEEDED = "number of dynamic part", 0.5
"""If a micro-batch writes into more of the partitions that it reads, leaving out others helps little."""
_PARTITIONED_BY = re.compile(r"^Execute \S+ \S+, (?:true|false), \[([^\]]+)\]", re.ASCII)
_KEEP_LESS = (
    "It takes longer with each micro-batch. To drop duplicates, let the query keep what it has seen "
    "(dropDuplicatesWithinWatermark, with a watermark); or write to a table that finds rows by key (MERGE "
    "into Delta or Iceberg)."
)


def own_sink_reads(execution: EndedExecution) -> Iterator[Issue]:
    """Yield each scan of all files of a table that a micro-batch writes, too.

    Where the table is partitioned, a filter would leave out the partitions that the micro-batch does not
    write; else nobody knows how much less would do.

    Args:
        execution: of a micro-batch, with the plans of all actions in it.
    """
    of_batch = batch_scans(execution)
    nodes = list(execution.nodes())
    came = max((node.rows or 0 for node in nodes if node.text in of_batch), default=0)
    writes = {node.table(): node for node in nodes if node.name.startswith(WRITES_TABLE) and node.table()}
    for scan in nodes:
        rows, write = scan.rows or 0, writes.get(scan.table())
        is_whole = not scan.children and scan.metrics.get(FILES[0]) and not _leaves_out(scan)
        if write is None or not is_whole or _APPENDS not in write.text or not came:
            continue  # who writes all of it again has read it for that
        if rows >= max(_LEAST_ROWS, _TIMES_AS_MANY * came):
            yield _issue(scan, write, came, execution)


def _leaves_out(scan: Node) -> bool:
    """Return whether a condition leaves out partitions, or rows: of these, readers leave out some as well."""
    filtered = filter_above(scan)
    return prunes(scan) or (filtered is not None and bool(columns(EXISTS.sub("", filtered.text))))


def _issue(scan: Node, write: Node, came: int, execution: EndedExecution) -> Issue:
    table, rows, stages = scan.table(), scan.rows or 0, _stages_of(scan)
    partitioned = _PARTITIONED_BY.search(write.text)
    written, read = write.metrics.get(_WRITTEN_PARTITIONS, 0), scan.metrics.get(PARTITIONS, 0)
    needed = max(came / rows, written / read) if partitioned and written and read else came / rows
    by = ", ".join(columns(partitioned[1])) if partitioned and needed <= _MOST_NEEDED else ""
    cost_ms = round(execution.wall_ms(stages) * (1 - min(needed, 1)))
    first = (
        f"Compare {by}, by which the table is partitioned, with what the micro-batch has of it, so that "
        "other partitions are left out. "
        if by
        else ""
    )
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} sink {table}",
        cost_ms if by else None,
        None,
        f"a micro-batch reads all {rows:,} rows of {table}, which it writes as well, for {came:,} new ones",
        f"{first}{_KEEP_LESS}",
        evidence={
            "recomputation.times": 1,
            "recomputation.cached": False,
            "recomputation.what": f"the rows of {table}",
        },
        share_ms=None if by else cost_ms,
        stages=stages,
    )


def _stages_of(scan: Node) -> frozenset[int]:
    """Return the stages in which the rows of a scan are read, moved, sorted, and joined with others."""
    stages, node = scan.stages, scan.parent
    while node is not None:
        stages |= node.stages
        if len(node.children) > 1:
            break
        node = node.parent
    return stages
