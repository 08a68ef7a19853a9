"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as DrawnTable

from spark_events.api.toolkit.formatting import duration, moment, percent, size
from spark_events.cli.terminal.console import STATE_COLORS, has_width, plain, plain_lines, say, show_table
from spark_events.history.report import Report
from spark_events.history.table import (
    ADVICE,
    BAD,
    MESSAGE,
    NEW_LINE,
    TERMINAL,
    WIDE,
    How,
    Part,
    Row,
    Shown,
    Table,
)
from spark_events.history.tables.all_tables import TABLES

_MOST_ROWS = 40
_WIDE = 100
_COLORS = {
    **STATE_COLORS,
    BAD: "bold red",
    ADVICE: "green",
}
_TEXTS: dict[How, Callable[[Any], str]] = {
    How.COUNT: "{:,}".format,
    How.AMOUNT: "{:,}".format,
    How.DURATION: lambda ms: duration(ms or None),
    How.PERCENT: percent,
    How.SIZE: size,
    How.MOMENT: moment,
    How.SHORT_MOMENT: lambda ms: moment(ms)[5:],
    How.MINUTE: lambda ms: moment(ms)[5:16],
    How.CLOCK: lambda ms: moment(ms)[11:],
}
"""How values are written; nothing where there is none."""


def print_report(report: Report, out: Console) -> None:
    """Print what a report has, except for its days and executors."""
    span = duration(report.until_ms - report.since_ms)
    say(
        f"[bold]{moment(report.since_ms)}[/] to [bold]{moment(report.until_ms)}[/] UTC ({span})",
        out,
    )
    wide = out.width >= _WIDE or not has_width(out)
    left_out: dict[str, str] = {}
    for table in TABLES:
        columns = table.shown_at(TERMINAL | WIDE if wide else TERMINAL, report.until_now)
        rows = table.on_terminal(report.tables[table.name]) if columns else []
        if rows:
            _print_table(table, columns, rows, report.until_ms, out)
            more = table.shown_at(TERMINAL | WIDE, report.until_now)
            if names := [column.heading.replace("\n", " ") for column in more if column not in columns]:
                left_out[table.heading] = ", ".join(names)
    if left_out:
        of_tables = ", ".join(f"{heading} ({names})" for heading, names in left_out.items())
        shown = of_tables if len(left_out) > 1 else next(iter(left_out.values()))
        say(f"[dim]columns left out: {shown}; use a wider terminal or --json[/]", out)
    for note in report.notes:
        say(f"[yellow]note[/] {plain(note)}", out)


def _print_table(table: Table, columns: list[Shown], rows: list[Row], until_ms: int, out: Console) -> None:
    title = ", ".join(filter(None, (table.heading, table.first)))
    drawn = DrawnTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        is_text = column.how is How.TEXT and column.left is not False
        drawn.add_column(
            column.heading,
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text,
            min_width=10 if is_text else None,
        )
    for row in rows[:_MOST_ROWS]:
        drawn.add_row(*(_cell(column, row, until_ms) for column in columns))
    show_table(drawn, out)
    if len(rows) > _MOST_ROWS:
        out.print(f"… and {len(rows) - _MOST_ROWS:,} more: --json and --html have all")


def _cell(column: Shown, row: Row, until_ms: int) -> str:
    if column.how is How.TEXT:
        return "".join(map(_part, column.parts_of(row)))
    value = column.value_of(row)
    if value is None:
        return ""
    return _ago(until_ms - value) if column.how is How.AGO else _TEXTS[column.how](value)


def _part(part: Part) -> str:
    if part == NEW_LINE:
        return part.text
    text = plain_lines(_full_lines(part.text)) if part.style == MESSAGE else plain(part.text)
    return f"[{_COLORS[part.style]}]{text}[/]" if part.style in _COLORS else text


def _full_lines(message: str) -> str:
    """Return a message without its empty lines and tabs: Kubernetes sets out its reasons with many."""
    return "\n".join(line for line in message.expandtabs(2).split("\n") if line.strip())


def _ago(ms: int) -> str:
    """Return how long ago it was, in the largest unit."""
    return "now" if ms < 1_000 else " ".join((*duration(ms).split(" ")[:2], "ago"))
