"""Answers about lineage as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from spark_events.api.toolkit.formatting import duration, moment
from spark_events.cli.console import plain, print_json, say, show_table
from spark_events.lineage import questions
from spark_events.lineage.data_flow import DataFlow

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
    """Rows of one form, and what to say if there are none."""

    rows: Sequence[Row]
    none: str

    def show(self, as_json: bool) -> None:
        """Print it."""
        if as_json:
            print_json(list(self.rows))
        elif not self.rows:
            say(plain(self.none))
        else:
            show_table(_table(self.rows))


def _table(rows: Sequence[Row]) -> Table:
    table = Table()
    for name in rows[0]:
        table.add_column(_HEADINGS.get(name, name), overflow="fold")
    for row in rows:
        table.add_row(*(plain(_SHOWN.get(name, str)(value)) for name, value in row.items()))
    return table


def all_flows(flow: DataFlow) -> Answer:
    """Return a row for each source, sink and job."""
    rows = [
        {
            "source": flow.title(source),
            "sink": flow.title(sink),
            "job": each.job,
            "status": each.status,
            "time_ms": each.time_ms,
            "columns": each.columns,
            "influences": each.influences,
            "incomplete": each.incomplete,
        }
        for (source, sink), jobs in flow.flows.items()
        for each in jobs.values()
    ]
    return Answer(rows, "no job is known")


def planned_table(flow: DataFlow) -> Table:
    """Return a row for each source, sink and statement, which have not run."""
    rows = [
        {"source": flow.title(source), "sink": flow.title(sink), "statement": each.job}
        for (source, sink), jobs in flow.flows.items()
        for each in jobs.values()
    ]
    return _table(rows) if rows else Table("source", "sink", "statement")


def differences(before: DataFlow, after: DataFlow) -> Answer:
    """Return which edges came and went."""
    rows = [
        {"change": change.kind, **change.edge._asdict(), "columns": list(change.columns)}
        for change in questions.changes(before, after)
    ]
    return Answer(rows, "no edge came or went")


def impact(flow: DataFlow, name: str) -> Answer:
    """Return what a column contributes to."""
    rows = [
        {"data": row.data, "column": row.column, "how": row.how, "job": row.job, "steps": row.steps}
        for row in questions.impact(flow, name)
    ]
    return Answer(rows, f"{name} contributes to nothing that is known")


def stale(flow: DataFlow, span_ms: int) -> Answer:
    """Return what is older than its sources."""
    rows = [
        {
            "data": row.data,
            "written_ms": row.written_ms,
            "source": row.source,
            "source_ms": row.source_ms,
            "late_ms": row.source_ms - row.written_ms,
            "job": row.job,
        }
        for row in questions.stale(flow, span_ms)
    ]
    return Answer(rows, f"nothing is older than its sources by more than {duration(span_ms)}")


def orphans(flow: DataFlow) -> Answer:
    """Return what jobs write and none reads."""
    rows = [
        {"data": title, "job": last.job, "status": last.status, "time_ms": last.time_ms}
        for title, last in questions.orphans(flow)
    ]
    return Answer(rows, "all that jobs write is read by one")


def missing(flow: DataFlow) -> Answer:
    """Return which lineage is incomplete, and why."""
    rows = [
        {"job": row.job, "status": row.status, "time_ms": row.time_ms, "missing": row.incomplete}
        for row in questions.missing(flow)
    ]
    return Answer(rows, "nothing is known to be missing")
