"""The rule about filters that convert a column, so that readers of Parquet and ORC cannot apply them.

Spark hands a comparison of a column with a constant to the reader, which leaves out the groups of rows whose
statistics say that none of them matches. It does not hand on ``cast(line_id as bigint) = 300``, which is what
``line_id = 300`` means where the column is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.costly_nodes.scans import EXISTS, filter_above, full_scans
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.plans.work_in_stage import (
    SCAN_TIME,
    USUAL_FOR_A_ROW_US,
    above,
    is_accounted_for,
    measured_ms,
    tasks_time,
)
from spark_events.diagnosis.thresholds import FULL_SCAN, Thresholds

_HAVE_STATISTICS = ("Scan parquet", "Scan orc")
_LEAST_ROWS = 100_000
_CONVERTED = re.compile(
    r"cast\(([\w.]+)#\d+L? as (\w+(?:\(\d+,\d+\))?)\) (=|IN|[<>]=?) (\([^()#]*\)|[^()#]+?)(?=\)| AND|$)",
    re.ASCII,
)
_BY_VALUES = ("=", "IN")
_LONGEST_CONSTANT = 40


def cast_filters(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each scan of which a filter keeps few rows, if it converts a column before it compares it."""
    for scan in execution.nodes():
        read = scan.rows or 0
        if not scan.name.startswith(_HAVE_STATISTICS) or read < _LEAST_ROWS:
            continue
        filtered = filter_above(scan)
        kept = filtered.rows if filtered is not None else None
        if filtered is None or kept is None or kept > thresholds.scan_kept * read:
            continue
        converted = _only_conversion(filtered)
        if converted is not None and not _reads_all_partitions(scan, execution, thresholds):
            yield _issue(scan, filtered, kept, converted, execution)


def _only_conversion(filtered: Node) -> re.Match[str] | None:
    """Return the first comparison of a converted column; None if there are others: nobody knows which drops.

    A further condition may also be in the part of a text that is cut off.
    """
    rest = _CONVERTED.sub("", EXISTS.sub("", filtered.text.partition(" ")[2]))
    is_only = not filtered.is_cut and not rest.replace("AND", "").strip("() ")
    return _CONVERTED.search(filtered.text) if is_only else None


def _reads_all_partitions(scan: Node, execution: EndedExecution, thresholds: Thresholds) -> bool:
    """Return whether another rule tells of a scan that partitions should be left out first."""
    return any(scan.stages & issue.stages for issue in full_scans(execution, thresholds))


def _issue(
    scan: Node, filtered: Node, kept: int, converted: re.Match[str], execution: EndedExecution
) -> Issue:
    column, to_type, compares, constant = converted.groups()
    table, read = scan.table(), scan.rows or 0
    share = _share_of(scan, filtered, kept, execution)
    shown = constant if len(constant) <= _LONGEST_CONSTANT else f"{constant[:_LONGEST_CONSTANT]}…"
    condition = f"cast({column} as {to_type}) {compares} {shown}"
    of_its_type = (
        f"Compare {column} with constants of its own type, in quotation marks if it is a text, or write"
        if compares in _BY_VALUES
        else "Write"
    )
    return Issue(
        FULL_SCAN,
        f"{FULL_SCAN} {table} {column}",
        None,
        None,
        f"reads all {read:,} rows{f' of {table}' if table else ''}, of which the filter on {column} keeps "
        f"{kept:,}: it converts {column} for each row ({condition}), so no reader can apply it",
        f"{of_its_type} {column} as {to_type} into the table: then readers skip files and groups of rows "
        f"whose statistics say that none matches. That helps where these differ in {column}, as in a table "
        "that is sorted by it.",
        evidence={"scan.rows": read, "scan.keptRows": kept, "scan.table": table, "scan.column": column},
        stages=scan.stages,
        share_ms=int(execution.wall_ms(scan.stages) * share * (read - kept) / read),
    )


def _share_of(scan: Node, filtered: Node, kept: int, execution: EndedExecution) -> float:
    """Return which part of the time of its stages a scan takes, with the filter, as far as that is known.

    Spark measures the scan alone. The rest is the filter's, too, but for what the rows that it keeps take at
    most, unless something else there takes long.
    """
    run_ms, _ = tasks_time(scan, execution)
    if not run_ms:
        return 1.0
    own_ms, others = scan.metrics.get(SCAN_TIME, run_ms), list(above(filtered))
    if all(is_accounted_for(other) for other in others):
        of_kept_ms = len(others) * kept * USUAL_FOR_A_ROW_US // 1_000
        own_ms = max(own_ms, run_ms - measured_ms(others) - of_kept_ms)
    return min(1.0, own_ms / run_ms)
