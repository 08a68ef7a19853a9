"""The rule about what one task, or a few, do alone: why there are no more of them, by the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.packed_files import MORE_FILES, cannot_be_split, packed_ending
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import EXCHANGE, Node, columns
from spark_events.diagnosis.plans.work_in_stage import above, is_light
from spark_events.diagnosis.thresholds import WINDOW, Thresholds

_SINGLE = "SinglePartition"
_OF_PYTHON = ("ArrowWindowPython", "WindowInPandas")
_ORDER = re.compile(
    r"windowspecdefinition\((?:specifiedwindowframe|(.*?), specifiedwindowframe)\(", re.DOTALL
)
"""By what a window's rows are ordered; where there are many functions, the end of the text is cut off."""
_QUICK = ("Window", "Union", "TakeOrderedAndProject", "GlobalLimit", "LocalLimit", "CollectLimit")
_FEW_ROWS = 10_000
"""Fewer rows than this take no time in one task, unless a function that is slow is called for each."""
_TEXTS = ("Scan csv", "Scan json", "Scan text", "Scan xml")
_FILES = "number of files read"
_JDBC = re.compile(r"Scan JDBCRelation\(.*\) \[numPartitions=(\d+)\]\s*", re.DOTALL)


class FewTasks(NamedTuple):
    """Why a stage has so few tasks, as a sentence without its subject, and what to do about it."""

    because: str
    advice: str


def windows_over_all(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each window function without PARTITION BY: one task has all rows."""
    for node in execution.nodes():
        if not _is_window(node) or not _is_single(node):
            continue
        rows, stages = node.rows or 0, node.stages
        if rows < _FEW_ROWS and not any(map(_may_take_long, (node, *above(node)))):
            continue
        wall_ms = execution.wall_ms(stages)
        cores = max(1, execution.cores)
        spec = _ORDER.search(node.text)
        by = ", ".join(columns((spec[1] or "") if spec else node.text.rpartition("[")[2]))
        yield Issue(
            WINDOW,
            WINDOW,
            wall_ms * (cores - 1) // cores,
            None,
            f"a window function without PARTITION BY{f', ordered by {by},' if by else ''} runs over all "
            f"{rows:,} rows in one task",
            "Add PARTITION BY with a column that divides the rows. For keys, monotonically_increasing_id() "
            "or rdd.zipWithIndex() numbers rows without bringing them together; for a running number or "
            "total, number the rows of each partition, and add the totals of the partitions before it.",
            evidence={"window.rows": rows},
            stages=stages,
        )


def why_few_tasks(nodes: Sequence[Node], tasks: int) -> FewTasks | None:
    """Return why the stage of some nodes has so few tasks; None if they do not say."""
    for node in nodes:
        number = node.text.partition(" ")[2]
        if node.name == "Coalesce" and number == str(tasks):
            return _of_coalesce(node, number, "one task" if tasks == 1 else f"{tasks} tasks")
    for node in nodes:
        if (reason := _of_scan(node, tasks)) is not None:
            return reason
    for node in nodes:
        below = [
            child for child in node.within_stage() if child.children and child.children[0].name == EXCHANGE
        ]
        if any(_SINGLE in child.children[0].text for child in below):
            return FewTasks(
                "all rows are brought into one partition, for a sort, a limit or an aggregate of all of them",
                "Do as much as possible before that, by keys; write sorted within partitions "
                "(sortWithinPartitions) where no total order is needed.",
            )
        if any(child.name == "AQEShuffleRead" and "coalesced" in child.text for child in below):
            return FewTasks(
                "adaptive execution put small shuffle partitions together",
                "Their rows take long, small as they are. More tasks are left with a smaller "
                "spark.sql.adaptive.coalescePartitions.minPartitionSize (1m by default), or with "
                "spark.sql.adaptive.coalescePartitions.enabled=false and spark.sql.shuffle.partitions at "
                "about the number of cores: hundreds of tasks may take longer to start than the rows take.",
            )
    return None


def _of_coalesce(node: Node, number: str, few: str) -> FewTasks:
    coalesce = f"coalesce({number})"
    if any(not is_light(other) for other in above(node)):
        return FewTasks(
            f"{coalesce} leaves {few} for all after it, as for what is before it",
            f"Leave {coalesce} out, or do it last: what comes after it runs in no more tasks. Right before a "
            f"write, repartition({number}) leaves all before it as many tasks as it had.",
        )
    return FewTasks(
        f"{coalesce} runs all before it in {few}, too",
        f"repartition({number}) in the place of {coalesce} shuffles the rows, so that what comes before it "
        "runs in as many tasks as it did.",
    )


def _of_scan(node: Node, tasks: int) -> FewTasks | None:
    if (divided := _JDBC.fullmatch(node.name)) and int(divided[1]) == tasks:
        queries = "one query" if tasks == 1 else f"{tasks} queries"
        return FewTasks(
            f"{node.table() or 'a query of JDBC'} is read from its database by {queries}",
            "Let tasks share the reading: the options partitionColumn, lowerBound, upperBound and "
            "numPartitions divide the table by a column; repartition() after reading spreads what comes "
            "after it.",
        )
    files = node.metrics.get(_FILES, 0)
    if not node.name.startswith("Scan ") or not files:
        return None
    table = node.table()
    number = f"{files:,} file{'s' if files > 1 else ''}"
    if packed_ending(table):
        return FewTasks(cannot_be_split(f"{number} of {table}"), MORE_FILES)
    if files == tasks and node.name.startswith(_TEXTS):
        return FewTasks(
            f"{number} of {table}, each read by one task: small, or not to be split (packed, multiLine)",
            "Write the rows in more files, or in a format that can be split (Parquet, or text without gzip); "
            "repartition() after reading spreads what comes after it.",
        )
    return None


def _is_window(node: Node) -> bool:
    return node.name.startswith("Window") or node.name in _OF_PYTHON


def _may_take_long(node: Node) -> bool:
    """Return whether a node may take long even for few rows."""
    return node.name in _OF_PYTHON or not (node.name.startswith(_QUICK) or is_light(node))


def _is_single(window: Node) -> bool:
    below = window.children[0] if window.children else None
    while below is not None and not below.is_exchange:
        if below.name.startswith("Window") or not below.children:
            return False
        below = below.children[0]
    return below is not None and _SINGLE in below.text
