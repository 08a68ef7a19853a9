"""Answers about a graph of data: what changes, what a change affects, what is old, and what is missing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow

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
    """

    data: str
    column: str
    how: str
    job: str
    steps: int


def impact(flow: DataFlow, name: str) -> list[Affected]:
    """Return all that a column contributes to, nearest first, by what each job last read and wrote.

    Args:
        flow: the graph.
        name: of a table or a path and of its column, joined with a dot.

    Raises:
        NothingToReadError: there is no such data, or nothing reads a column of this name there.
        UsageError: the name has no dot, or fits several pieces of data.
    """
    data, column = _column_of(flow, name)
    reached_columns: dict[tuple[DataKey, str, str], Affected] = {}
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
                affected = Affected(flow.title(sink), reached, how, each.job, steps + 1)
                reached_columns.setdefault((sink, reached, each.job), affected)
                if how != "rows" and (sink, reached) not in seen:
                    seen.add((sink, reached))
                    waiting.append((sink, reached, steps + 1))
    return list(reached_columns.values())


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
    table, dot, column = name.rpartition(".")
    if not dot or not table or not column:
        raise UsageError(f"--impact {name}: expected a table and its column, such as shop.orders.amount")
    data = flow.find(table, "--impact")
    if isinstance(data, str):
        raise UsageError(f"--impact {name}: {data} is a job; expected a table or a path, and its column")
    columns = {
        read
        for source, _, each in flow.current()
        if source == data
        for read in (*each.influences, *(name for names in each.columns.values() for name in names))
    }
    if column not in columns:
        known = f"; columns that are read: {', '.join(sorted(columns))}" if columns else ""
        raise NothingToReadError(f"--impact {name}: no job reads a column {column} of {table}{known}")
    return data, column


@dataclass(frozen=True, slots=True)
class Stale:
    """A table with a source that is newer than it is.

    Attributes:
        data: the table.
        written_ms: when it was last written, in ms since the epoch.
        source: the newest of its sources.
        source_ms: when that was last written.
        job: the job that should have brought it up to date.
    """

    data: str
    written_ms: int
    source: str
    source_ms: int
    job: str


def stale(flow: DataFlow, span_ms: int) -> list[Stale]:
    """Return what is older than one of its sources by more than a span, the oldest first."""
    written: dict[DataKey, int] = {}
    for _, sink, each in flow.current():
        written_ms = each.time_ms if each.writes_rows else each.finished_ms
        if sink is not None and written_ms:
            written[sink] = max(written.get(sink, 0), written_ms)
    newest: dict[DataKey, Stale] = {}
    for source, sink, each in flow.current():
        if source is None or sink is None or source not in written or sink not in written or source == sink:
            continue
        behind = Stale(flow.title(sink), written[sink], flow.title(source), written[source], each.job)
        late = behind.source_ms - behind.written_ms
        if late > span_ms and (sink not in newest or newest[sink].source_ms < behind.source_ms):
            newest[sink] = behind
    return sorted(newest.values(), key=lambda table: table.written_ms - table.source_ms)


def orphans(flow: DataFlow) -> list[tuple[str, Flow]]:
    """Return the data that a job writes and none reads, with the last job that wrote it."""
    read = {source for source, _, _ in flow.current()}
    last: dict[DataKey, Flow] = {}
    dropped = set()
    for _, sink, each in flow.current():
        if sink is None or sink in read:
            continue
        if each.modify == "DROP" and each.status == "FINISHED":
            dropped.add((sink, each.time_ms))
        if each.writes_rows and each.time_ms >= last.get(sink, each).time_ms:
            last[sink] = each
    gone = {sink for sink, time_ms in dropped if sink in last and last[sink].time_ms <= time_ms}
    titled = [(flow.title(sink), each) for sink, each in last.items() if sink not in gone]
    return sorted(titled, key=lambda orphan: orphan[0])


def missing(flow: DataFlow) -> list[Flow]:
    """Return the jobs whose lineage is incomplete, with the reason, each once."""
    incomplete: dict[tuple[str, str], Flow] = {}
    for _, _, each in flow.current():
        if each.incomplete:
            incomplete[each.job, each.incomplete] = each
    return list(incomplete.values())
