"""Answers about a graph of data: what changes, what a change affects, what is old, and what is missing."""

from __future__ import annotations

import difflib
import re
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow

_QUOTED_COLUMN = re.compile(r"(?P<table>.*)\.`(?P<column>(?:``|[^`])+)`")

_RENAME = "RENAME"
ALL_COLUMNS = "*"
"""Stands for the columns of a table whose lineage is not known by column."""


class Edge(NamedTuple):
    """A flow by the names of its ends."""

    source: str
    sink: str
    job: str


@dataclass(frozen=True, slots=True)
class Change:
    """An edge that is in one graph and not in the other, or has other columns there.

    Attributes:
        kind: ``added``, ``removed`` or ``changed``.
        columns: if it has changed, the columns of the sink that are computed from others now.
    """

    kind: str
    edge: Edge
    columns: tuple[str, ...] = ()


def changes(before: DataFlow, after: DataFlow) -> list[Change]:
    """Return which edges, by what each job last read and wrote, are new, gone, or of other columns."""
    old, new = _edges(before), _edges(after)
    differing = [Change("added", edge) for edge in new if edge not in old]
    differing += [Change("removed", edge) for edge in old if edge not in new]
    for edge, columns in new.items():
        if edge in old and columns != old[edge]:
            names = [name for name in {**old[edge], **columns} if old[edge].get(name) != columns.get(name)]
            differing.append(Change("changed", edge, tuple(names)))
    return differing


def _edges(flow: DataFlow) -> dict[Edge, dict[str, list[str]]]:
    return {
        Edge(flow.title(source), flow.title(sink), each.job): each.columns
        for source, sink, each in flow.current()
        if source is not None or sink is not None
    }


@dataclass(frozen=True, slots=True)
class Affected:
    """Something that a column contributes to.

    Attributes:
        data: the name of the data.
        column: its column; ``*`` if the lineage of columns is not known there.
        how: ``value`` if the column is computed from it, ``rows`` if it decides which rows there are, or
            ``unknown``.
        job: the job that computes it.
        steps: how many jobs away it is.
        key: of the data.
    """

    data: str
    column: str
    how: str
    job: str
    steps: int
    key: DataKey


@dataclass(slots=True)
class Impact:
    """All that a column contributes to.

    Attributes:
        data, column: the column.
        affected: what it contributes to, nearest first.
        edges: by which flows.
    """

    data: DataKey
    column: str
    affected: list[Affected] = field(default_factory=list)
    edges: list[tuple[DataKey, DataKey, Flow]] = field(default_factory=list)


def impact(flow: DataFlow, name: str) -> Impact:
    """Return all that a column contributes to, by what each job last read and wrote.

    Args:
        flow: the graph.
        name: of a table or a path and of its column, joined with a dot, with or without backticks.

    Raises:
        NothingToReadError: there is no such data, or it is not known to have a column of this name.
        UsageError: the name has no dot, or fits several pieces of data.
    """
    data, column = _column_of(flow, name)
    impact = Impact(data, column)
    known: set[tuple[DataKey, str, str]] = set()
    waiting = deque([(data, column, 0)])
    seen = {(data, column)}
    by_source: dict[DataKey, list[tuple[DataKey, Flow]]] = {}
    for source, sink, each in flow.current():
        if source is not None and sink is not None:
            by_source.setdefault(source, []).append((sink, each))
    while waiting:
        source, column, steps = waiting.popleft()
        for sink, each in by_source.get(source, ()):
            for reached, how in _reached(each, column):
                impact.edges.append((source, sink, each))
                if (sink, reached, each.job) not in known:
                    known.add((sink, reached, each.job))
                    affected = Affected(flow.title(sink), reached, how, each.job, steps + 1, sink)
                    impact.affected.append(affected)
                if how != "rows" and (sink, reached) not in seen:
                    seen.add((sink, reached))
                    waiting.append((sink, reached, steps + 1))
    return impact


def _reached(flow: Flow, column: str) -> list[tuple[str, str]]:
    """Return which columns of a sink a source's column reaches, and how."""
    if not flow.columns and not flow.influences:
        return [(ALL_COLUMNS, "unknown")] if flow.incomplete else []
    reached = [
        (name, "value")
        for name, sources in flow.columns.items()
        if column in sources or (column == ALL_COLUMNS and sources)
    ]
    decides = column in flow.influences or (column == ALL_COLUMNS and flow.influences)
    return [*reached, (ALL_COLUMNS, "rows")] if decides else reached


def _column_of(flow: DataFlow, name: str) -> tuple[DataKey, str]:
    table, column = _parts(name)
    if not table or not column:
        raise UsageError(f"--impact {name}: expected a table and its column, such as shop.orders.amount")
    data = flow.find(table, "--impact")
    if isinstance(data, str):
        raise UsageError(f"--impact {name}: {data} is a job; expected a table or a path, and its column")
    columns = flow.columns_by_data()[data]
    # Spark's own comparison of names, unless it is told otherwise.
    matches = [known for known in columns if known == column] or [
        known for known in columns if known.lower() == column.lower()
    ]
    if not matches:
        close = difflib.get_close_matches(column, columns, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        listed = f"; known columns: {', '.join(sorted(columns))}" if columns else ""
        raise NothingToReadError(
            f"--impact {name}: {flow.title(data)} is not known to have a column {column}{hint}{listed}"
        )
    return data, matches[0]


def _parts(name: str) -> tuple[str, str]:
    """Return the name of a table and of its column, without backticks."""
    if match := _QUOTED_COLUMN.fullmatch(name):
        return match["table"].replace("`", ""), match["column"].replace("``", "`")
    table, _, column = name.replace("`", "").rpartition(".")
    return table, column


@dataclass(frozen=True, slots=True)
class Stale:
    """A table with a source that is newer than it is.

    Attributes:
        data: the table.
        written_ms: when it was last written, in ms since the epoch.
        source: the newest of its sources.
        source_ms: when that was last written.
        job: the job that should have brought it up to date.
        key, source_key: of the two.
    """

    data: str
    written_ms: int
    source: str
    source_ms: int
    job: str
    key: DataKey
    source_key: DataKey

    @property
    def late_ms(self) -> int:
        """By how much it is older than its source."""
        return self.source_ms - self.written_ms


def stale(flow: DataFlow, span_ms: int) -> list[Stale]:
    """Return what is older than one of its sources by more than a span, the oldest first."""
    written: dict[DataKey, int] = {}
    # Also by runs that are not the last of their job: it may have failed, and have read something else.
    for (_, sink), of_jobs in flow.flows.items():
        for each in of_jobs.values():
            if sink is not None and each.written_ms:
                written[sink] = max(written.get(sink, 0), each.written_ms)
    renamed = [edge for edge in flow.current() if edge[2].modify == _RENAME and edge[2].status == "FINISHED"]
    for source, sink, each in sorted(renamed, key=lambda edge: edge[2].time_ms):
        # A table has the rows that it had under its other name, and not those of the one that it replaces.
        # What is written under the other name later is a table of its own.
        if source is None or sink is None or source not in written:
            continue
        if written.get(sink, 0) <= each.time_ms:
            written[sink] = min(written[source], each.time_ms)
    newest: dict[DataKey, Stale] = {}
    for source, sink, each in flow.current():
        if source is None or sink is None or source not in written or sink not in written or source == sink:
            continue
        if each.modify == _RENAME:
            continue
        behind = Stale(
            flow.title(sink), written[sink], flow.title(source), written[source], each.job, sink, source
        )
        if behind.late_ms > span_ms and (sink not in newest or newest[sink].source_ms < behind.source_ms):
            newest[sink] = behind
    return sorted(newest.values(), key=lambda table: -table.late_ms)


def orphans(flow: DataFlow) -> list[tuple[DataKey, Flow]]:
    """Return the data that a job writes and none reads, with the last job that wrote it."""
    read = {source for source, _, _ in flow.current()}
    last: dict[DataKey, Flow] = {}
    dropped = set()
    for _, sink, each in flow.current():
        if sink is None or sink in read:
            continue
        if each.modify == "DROP" and each.status == "FINISHED":
            dropped.add((sink, each.time_ms))
        if each.written_ms and each.written_ms >= last.get(sink, each).written_ms:
            last[sink] = each
    gone = {sink for sink, time_ms in dropped if sink in last and last[sink].written_ms <= time_ms}
    unread = [(sink, each) for sink, each in last.items() if sink not in gone]
    return sorted(unread, key=lambda orphan: flow.title(orphan[0]))


def missing(flow: DataFlow) -> list[Flow]:
    """Return the jobs whose lineage is incomplete, with the reason, each once."""
    incomplete: dict[tuple[str, str], Flow] = {}
    for _, _, each in flow.current():
        if each.incomplete:
            incomplete[each.job, each.incomplete] = each
    return list(incomplete.values())
