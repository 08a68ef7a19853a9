"""The report on a terminal."""

from __future__ import annotations

from collections import defaultdict

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spark_events.history.report import Report, Row
from spark_events.history.texts import duration, job_name, moment, percent

_MOST_ROWS = 40
_DURATIONS = ("down", "MTTR", "longest\noutage", "SLA", "longest\ngap")
_NAMES = ("application / query", "what", "error")
_COLOURS = {"up": "green", "down": "bold red", "starting": "yellow", "stopped": "dim"}


def print_report(report: Report, out: Console) -> None:
    """Print what was up and down, which checkpoints were late, and what failed."""
    span = duration(report.until_ms - report.since_ms)
    out.print(
        f"[bold]{moment(report.since_ms)}[/] to [bold]{moment(report.until_ms)}[/] UTC ({span})",
        soft_wrap=True,
    )
    _print_rows(_uptime_table(), report.uptime, _uptime_row, out)
    if report.checkpoint_sla:
        _print_rows(_sla_table(), report.checkpoint_sla, _sla_row, out)
    if report.failures:
        _print_rows(_failure_table(), _by_error(report.failures), _failure_row, out)
    for note in report.notes:
        out.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)


def _print_rows(table: Table, rows: list[Row], cells: object, out: Console) -> None:
    for row in rows[:_MOST_ROWS]:
        table.add_row(*cells(row))  # type: ignore[operator]
    out.print(table)
    if len(rows) > _MOST_ROWS:
        out.print(f"… and {len(rows) - _MOST_ROWS:,} more: --json and --html have all")


def _table(title: str, *columns: str, left: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        is_name = column in _NAMES
        table.add_column(
            column,
            justify="left" if column in left else "right",
            overflow="fold",
            no_wrap=not is_name and column not in _DURATIONS,
            min_width=14 if is_name else None,
        )
    return table


def _uptime_table() -> Table:
    return _table(
        "Uptime, the worst first",
        "application / query",
        "status",
        "uptime",
        "down",
        "failures",
        "restarts",
        "MTTR",
        "longest\noutage",
        left=("application / query", "status"),
    )


def _uptime_row(row: Row) -> tuple[str, ...]:
    return (
        escape(job_name(row)),
        f"[{_COLOURS[row['state']]}]{row['status']}[/]",
        percent(row["uptime_percent"]),
        duration(row["down_ms"]),
        str(row["failures"]),
        str(row["restarts"]),
        duration(row["mttr_ms"]),
        duration(row["longest_outage_ms"]) if row["longest_outage_ms"] else "",
    )


def _sla_table() -> Table:
    return _table(
        "Checkpoints against the SLA, the worst first",
        "application / query",
        "SLA",
        "met",
        "completed",
        "late by\nduration",
        "late by\ngap",
        "failed",
        "slowest",
        "longest\ngap",
        left=("application / query",),
    )


def _sla_row(row: Row) -> tuple[str, ...]:
    overdue = " [bold red]overdue[/]" if row["overdue"] else ""
    return (
        escape(job_name(row)) + overdue,
        duration(row["sla_ms"]),
        percent(row["met_percent"]),
        f"{row['completed']:,}",
        f"{row['late_by_duration']:,}",
        f"{row['late_by_gap']:,}",
        f"{row['failed']:,}",
        duration(row["worst_duration_ms"]),
        duration(row["worst_gap_ms"]),
    )


def _failure_table() -> Table:
    left = ("what", "error", "last (UTC)")
    return _table("Failures, the latest first", "count", *left, left=left)


def _by_error(failures: list[Row]) -> list[Row]:
    """Join the days of each error; the message is that of the last."""
    found: dict[tuple[str, ...], Row] = {}
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for row in failures:
        key = tuple(row[name] for name in ("kind", "app_name", "query_name", "error", "labels"))
        counts[key] += row["count"]
        if key not in found or row["last_ms"] >= found[key]["last_ms"]:
            found[key] = row
    joined = [{**row, "count": counts[key]} for key, row in found.items()]
    return sorted(joined, key=lambda row: (-row["last_ms"], -row["count"]))


def _failure_row(row: Row) -> tuple[str, ...]:
    return (
        f"{row['count']:,}",
        f"{row['kind']} {escape(job_name(row))}",
        "\n".join(escape(text) for text in (row["error"], row["labels"], row["message"]) if text),
        moment(row["last_ms"]),
    )
