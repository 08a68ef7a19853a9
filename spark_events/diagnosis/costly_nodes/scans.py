"""The rules about what is read: whole tables for few rows, and files that one task has to read alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node, columns, items
from spark_events.diagnosis.thresholds import FULL_SCAN, Thresholds

PARTITIONS = "number of partitions read"
_IN_PYTHON = ("ArrowEvalPython", "BatchEvalPython")
_RETURNED = re.compile(r"pythonUDF\d+#\d+", re.ASCII)
"""How Spark names what a function in Python returns."""
_TEXTS, _MANY_PARTITIONS = ("Scan json", "Scan csv", "Scan xml"), 5
_TIME = re.compile(r" (?:[<>]=?|=|IN) \(?\d{4}-\d\d-\d\d", re.ASCII)
"""How a filter compares with a day, or a moment of one."""
_FEW_OF_A_TIME = 0.5
_SCHEMA, _OUTPUT = (
    re.compile(r"ReadSchema: struct<(.*)>$", re.ASCII),
    re.compile(r"^[^\[]*\[([^\]]*)\]", re.ASCII),
)
_FIELD, EXISTS = re.compile(r"(?:^|,)([\w.]+):", re.ASCII), re.compile(r"isnotnull\([^()]*\)", re.ASCII)
_OF_FILES = (
    "_metadata",
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
)
"""The columns that Spark makes of files themselves (``_metadata``)."""
_NO_CONDITION = ("isnotnull", "dynamicpruningexpression(true")


def full_scans(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each scan of all partitions of a table of which a filter keeps few rows."""
    for node in execution.nodes():
        if node.metrics.get(PARTITIONS, 0) < 2 or prunes(node):
            continue
        read, filtered = node.rows or 0, filter_above(node)
        kept = filtered.rows if filtered is not None else None
        if filtered is None or kept is None:
            continue
        partitions, by = node.metrics[PARTITIONS], _condition(filtered)
        table = node.table()
        if reads_all_for_a_time(node):
            yield _of_a_time(
                node, by, execution, f"the filter on {by} names a time", (partitions - 1) / partitions
            )
        if kept > thresholds.scan_kept * read:
            if _is_for_a_time(node, filtered) and kept <= _FEW_OF_A_TIME * read:
                what = f"of its {read:,} rows, the filter on {by}, which names a time, keeps {kept:,}"
                yield _of_a_time(node, by, execution, what, (read - kept) / read)
            continue
        yield Issue(
            FULL_SCAN,
            f"{FULL_SCAN} {table}",
            execution.wall_ms(node.stages) * (read - kept) // max(1, read),
            None,
            f"reads all {partitions:,} partitions{f' of {table}' if table else ''}, {read:,} rows, of which "
            f"the filter on {by} keeps {kept:,}",
            _advice(node, by),
            evidence={
                "scan.partitions": partitions,
                "scan.rows": read,
                "scan.keptRows": kept,
                "scan.table": table,
            },
            stages=node.stages,
        )


def reads_all_for_a_time(scan: Node) -> bool:
    """Return whether a scan reads all partitions of text for a filter that names a time, but no partition.

    Readers of text apply filters themselves, to the rows that they parse: nobody knows how many they drop.
    """
    filtered = filter_above(scan)
    if not scan.name.startswith(_TEXTS) or filtered is None or prunes(scan):
        return False
    return filtered.rows == scan.rows and _is_for_a_time(scan, filtered)


def _is_for_a_time(scan: Node, filtered: Node) -> bool:
    """Return whether a filter that names a time is above a scan of many partitions."""
    return scan.metrics.get(PARTITIONS, 0) >= _MANY_PARTITIONS and bool(_TIME.search(filtered.text))


def _of_a_time(scan: Node, by: str, execution: EndedExecution, what: str, share: float) -> Issue:
    """Return that partitions are read of times that may not be asked for; nobody knows what they are of."""
    partitions, table = scan.metrics[PARTITIONS], scan.table()
    return Issue(
        FULL_SCAN,
        f"{FULL_SCAN} {table}",
        None,
        None,
        f"reads all {partitions:,} partitions{f' of {table}' if table else ''}: {what}, and no condition is "
        "on the columns by which the table is partitioned",
        f"If the partitions are those of times, add a condition on their columns besides that on {by}: Spark "
        "does not know how they belong together, and reads all files to see which rows the filter keeps.",
        evidence={"scan.partitions": partitions, "scan.rows": scan.rows or 0, "scan.table": table},
        stages=scan.stages,
        share_ms=int(execution.wall_ms(scan.stages) * share),
    )


def prunes(scan: Node) -> bool:
    """Return whether a scan leaves out partitions by a condition."""
    conditions = scan.metadata.get("PartitionFilters", "[]")[1:-1]
    named = [part for part in conditions.split("), ") if part.strip()]
    return any(not part.strip().startswith(_NO_CONDITION) for part in named)


def _advice(scan: Node, by: str) -> str:
    if named := ", ".join(_partitioned_by(scan)):
        return (
            f"The table is partitioned by {named}, and no condition is on that, or it is within a function: "
            f"compare {named} directly with constants, besides the condition on {by}."
        )
    return (
        "No condition is on the columns by which the table is partitioned, or it is within a function: "
        f"compare them directly with constants, besides the condition on {by}; if they have nothing to do "
        "with what you ask for, partition the table by something that does."
    )


def _partitioned_by(scan: Node) -> list[str]:
    """Return the columns of partitions that a scan hands on; none if its text is cut."""
    schema, output = _SCHEMA.search(scan.text), _OUTPUT.match(scan.text)
    if schema is None or output is None:
        return []
    others = {*_FIELD.findall(schema[1]), *_OF_FILES}
    return [name for name in columns(output[1]) if name not in others]


def _condition(filtered: Node) -> str:
    """Return what a filter is on: columns, and functions in Python with theirs.

    That a column has a value is asked of all by which something is joined.
    """
    text = _RETURNED.sub("", filtered.text)
    by = columns(EXISTS.sub("", text))
    by += [_called(returned, filtered) for returned in _RETURNED.findall(filtered.text)]
    return ", ".join(dict.fromkeys(by or columns(text)))


def _called(returned: str, filtered: Node) -> str:
    """Return the function in Python that returns something, with the columns that it takes."""
    for node in filtered.within_stage():
        calls, returns = items(node.text), _RETURNED.findall(node.text)
        if node.name in _IN_PYTHON and returned in returns and len(calls) == len(returns):
            name, _, of = calls[returns.index(returned)].partition("(")
            return f"{name.strip()}({', '.join(columns(of))})"
    return "a function in Python"  # Spark has cut the list of them


def filter_above(scan: Node) -> Node | None:
    """Return the filter on the rows of a scan, past nodes that drop none; None if there is none."""
    above = scan.parent
    while above is not None and above.name in ("Project", "Filter", "SubqueryAlias", *_IN_PYTHON):
        if above.name == "Filter":
            return above
        above = above.parent
    return None
