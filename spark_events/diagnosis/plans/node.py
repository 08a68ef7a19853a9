"""A plan's nodes with what each measured, from the record of an SQL execution's end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

PLAN_METRICS = (
    "number of output rows",
    "number of files read",
    "size of files read",
    "number of partitions read",
    "number of written files",
    "written output",
    "number of dynamic part",
    "data size",
    "time to collect",
    "time to build",
    "time to broadcast",
    "shuffle records written",
    "shuffle bytes written",
    "number of partitions",
    "spill size",
    "sort time",
    "scan time",
    "time to start Python workers",
    "time to initialize Python workers",
    "time to run Python workers",
    "number of rows copied.",
    "number of rows copied",
    "number of target rows rewritten unmodified",
    "number of rows updated.",
    "number of rows deleted.",
    "number of updated rows",
    "number of deleted rows",
    "number of inserted rows",
    "time taken to rewrite the matched files",
    "number of updated state rows",
    "number of segment-tree frames prepared",
    "data sent to Python workers",
)
"""Metrics of plans' nodes that are handed on, of Spark and Delta Lake; in an SQLExecutionEnd's ``Plans``,
each metric of a node is its index in this, and the id of its accumulator."""
LONGEST_TEXT = 500
"""How long the text of a node is at most, as ``ExecutionPlans.java`` has it; longer ones are cut."""
CONDITIONS = ", conditions of CASE ["
"""What comes before the number of conditions of a node whose text is cut, if these are many; see there."""
ROWS = "number of output rows"
DATA_SIZE = "data size"
IN_PYTHON = "time to run Python workers"
UPDATED_STATE_ROWS = "number of updated state rows"
FILES = ("number of files read", "size of files read")
"""By which the files of a table differ from those of another time."""
_SHUFFLED_ROWS = "shuffle records written"
_EXPRESSION_ID = re.compile(r"#\d+L?", re.ASCII)
_PLAN_ID = re.compile(r",? ?\[?plan_id=\d+\]?", re.ASCII)
_ONE_LOCATION = re.compile(r"\[([^\],]*)")
_FILES_OF_ONE = re.compile(
    r"\[(?P<folder>[^\],]*)/[^/\],]*\.[A-Za-z]\w*(?:, (?P=folder)/[^/\],]*\.[A-Za-z]\w*)+(?:, \.\.\.)?\]"
)
"""A list of files in one folder, of which Spark shows the first few."""
_WRITTEN = re.compile(r"(?:file|hdfs|s3a?|gs|abfss?|dbfs|viewfs|webhdfs|oss|cosn):/[^\s,\]]*")
_COLUMN = re.compile(r"(?<!lambda )(?<![\w.])([A-Za-z_][\w.]*)#\d+L?", re.ASCII)
"""A column, and no variable of a function that is called for the elements of an array."""
_NAMED = re.compile(r"[A-Za-z_][\w.]*#\d+L?", re.ASCII)
_OUTPUT = re.compile(r"([A-Za-z_][\w.]*)#\d+L?(?=[,\]])", re.ASCII)
_TABLE = re.compile(r"[\w.$-]+")
_JDBC_TABLE = re.compile(r"JDBCRelation\(([\w.$\"`-]+)\) \[numPartitions=\d+\]")
_DELTA_LOG = re.compile(r"/_delta_log(?:/.*)?$", re.DOTALL)
CACHED_TABLE = "Scan In-memory table "
IN_MEMORY = "InMemoryTableScan"
"""The scan of a cache; of one that has a table's name, Spark calls it by that."""
_OTHER_ROWS = ("Generate", "Expand", "Sample")
"""Nodes out of which more or fewer rows come than go into them."""
EXCHANGE, BROADCAST = "Exchange", "BroadcastExchange"
MOVES = (EXCHANGE, "AQEShuffleRead", "Sort")
"""Nodes that only move rows, as between the two steps of an aggregation."""
REUSED = ("ReusedExchange", "ReusedSubquery")
"""Nodes that have what others of their plan have computed."""
AGGREGATES = ("HashAggregate", "SortAggregate", "ObjectHashAggregate")
EXISTING_RDD = "Scan ExistingRDD"
OF_PROGRAM = (EXISTING_RDD, "LocalTableScan")
"""How the names of scans begin whose rows the program has made: two that look alike may have other rows."""
WRITES_TABLE = ("Execute ", "Append", "Overwrite")
"""How the names of nodes begin that say which table or path they write."""
CUT = " more fields"
"""How Spark ends a list of columns that it cuts."""


class MetricValue(NamedTuple):
    """The value of an accumulator, and the stages whose tasks have added to it."""

    value: int
    stages: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Node:
    """A node of a plan; those that only wrap others are left out.

    Attributes:
        name: its kind, such as ``SortMergeJoin``.
        text: how Spark describes it; cut.
        metadata: what Spark says of a scan: ``Location``, ``PartitionFilters``, ``DataFilters``.
        metrics: what it measured, by Spark's names; times in ms, sizes in bytes. That in Python is its own,
            without those of nodes below that run in the same stage.
        measured_in: the stages whose tasks measured that.
        children: what it reads from.
        parent: what reads from it; None for the plan's root.
    """

    name: str
    text: str
    metadata: Mapping[str, str]
    metrics: Mapping[str, int]
    measured_in: frozenset[int]
    parent: Node | None
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this node, and all below it; a plan may be too deep for recursion."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    @property
    def rows(self) -> int | None:
        """How many rows come out of it; None if nobody has counted them."""
        node = self
        while True:
            for name in (ROWS, _SHUFFLED_ROWS):
                if name in node.metrics:
                    return node.metrics[name]
            if len(node.children) != 1 or node.name in _OTHER_ROWS:
                return None
            node = node.children[0]

    @property
    def is_exchange(self) -> bool:
        """Whether what is below it runs in another stage, or in the driver."""
        return self.name in (EXCHANGE, BROADCAST)

    @property
    def stages(self) -> frozenset[int]:
        """The stages that it runs in: where it measured, or else its neighbors within the stage."""
        if self.measured_in:
            return self.measured_in
        below = self.children[:]
        while below:
            node = below.pop()
            if node.is_exchange:
                continue
            if node.measured_in:
                return node.measured_in
            below += node.children
        above = self.parent
        while above is not None and not above.is_exchange:
            if above.measured_in:
                return above.measured_in
            above = above.parent
        return frozenset() if above is None else above.measured_in

    @property
    def is_cut(self) -> bool:
        """Whether a part of its text may be missing."""
        return CUT in self.text or len(self.text) >= LONGEST_TEXT

    def within_stage(self) -> Iterator[Node]:
        """Yield this node, and those below it that run in the same stage."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if not child.is_exchange]

    def tables(self) -> list[str]:
        """Return what it reads, each once: names of tables, or paths."""
        return named_tables(node for node in self.walk() if not node.children)

    def table(self) -> str:
        """Return the table or the path that a scan reads, or a write writes; empty if it does neither."""
        if self.name == IN_MEMORY:
            return self.text.removeprefix(CACHED_TABLE).split(" ")[0] if CACHED_TABLE in self.text else ""
        if self.name.startswith(EXISTING_RDD):  # whose name may have a path in it: that of Delta's log
            written = _WRITTEN.search(self.text)
            return written[0].partition("[")[0] if written else ""
        if self.name.startswith("Scan ") and (table := _scanned(self.name.removeprefix("Scan "))):
            return table
        if self.name.startswith("BatchScan "):
            return next(iter(self.name.split()[1:]), "")
        if match := _ONE_LOCATION.search(self.metadata.get("Location", "")):
            return match[1]
        if self.name.startswith(WRITES_TABLE):
            written = _WRITTEN.search(self.text)
            return written[0] if written else ""
        return ""

    def shown_table(self) -> str:
        """Return the same for a sentence: of files of one folder that are given one by one, the folder.

        Two such lists are of different files, so that it is no name to tell tables apart by.
        """
        files = _FILES_OF_ONE.search(self.metadata.get("Location", ""))
        return files["folder"] if files is not None else self.table()

    def signature(self) -> str:
        """Return what it and all below it do, without the ids that differ each time."""
        return "\n".join(
            f"{len(node.children)} {without_ids(node.text)} {without_ids(node.metadata.get('Location', ''))}"
            for node in self.walk()
        )


def named_tables(nodes: Iterable[Node]) -> list[str]:
    """Return the tables or paths of some nodes, each once; of Delta's log, that of the table that has it."""
    names = (_DELTA_LOG.sub("", node.table()) for node in nodes)
    return list(dict.fromkeys(filter(None, names)))


def _scanned(relation: str) -> str:
    """Return the table in the name of a scan, behind a format or a relation; empty if there is none.

    A relation may be described with all of its options, and its description be cut: none of that is a table.
    """
    if match := _JDBC_TABLE.fullmatch(relation):
        return match[1]
    described, _, table = relation.rpartition(" ")
    is_whole = " " not in described or described.endswith((")", "]", " v2 scan"))
    return table if described and is_whole and _TABLE.fullmatch(table) else ""


def without_ids(text: str) -> str:
    """Return a node's text without the ids of expressions and plans."""
    return _EXPRESSION_ID.sub("", without_plan_ids(text))


def without_plan_ids(text: str) -> str:
    """Return a node's text without the ids of plans, which differ each time; those of columns stay."""
    return _PLAN_ID.sub("", text)


def outputs(node: Node) -> list[str]:
    """Return the names of the columns that come out of a node; none if nothing says it."""
    while node.name not in ("Project", IN_MEMORY) and len(node.children) == 1:
        node = node.children[0]
    return list(dict.fromkeys(_OUTPUT.findall(node.text))) if node.name in ("Project", IN_MEMORY) else []


def columns(text: str) -> list[str]:
    """Return the names of the columns in a part of a node's text, each once."""
    return list(dict.fromkeys(_COLUMN.findall(text)))


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first of some names, for a sentence, with ``…`` if there are more."""
    return f"{', '.join(names[:most])}{', …' if len(names) > most else ''}"


def listed(text: str) -> list[str]:
    """Return the columns that a node's text lists first, such as ``k#4L``, without their expressions."""
    return [names[-1] for item in items(text) if (names := _NAMED.findall(item))]


def items(text: str) -> list[str]:
    """Return the items of the list with which a node's text begins, such as ``(id#1L % 9) AS k#4L``."""
    parts, depth, item = [], 0, ""
    for letter in text.partition("[")[2]:
        if depth <= 0 and letter in ",]":
            parts.append(item)
            item = ""
            if letter == "]":
                break
            continue
        depth += (letter in "([") - (letter in ")]")
        item += letter
    return parts
