"""The rule about files that a loop in the driver reads again and again, each time for other rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import calls_light
from spark_events.diagnosis.plans.node import EXCHANGE, FILES, Node, columns, without_ids
from spark_events.diagnosis.thresholds import RECOMPUTATION

_FILTER, _PROJECT = "Filter", "Project"
_LIGHT = (
    _FILTER,
    _PROJECT,
    EXCHANGE,
    "AQEShuffleRead",
    "HashAggregate",
    "ObjectHashAggregate",
    "SortAggregate",
    "CollectLimit",
    "LocalLimit",
    "GlobalLimit",
)
"""Nodes that take little besides reading, for the few rows that a filter keeps."""
_LEAST, _MOST_LOOPS, _MOST_FILTERS = 5, 1_000, 10_000


@dataclass(slots=True)
class _Loop:
    """The reads of the same files for one place in the code; times in ms.

    Attributes:
        table: that is read, or its path.
        by: the columns of the filters.
        files: how many it has, and how large they are, as a sentence says it.
        filters: digests of the conditions.
        time_ms: how long all cores would take for that.
    """

    place: str
    table: str
    by: str
    files: str
    filters: set[str] = field(default_factory=set)
    time_ms: int = 0


class LoopedReads:
    """Finds that a place in the code filters the same files again and again, each time by other values."""

    def __init__(self) -> None:
        self._loops: dict[tuple[str, ...], _Loop] = {}

    def take(self, execution: EndedExecution, place: str) -> bool:
        """Called with each SQL execution that has ended; returns whether it is in a loop.

        Args:
            execution: it.
            place: in the user's code that it is for; empty if unknown.
        """
        filtered = filtered_scan(execution)
        if filtered is None or not place or not execution.cores:
            return False
        scan, conditions = filtered
        by = ", ".join(columns(conditions))
        key = (
            place,
            by,
            scan.metadata.get("Location") or scan.table(),
            without_ids(scan.metadata.get("PartitionFilters", "")),
            *(str(scan.metrics.get(name)) for name in FILES),
            *(node.name for node in execution.nodes()),
        )
        if key not in self._loops and len(self._loops) >= _MOST_LOOPS:
            return False
        loop = self._loops.setdefault(key, _Loop(place, scan.table(), by, files_of(scan)))
        digest = sha256(without_ids(conditions).encode(errors="replace")).hexdigest()[:16]
        if digest in loop.filters or len(loop.filters) >= _MOST_FILTERS:
            return False  # that the same is computed again is told elsewhere
        loop.filters.add(digest)
        stages = [execution.stages[each] for each in scan.stages if each in execution.stages]
        loop.time_ms += sum(min(stage.wall_ms, stage.run_ms // execution.cores) for stage in stages)
        return len(loop.filters) >= _LEAST

    def issues(self) -> Iterator[Issue]:
        """Yield what each loop has cost so far: all reads but one."""
        for key, loop in self._loops.items():
            times = len(loop.filters)
            if times < _LEAST:
                continue
            digest = sha256("\n".join(key).encode(errors="replace")).hexdigest()[:16]
            yield Issue(
                RECOMPUTATION,
                f"{RECOMPUTATION} {digest}",
                loop.time_ms * (times - 1) // times,
                None,
                f"{loop.place} reads {loop.table} ({loop.files}) {times:,} times, each time with another "
                f"filter on {loop.by}",
                "Read it once: let one job take all rows that the loop wants (isin(), a join or a groupBy on "
                f"{loop.by}), or cache() it before the loop. Of a table that is partitioned by {loop.by}, "
                "each time reads only its own rows.",
                evidence={
                    "recomputation.times": times,
                    "recomputation.cached": False,
                    "recomputation.what": f"rows of {loop.table}",
                },
            )


def files_of(scan: Node) -> str:
    """Return how many files a scan has read, and how large these are, for a sentence."""
    number, total = (scan.metrics.get(name, 0) for name in FILES)
    return f"{number:,} file{'s' if number > 1 else ''}, {size(total)}"


def filtered_scan(execution: EndedExecution) -> tuple[Node, str] | None:
    """Return the only scan of an execution, of files, and the conditions by which its rows are filtered.

    None if it reads something else, or does more than that.
    """
    if len(execution.plans) != 1:
        return None
    nodes = list(execution.nodes())
    scan = nodes[-1]
    above = nodes[:-1]
    conditions = " ".join(node.text for node in above if node.name == _FILTER)
    if scan.children or not scan.metrics.get(FILES[0]) or not scan.table() or not columns(conditions):
        return None
    if any(node.name not in _LIGHT or len(node.children) != 1 for node in above):
        return None
    light = all(calls_light(node.text) for node in above if node.name == _PROJECT)
    return (scan, conditions) if light else None
