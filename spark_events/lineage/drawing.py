"""What a diagram shows of a graph of data: all of it, or what answers a question, with marks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow
from spark_events.lineage.questions import Change, Edge, Impact, Stale

ASKED, REACHED, BEHIND, ORPHAN, INCOMPLETE = "asked", "reached", "behind", "orphan", "incomplete"
"""Marks of data, and of arrows."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
"""Marks of arrows alone."""
_MOST_COLUMNS = 8


class DrawnData(NamedTuple):
    """A piece of data.

    Attributes:
        title: its name.
        note: a few words below the name.
        mark: why it stands out; empty if it does not.
        is_near: whether it belongs to the answer, rather than to what is around that.
    """

    title: str
    note: str = ""
    mark: str = ""
    is_near: bool = True


class Arrow(NamedTuple):
    """A job between two pieces of data.

    Attributes:
        note: a few words about it.
        mark: why it stands out; empty if it does not.
        is_near: whether it belongs to the answer.
        is_current: whether the job's last application had it, too.
    """

    source: DataKey
    sink: DataKey
    flow: Flow
    note: str = ""
    mark: str = ""
    is_near: bool = True
    is_current: bool = True


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn.

    Attributes:
        nodes: by the data's key.
        arrows: between them.
        columns: the columns of each piece of data, as far as known.
        asked: the data that the question is about, and its column; both empty if it is about all.
    """

    nodes: Mapping[DataKey, DrawnData]
    arrows: Sequence[Arrow]
    columns: Mapping[DataKey, Sequence[str]]
    asked: tuple[DataKey | None, str] = (None, "")

    def near(self) -> Drawing:
        """Return the answer alone."""
        nodes = {key: node for key, node in self.nodes.items() if node.is_near}
        return Drawing(nodes, [arrow for arrow in self.arrows if arrow.is_near], self.columns, self.asked)


def all_of(flow: DataFlow) -> Drawing:
    """Return everything, without marks."""
    nodes = {key: DrawnData(title) for key, title in flow.titles.items()}
    return _drawing(flow, nodes, _arrows(flow))


def around(flow: DataFlow, data: DataKey) -> Drawing:
    """Return what feeds some data, and what it feeds, each to the end."""
    near = _reached(flow.sources_of, data) | _reached(flow.sinks_of, data)
    nodes = {key: DrawnData(flow.titles[key], "", ASKED if key == data else "") for key in near}
    arrows = [arrow._replace(is_near=arrow.source in near and arrow.sink in near) for arrow in _arrows(flow)]
    return _drawing(flow, nodes, arrows, (data, ""))


def of_job(flow: DataFlow, job: str) -> Drawing:
    """Return what a job reads and writes."""
    ends = {end for source, sink, _ in flow.of_job(job) for end in (source, sink) if end is not None}
    nodes = {key: DrawnData(flow.titles[key]) for key in ends}
    arrows = [arrow._replace(is_near=arrow.flow.job == job) for arrow in _arrows(flow)]
    return _drawing(flow, nodes, arrows)


def of_impact(flow: DataFlow, impact: Impact) -> Drawing:
    """Return what a column contributes to."""
    columns: dict[DataKey, list[str]] = {}
    for affected in impact.affected:
        columns.setdefault(affected.key, []).append("rows" if affected.how == "rows" else affected.column)
    nodes = {key: DrawnData(flow.titles[key], _listed(names), REACHED) for key, names in columns.items()}
    nodes[impact.data] = DrawnData(flow.titles[impact.data], impact.column, ASKED)
    on_path = {(source, sink, each.job) for source, sink, each in impact.edges}
    arrows = [
        arrow._replace(mark=REACHED)
        if (arrow.source, arrow.sink, arrow.flow.job) in on_path
        else arrow._replace(is_near=False)
        for arrow in _arrows(flow)
    ]
    return _drawing(flow, nodes, arrows, (impact.data, impact.column))


def of_changes(before: DataFlow, after: DataFlow, changes: Iterable[Change]) -> Drawing:
    """Return both graphs, with what came and went."""
    marks = {change.edge: change for change in changes}
    arrows: list[Arrow] = []
    ends: set[DataKey | None] = set()
    drawn: set[DataKey | None] = set()
    for flow in (after, before):
        for source, sink, each in flow.current():
            change = marks.get(Edge(flow.title(source), flow.title(sink), each.job))
            is_gone = change is not None and change.kind == REMOVED
            if is_gone != (flow is before):
                continue
            drawn |= {source, sink}
            ends |= {source, sink} if change else set()
            if source is not None and sink is not None:
                mark, note = (change.kind, _listed(change.columns)) if change else ("", "")
                arrows.append(Arrow(source, sink, each, note, mark, bool(change)))
    titles = {**before.titles, **after.titles}
    nodes = {key: DrawnData(title, is_near=key in ends) for key, title in titles.items() if key in drawn}
    return Drawing(nodes, arrows, {**before.columns_by_data(), **after.columns_by_data()})


def of_stale(flow: DataFlow, stale: Iterable[Stale]) -> Drawing:
    """Return what is older than its sources, and those."""
    nodes: dict[DataKey, DrawnData] = {}
    late: dict[tuple[DataKey, DataKey], str] = {}
    for table in stale:
        late[table.source_key, table.key] = words = f"{duration(table.late_ms)} behind"
        nodes[table.key] = DrawnData(table.data, words, BEHIND)
        nodes.setdefault(table.source_key, DrawnData(table.source))
    arrows = [
        arrow._replace(mark=BEHIND, note=late[arrow.source, arrow.sink])
        if (arrow.source, arrow.sink) in late
        else arrow._replace(is_near=False)
        for arrow in _arrows(flow, current=True)
    ]
    return _drawing(flow, nodes, arrows)


def of_orphans(flow: DataFlow, orphans: Collection[DataKey]) -> Drawing:
    """Return what jobs write and none reads, and what that is made of."""
    arrows = [arrow._replace(is_near=arrow.sink in orphans) for arrow in _arrows(flow, current=True)]
    nodes = {arrow.source: DrawnData(flow.titles[arrow.source]) for arrow in arrows if arrow.is_near}
    nodes |= {key: DrawnData(flow.titles[key], "nothing reads it", ORPHAN) for key in orphans}
    return _drawing(flow, nodes, arrows)


def of_missing(flow: DataFlow) -> Drawing:
    """Return the jobs whose lineage is incomplete."""
    nodes: dict[DataKey, DrawnData] = {}
    for source, sink, each in flow.current():
        if each.incomplete:
            for end in (source, sink):
                if end is not None:
                    nodes[end] = DrawnData(flow.titles[end], "", INCOMPLETE)
    arrows = [
        arrow._replace(mark=INCOMPLETE, note=arrow.flow.incomplete)
        if arrow.flow.incomplete
        else arrow._replace(is_near=False)
        for arrow in _arrows(flow, current=True)
    ]
    return _drawing(flow, nodes, arrows)


def _drawing(
    flow: DataFlow,
    nodes: Mapping[DataKey, DrawnData],
    arrows: Sequence[Arrow],
    asked: tuple[DataKey | None, str] = (None, ""),
) -> Drawing:
    """Return a drawing of all data, of which the given nodes are near."""
    whole = {key: nodes.get(key) or DrawnData(title, is_near=False) for key, title in flow.titles.items()}
    return Drawing(whole, arrows, flow.columns_by_data(), asked)


def _arrows(flow: DataFlow, current: bool = False) -> list[Arrow]:
    arrows = [
        Arrow(source, sink, each, is_current=flow.is_current(each))
        for (source, sink), jobs in flow.flows.items()
        for each in jobs.values()
        if source is not None and sink is not None
    ]
    return [arrow for arrow in arrows if arrow.is_current or not current]


def _reached(neighbors: Callable[[DataKey], list[tuple[DataKey, list[Flow]]]], data: DataKey) -> set[DataKey]:
    """Return some data and all that is behind it in one direction."""
    reached, waiting = {data}, [data]
    while waiting:
        for neighbor, _ in neighbors(waiting.pop()):
            if neighbor not in reached:
                reached.add(neighbor)
                waiting.append(neighbor)
    return reached


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - _MOST_COLUMNS
    return ", ".join(distinct[:_MOST_COLUMNS]) + (f" and {more} more" if more > 0 else "")
