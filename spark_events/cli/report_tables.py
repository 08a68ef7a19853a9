"""The report on a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_events.api.toolkit.formatting import cost, duration, moment, percent
from spark_events.cli.console import plain, plain_lines, say
from spark_events.history.figures.tables import Row
from spark_events.history.report import Report, job_name

_MOST_ROWS = 40
_WIDE = 100
_COLOURS = {
    "up": "green",
    "down": "bold red",
    "failed": "bold red",
    "unknown": "bold magenta",
    "starting": "yellow",
    "stopped": "dim",
}
_COLOURS_OF_RUNS = {
    "FINISHED": "green",
    "FAILED": "bold red",
    "LOST": "bold red",
    "UNKNOWN": "bold magenta",
    "CANCELED": "dim",
}


class _TableColumn(NamedTuple):
    """A column: title, text of a row's cell, whether that is a number, whether it needs a wide terminal."""

    title: str
    cell: Callable[[Row], str]
    number: bool = True
    wide: bool = False


def print_report(report: Report, out: Console) -> None:
    """Print what a report has, except for its days and executors."""
    span = duration(report.until_ms - report.since_ms)
    say(
        f"[bold]{moment(report.since_ms)}[/] to [bold]{moment(report.until_ms)}[/] UTC ({span})",
        out,
    )
    jobs, runs = _with_ages(report)
    _print_table("Uptime, the worst first", _UPTIME, jobs, out)
    _print_table("Batch applications, those that failed last first", _RUNS, runs, out)
    _print_table("Checkpoints against the SLA, the worst first", _SLA, report.checkpoint_sla, out)
    _print_table("Failures, the latest first", _FAILURES, _by_error(report.failures), out)
    _print_table("What made it slow, the costliest first", _ISSUES, report.issues, out)
    _print_table("Slower than usual, the latest first", _SLOWER_RUNS, report.slower_runs, out)
    _print_table("Counted by tasks", _TASK_COUNTERS, report.task_counters, out)
    for note in report.notes:
        say(f"[yellow]note[/] {plain(note)}", out)


def _print_table(title: str, columns: Sequence[_TableColumn], rows: list[Row], out: Console) -> None:
    if not rows:
        return
    shown = [column for column in columns if out.width >= _WIDE or not column.wide]
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in shown:
        table.add_column(
            column.title,
            justify="right" if column.number else "left",
            overflow="fold",
            no_wrap=column.number,
            min_width=None if column.number else 10,
        )
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(column.cell(row) for column in shown))
    out.print(table)
    if len(rows) > _MOST_ROWS:
        out.print(f"… and {len(rows) - _MOST_ROWS:,} more: --json and --html have all")


def _with_ages(report: Report) -> tuple[list[Row], list[Row]]:
    """Return the rows of uptime, but for batch applications, and of runs, with their ages at the end."""
    batch = {row["app_name"] for row in report.runs}
    jobs = [
        {**row, "heard_ago_ms": report.until_ms - row["last_heard_ms"]}
        for row in report.uptime
        if row["app_name"] not in batch
    ]
    runs = [
        {**row, "ago_ms": None if row["last_start_ms"] is None else report.until_ms - row["last_start_ms"]}
        for row in report.runs
    ]
    return jobs, runs


def _by_error(failures: list[Row]) -> list[Row]:
    """Join the days of each error; the message is that of the last."""
    last_rows: dict[tuple[str, ...], Row] = {}
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for row in failures:
        key = tuple(row[name] for name in ("kind", "app_name", "query_name", "error", "labels"))
        counts[key] += row["count"]
        if key not in last_rows or row["last_ms"] >= last_rows[key]["last_ms"]:
            last_rows[key] = row
    joined = [{**row, "count": counts[key]} for key, row in last_rows.items()]
    return sorted(joined, key=lambda row: (-row["last_ms"], -row["count"]))


def _name(row: Row) -> str:
    return plain(job_name(row)) + (" [bold red]overdue[/]" if row.get("overdue") else "")


def _number(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:,}"


def _duration(name: str) -> Callable[[Row], str]:
    return lambda row: duration(row[name] or None)


def _ago(name: str) -> Callable[[Row], str]:
    """Return what says how long ago it was, in the largest unit."""

    def text(row: Row) -> str:
        if row[name] is None:
            return ""
        return "now" if row[name] < 1_000 else " ".join((*duration(row[name]).split(" ")[:2], "ago"))

    return text


def _minute(name: str) -> Callable[[Row], str]:
    return lambda row: moment(row[name])[5:16]


def _run_status(row: Row) -> str:
    return f"[{_COLOURS_OF_RUNS.get(row['last_status'], 'yellow')}]{row['last_status']}[/]"


def _error(row: Row) -> str:
    return "\n".join(plain_lines(text) for text in (row["error"], row["labels"], row["message"]) if text)


def _issue(row: Row) -> str:
    sentence = f"{_name(row)}: {plain(row['subject'] or '')}: {plain(row['message'] or '')}"
    return f"{sentence}\n[green]→[/] {plain(row['advice'] or '')}"


_UPTIME = (
    _TableColumn("application / query", _name, number=False),
    _TableColumn("status", lambda row: f"[{_COLOURS[row['state']]}]{row['status']}[/]", number=False),
    _TableColumn("uptime", lambda row: percent(row["uptime_percent"])),
    _TableColumn("down", _duration("down_ms")),
    _TableColumn("failures", _number("failures")),
    _TableColumn("outages", _number("outages"), wide=True),
    _TableColumn("restarts", _number("restarts"), wide=True),
    _TableColumn("last heard", _ago("heard_ago_ms")),
    _TableColumn("MTTR", _duration("mttr_ms"), wide=True),
    _TableColumn("longest\noutage", _duration("longest_outage_ms"), wide=True),
)
_RUNS = (
    _TableColumn("application", lambda row: plain(row["app_name"]), number=False),
    _TableColumn("last run", _run_status, number=False),
    _TableColumn("began\n(UTC)", _minute("last_start_ms")),
    _TableColumn("that is", _ago("ago_ms")),
    _TableColumn("took", _duration("last_duration_ms")),
    _TableColumn("usual", _duration("usual_ms"), wide=True),
    _TableColumn("runs", _number("runs"), wide=True),
    _TableColumn("ok", _number("ok")),
    _TableColumn("failed", _number("failed")),
    _TableColumn("canceled", _number("canceled"), wide=True),
    _TableColumn("last ok\n(UTC)", _minute("last_ok_end_ms"), wide=True),
)
_SLA = (
    _TableColumn("application / query", _name, number=False),
    _TableColumn("SLA", _duration("sla_ms")),
    _TableColumn("met", lambda row: percent(row["met_percent"])),
    _TableColumn("completed", _number("completed")),
    _TableColumn("late by\nduration", _number("late_by_duration")),
    _TableColumn("late by\ngap", _number("late_by_gap")),
    _TableColumn("failed", _number("failed"), wide=True),
    _TableColumn("slowest", _duration("worst_duration_ms"), wide=True),
    _TableColumn("longest\ngap", _duration("worst_gap_ms"), wide=True),
)
_FAILURES = (
    _TableColumn("count", _number("count")),
    _TableColumn("what", lambda row: f"{plain(row['kind'])} {_name(row)}", number=False),
    _TableColumn("error", _error, number=False),
    _TableColumn("last (UTC)", lambda row: moment(row["last_ms"])),
)
_SLOWER_RUNS = (
    _TableColumn(
        "application", lambda row: f"{plain(row['app_name'])}\n{plain(row['app_id'])}", number=False
    ),
    _TableColumn("started (UTC)", lambda row: moment(row["start_ms"])),
    _TableColumn("took", _duration("duration_ms")),
    _TableColumn("usual", _duration("usual_ms")),
    _TableColumn("what is new", lambda row: plain(row["changed"]), number=False),
)
_TASK_COUNTERS = (
    _TableColumn("application / query", _name, number=False),
    _TableColumn("counter", lambda row: plain(row["counter"]), number=False),
    _TableColumn("labels", lambda row: plain(row["labels"]), number=False),
    _TableColumn("count", _number("count")),
    _TableColumn("last reported (UTC)", lambda row: moment(row["last_ms"]), wide=True),
)
_ISSUES = (
    _TableColumn("issue", lambda row: plain(row["issue"] or ""), number=False),
    _TableColumn("cost", lambda row: cost(row["lost_ms"], row["lost_bytes"])),
    _TableColumn("what", _issue, number=False),
)
