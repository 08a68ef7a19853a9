"""Answers about lineage: their rows, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.tree import Tree

from spark_events.api.toolkit.formatting import duration, moment
from spark_events.cli.lineage.trees import colored_status, tree_of_job, trees_of_data
from spark_events.cli.terminal.console import plain
from spark_events.lineage import drawing as drawings
from spark_events.lineage import questions
from spark_events.lineage.data_flow import NO_LONGER, DataFlow, Flow
from spark_events.lineage.drawing import Drawing

Row = dict[str, Any]
_SHOWN: dict[str, Callable[[Any], str]] = {
    "time_ms": moment,
    "written_ms": moment,
    "source_ms": moment,
    "late_ms": duration,
    "columns": ", ".join,
}
_HEADINGS = {
    "time_ms": "when (UTC)",
    "written_ms": "written (UTC)",
    "source_ms": "source written (UTC)",
    "late_ms": "behind",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told.

    Attributes:
        title: what it is about.
        rows: all of it, for programs.
        none: what to say if there are no rows.
        drawing: of the graph, with what matters marked.
        brief: the columns that people are shown; empty for all.
        trees: shown on a terminal in place of the rows.
    """

    title: str
    rows: Sequence[Row]
    none: str
    drawing: Drawing
    brief: Sequence[str] = ()
    trees: Sequence[Tree] = field(default=())

    @property
    def headings(self) -> list[str]:
        """Of the columns that people are shown."""
        return [_HEADINGS.get(name, name) for name in self._names]

    def cells(self) -> list[list[str]]:
        """Return the rows as people are shown them."""
        return [[_cell(row, name) for name in self._names] for row in self.rows]

    def names(self) -> list[str]:
        """Return what the rows are about, each once, for a message of one line."""
        names = [
            f"{row['data']}.{row['column']}"
            if "column" in row
            else str(row.get("data") or row.get("sink") or row["job"])
            for row in self.rows
        ]
        return list(dict.fromkeys(names))

    @property
    def _names(self) -> Sequence[str]:
        return self.brief or list(self.rows[0] if self.rows else ())

    def table(self) -> Table:
        """Return the rows as a table."""
        table = Table()
        for heading in self.headings:
            table.add_column(heading, overflow="fold")
        for row, cells in zip(self.rows, self.cells(), strict=True):
            table.add_row(
                *(
                    colored_status(row["status"]) if name == "status" else plain(cell)
                    for name, cell in zip(self._names, cells, strict=True)
                )
            )
        return table


def _cell(row: Row, name: str) -> str:
    text = _SHOWN.get(name, str)(row[name])
    return text if name != "job" or row.get("current", True) else f"{text} {NO_LONGER}"


def everything(flow: DataFlow, places: Mapping[str, str], none: str = "no job is known") -> Answer:
    """Return a row for each source, sink and job; with its place, for a statement that has not run."""
    brief = ("source", "sink", "job", "at") if places else ("source", "sink", "job", "status", "time_ms")
    rows = _rows(flow, places, lambda source, sink, each: True)
    return Answer("Lineage", rows, none, drawings.all_of(flow), brief)


def of(flow: DataFlow, name: str, with_columns: bool, places: Mapping[str, str]) -> Answer:
    """Return what a name means: some data, with what feeds it and what it feeds, or else a job."""
    meant = flow.find(name)
    if isinstance(meant, str):
        drawing = drawings.of_job(flow, meant)
        trees = [tree_of_job(flow, meant, with_columns, places)]
        rows = _rows(flow, places, lambda source, sink, each: each.job == meant)
        return Answer(meant, rows, "", drawing, trees=trees)
    drawing = drawings.around(flow, meant)
    near = {*drawing.near().nodes, None}
    rows = _rows(flow, places, lambda source, sink, each: source in near and sink in near)
    trees = trees_of_data(flow, meant, with_columns, places)
    return Answer(f"What feeds {flow.titles[meant]}, and what it feeds", rows, "", drawing, trees=trees)


def _rows(flow: DataFlow, places: Mapping[str, str], keeps: Callable[[Any, Any, Flow], bool]) -> list[Row]:
    return [
        {
            "source": flow.title(source),
            "sink": flow.title(sink),
            "job": each.job,
            "status": each.status,
            "time_ms": each.time_ms,
            "columns": each.columns,
            "influences": each.influences,
            "incomplete": each.incomplete,
            "current": flow.is_current(each),
            **_at(places, each.job),
        }
        for (source, sink), jobs in flow.flows.items()
        for each in jobs.values()
        if keeps(source, sink, each)
    ]


def _at(places: Mapping[str, str], job: str) -> Row:
    """Return where a statement is that has not run."""
    return {"at": places.get(job, "")} if places else {}


def differences(before: DataFlow, after: DataFlow) -> Answer:
    """Return which edges came and went."""
    changes = questions.changes(before, after)
    rows = [
        {"change": change.kind, **change.edge._asdict(), "columns": list(change.columns)}
        for change in changes
    ]
    drawing = drawings.of_changes(before, after, changes)
    return Answer("Which edges came and went", rows, "no edge came or went", drawing)


def impact(flow: DataFlow, name: str, places: Mapping[str, str]) -> Answer:
    """Return what a column contributes to."""
    impact = questions.impact(flow, name)
    rows = [
        {
            "data": row.data,
            "column": row.column,
            "how": row.how,
            "job": row.job,
            "steps": row.steps,
            **_at(places, row.job),
        }
        for row in impact.affected
    ]
    asked = f"{flow.titles[impact.data]}.{impact.column}"
    none = f"{asked} contributes to nothing that is known"
    return Answer(f"What {asked} contributes to", rows, none, drawings.of_impact(flow, impact))


def stale(flow: DataFlow, span_ms: int) -> Answer:
    """Return what is older than its sources."""
    tables = questions.stale(flow, span_ms)
    rows = [
        {
            "data": row.data,
            "written_ms": row.written_ms,
            "source": row.source,
            "source_ms": row.source_ms,
            "late_ms": row.late_ms,
            "job": row.job,
        }
        for row in tables
    ]
    none = f"nothing is older than its sources by more than {duration(span_ms)}"
    title = f"What is older than its sources by more than {duration(span_ms)}"
    return Answer(title, rows, none, drawings.of_stale(flow, tables))


def orphans(flow: DataFlow) -> Answer:
    """Return what jobs write and none reads."""
    unread = questions.orphans(flow)
    rows = [
        {"data": flow.title(data), "job": last.job, "status": last.status, "time_ms": last.time_ms}
        for data, last in unread
    ]
    drawing = drawings.of_orphans(flow, {data for data, _ in unread})
    return Answer("What jobs write and none reads", rows, "all that jobs write is read by one", drawing)


def missing(flow: DataFlow, places: Mapping[str, str]) -> Answer:
    """Return which lineage is incomplete, and why."""
    rows = [
        {"job": row.job, "status": row.status, "time_ms": row.time_ms, "missing": row.incomplete}
        for row in questions.missing(flow)
    ]
    brief = ("job", "missing") if places else ()
    title = "What is missing, and why"
    return Answer(title, rows, "nothing is known to be missing", drawings.of_missing(flow), brief)
