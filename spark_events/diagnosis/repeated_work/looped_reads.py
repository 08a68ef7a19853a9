"""The rule about files that a loop in the driver reads again and again, each time for other rows.

The loop runs a query each time; or it builds one query out of many that differ in their filters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.join_keys import calls_light
from spark_events.diagnosis.plans.node import EXCHANGE, FILES, Node, columns, without_ids
from spark_events.diagnosis.plans.work_in_stage import WorkInStages, above
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
_AT = " at "
"""What is in a place that has a line of the user's code."""
_IS_THERE = re.compile(r"(?: AND )?isnotnull\([^()]*\)(?: AND )?", re.ASCII)
"""That a column has a value: Spark adds that to other conditions by itself."""
_COLUMNAR, _MOST_KEPT = ("Scan parquet", "Scan orc"), 0.5
"""Scans that leave out what statistics show not to be asked for; and which part of the rest filters keep."""
_PUTS_TOGETHER = ("Union", "WriteFiles", "Execute", "TakeOrderedAndProject")
"""How the names of nodes begin with which the rows of several scans come together in one stage."""
READ_AT = "recomputation.readAt"
"""The evidence of the place in the code whose jobs read the same table, each with another filter."""
READ_ONCE = (
    "Read it once: let one {job} take all rows that the loop wants (isin(), a join or a groupBy on {by}), or "
    "cache() it before the loop. Of a table that is partitioned by {by}, each time reads only its own rows."
)


@dataclass(slots=True)
class _Loop:
    """The reads of the same files for one place in the code, or by one query; times in ms.

    Attributes:
        table: that is read, or its path.
        by: the columns of the filters.
        files: how many it has, and how large they are, as a sentence says it.
        filters: digests of the conditions; of the one that has most, if these are queries.
        time_ms: how long all cores would take for that.
        in_query: whether these are all of one query.
    """

    place: str
    table: str
    by: str
    files: str
    filters: set[str] = field(default_factory=set)
    time_ms: int = 0
    in_query: bool = False


class LoopedReads:
    """Finds that a place in the code filters the same files again and again, each time by other values.

    So may one query, which such a loop has put together by ``union``, say.
    """

    def __init__(self) -> None:
        self._loops: dict[tuple[str, ...], _Loop] = {}

    def take(self, execution: EndedExecution, place: str) -> bool:
        """Called with each SQL execution that has ended; returns whether it is in a loop.

        Args:
            execution: it.
            place: in the user's code that it is for; empty if unknown.
        """
        filtered = filtered_scan(execution)
        if filtered is None:
            return self._take_query(execution, place)
        if not place or not execution.cores:
            return False
        scan, conditions = filtered
        by = ", ".join(columns(conditions))
        key = _loop_key(execution, place, scan, conditions)
        if key not in self._loops and len(self._loops) >= _MOST_LOOPS:
            return False
        loop = self._loops.setdefault(key, _Loop(place, scan.table(), by, files_of(scan)))
        digest = _digest(conditions)
        if digest in loop.filters or len(loop.filters) >= _MOST_FILTERS:
            return False  # that the same is computed again is told elsewhere
        loop.filters.add(digest)
        stages = [execution.stages[each] for each in scan.stages if each in execution.stages]
        loop.time_ms += sum(min(stage.wall_ms, stage.run_ms // execution.cores) for stage in stages)
        return len(loop.filters) >= _LEAST

    def _take_query(self, execution: EndedExecution, place: str) -> bool:
        """Take the scans of a query that differ in their filters; see ``take``."""
        groups = read_apart(execution)
        for scans in groups:
            scan, conditions = scans[0]
            by = ", ".join(columns(conditions))
            key = (place or f"from {execution.begun_ms}", by, *_files_key(scan))
            if key not in self._loops and len(self._loops) >= _MOST_LOOPS:
                continue
            where = place if _AT in place else _query(execution)
            loop = self._loops.setdefault(key, _Loop(where, scan.table(), by, files_of(scan), in_query=True))
            if len(scans) > len(loop.filters):  # other queries of the place may have other filters
                loop.filters = {_digest(each) for _, each in scans}
            stages = frozenset().union(*(each.stages for each, _ in scans))
            loop.time_ms += WorkInStages(execution).freed_ms(stages)
        return bool(groups)

    def holds(self, execution: EndedExecution, place: str) -> bool:
        """Return whether a place in the code has read the files of an execution with another filter, too."""
        filtered = filtered_scan(execution) if place else None
        loop = self._loops.get(_loop_key(execution, place, *filtered)) if filtered is not None else None
        return loop is not None and len(loop.filters) > 1

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
                f"{loop.place} reads {loop.table} ({loop.files}) {times:,} times"
                f"{' in one query' * (loop.in_query and _AT in loop.place)}, each time with another filter "
                f"on {loop.by}",
                READ_ONCE.format(job="query" if loop.in_query else "job", by=loop.by),
                evidence={
                    "recomputation.times": times,
                    "recomputation.cached": False,
                    "recomputation.what": f"rows of {loop.table}",
                    **({READ_AT: loop.place} if _AT in loop.place and not loop.in_query else {}),
                },
            )


def files_of(scan: Node) -> str:
    """Return how many files a scan has read, and how large these are, for a sentence."""
    number, total = (scan.metrics.get(name, 0) for name in FILES)
    return f"{number:,} file{'s' if number > 1 else ''}, {size(total)}"


def read_apart(execution: EndedExecution) -> list[list[tuple[Node, str]]]:
    """Return the scans of the same files in a query, each with another filter on the same columns.

    Returns:
        For each such table that is read five times at least, its scans and their conditions.
    """
    leaves = [node for node in execution.nodes() if not node.children and node.metrics.get(FILES[0])]
    if len(leaves) < _LEAST:
        return []
    by_files: defaultdict[tuple[str, ...], dict[str, tuple[Node, str]]] = defaultdict(dict)
    for scan in leaves:
        if not scan.table() or not scan.measured_in:
            continue
        conditions, only_filters = _conditions(scan)
        if (by := columns(conditions)) and only_filters:
            key = (*by, *_files_key(scan))
            by_files[key].setdefault(_digest(conditions), (scan, conditions))
    return [list(scans.values()) for scans in by_files.values() if len(scans) >= _LEAST]


def _conditions(scan: Node) -> tuple[str, bool]:
    """Return by what a scan's rows are filtered, and whether its stage does little more than that.

    Of columnar files that are sorted by it, each scan reads only a part.
    """
    conditions: list[str] = []
    is_columnar = scan.name.startswith(_COLUMNAR)
    for node in above(scan):
        if node.name.startswith(_PUTS_TOGETHER):
            break
        if node.name not in _LIGHT:
            return "", False
        if node.name == _FILTER:
            conditions.append(node.text)
            if is_columnar and _MOST_KEPT * (scan.rows or 0) < (node.rows or 0):
                return "", False
    return " ".join(conditions), True


def _query(execution: EndedExecution) -> str:
    written = ", ".join(execution.written()[:1])
    return f"one query, which writes {written}," if written else "one query"


def _files_key(scan: Node) -> tuple[str, ...]:
    return (
        scan.metadata.get("Location") or scan.table(),
        without_ids(scan.metadata.get("PartitionFilters", "")),
        *(str(scan.metrics.get(name)) for name in FILES),
    )


def _loop_key(execution: EndedExecution, place: str, scan: Node, conditions: str) -> tuple[str, ...]:
    """Return what tells a loop from others: its place, what it reads, by what, and what it does with that."""
    names = (node.name for node in execution.nodes())
    return place, ", ".join(columns(conditions)), *_files_key(scan), *names


def _digest(conditions: str) -> str:
    return sha256(without_ids(conditions).encode(errors="replace")).hexdigest()[:16]


def filtered_scan(execution: EndedExecution) -> tuple[Node, str] | None:
    """Return the only scan of an execution, of files, and the conditions by which its rows are filtered.

    None if it reads something else, or does more than that.
    """
    if len(execution.plans) != 1:
        return None
    nodes = list(execution.nodes())
    scan = nodes[-1]
    above = nodes[:-1]
    conditions = _IS_THERE.sub("", " ".join(node.text for node in above if node.name == _FILTER))
    if scan.children or not scan.metrics.get(FILES[0]) or not scan.table() or not columns(conditions):
        return None
    if any(node.name not in _LIGHT or len(node.children) != 1 for node in above):
        return None
    light = all(calls_light(node.text) for node in above if node.name == _PROJECT)
    return (scan, conditions) if light else None
