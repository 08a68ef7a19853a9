"""Batch applications have runs, not uptime: did it run, was it fine, how long did it take?"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from spark_events.cli.reports.tables import print_report
from spark_events.history.history import read_history
from spark_events.history.options import ReportOptions
from spark_events.history.page.live_page import LivePage, View
from spark_events.history.reading.database import Database
from spark_events.history.reading.local_files import state_of_files
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.report import Report, collect
from spark_events.history.selection import Selection
from spark_events.history.tables.all_tables import Tables
from spark_events.history.tables.uptime import FIGURES
from spark_events.history.verdict import broken_rules
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write

NIGHTS = ("FINISHED", "FINISHED", "FINISHED", "CANCELED", "FAILED")


def nightly(*ends: str, name: str = "nightly") -> Story:
    """A job that runs at two, for an hour and as many minutes as nights."""
    story = Story(name)
    for night, status in enumerate(ends):
        at = night * DAY + 2 * HOUR
        story.driver(f"{name}-{night}").application(at, "CREATED", "RUNNING")
        story.heartbeats(at, at + HOUR + night * MIN)
        if status == "FAILED":
            story.event(at + HOUR, "JobFailureEvent", errorClass="DISK")
        if status in ("FINISHED", "FAILED", "CANCELED"):
            story.application(at + HOUR + night * MIN, status)
    return story


def clock(ms: int) -> Story:
    return Story("clock", "clock-1").application(ms, "CREATED", "RUNNING").heartbeats(ms, ms)


def tables_of(database: Database, folder: Path, *stories: Story, span_ms: int | None = None) -> Tables:
    return read_history(
        database, [str(write(folder / "log", *stories))], selection=Selection(span_ms=span_ms)
    )[0].tables()


def report_of(database: DuckDb, folder: Path, *stories: Story) -> Report:
    history, reading = read_history(database, [str(write(folder / "log", *stories))])
    return collect(history, history.tables(), [reading])


def test_runs(database: Database, tmp_path: Path) -> None:
    tables = tables_of(database, tmp_path, nightly(*NIGHTS), clock(5 * DAY))
    row = next(row for row in tables.runs if row["app_name"] == "nightly")
    assert row == {
        "app_name": "nightly",
        "runs": 5,
        "ok": 3,
        "failed": 1,
        "canceled": 1,
        "running": 0,
        "unknown": 0,
        "last_status": "FAILED",
        "last_start_ms": T0 + 4 * DAY + 2 * HOUR,
        "last_end_ms": T0 + 4 * DAY + 3 * HOUR + 4 * MIN,
        "last_duration_ms": HOUR + 4 * MIN,
        "usual_ms": HOUR + MIN,
        "last_ok_end_ms": T0 + 2 * DAY + 3 * HOUR + 2 * MIN,
    }


def test_a_failed_night_is_no_downtime(duckdb: DuckDb, tmp_path: Path) -> None:
    """Nobody expects it to run until the next night: there is no uptime of it, in all or by day."""
    tables = tables_of(duckdb, tmp_path, nightly("FAILED", "FAILED", "FINISHED"), clock(5 * DAY))
    (row,) = [row for row in tables.uptime if row["app_name"] == "nightly"]
    names = [column.name for column in FIGURES]
    assert {name: row[name] for name in names} == {**dict.fromkeys(names), "failures": 2}
    days = [row for row in tables.uptime_per_day if row["app_name"] == "nightly"]
    assert [row["failures"] for row in days] == [1, 1, 0, 0, 0]
    assert {row["uptime_percent"] for row in days} == {None}
    states = [row["state"] for row in tables.status_intervals if row["app_name"] == "nightly"]
    assert states == ["up", "failed", "up", "failed", "up", "stopped"]


@pytest.mark.parametrize(
    ("silent", "status", "counts"),
    [(MIN, "RUNNING", (1, 0, 0)), (5 * MIN, "UNKNOWN", (0, 1, 0)), (HOUR, "LOST", (0, 0, 1))],
)
def test_a_run_that_goes_on(
    duckdb: DuckDb, tmp_path: Path, silent: int, status: str, counts: tuple[int, int, int]
) -> None:
    """Or may, or was killed: that counts as failed."""
    tables = tables_of(duckdb, tmp_path, nightly("FINISHED", ""), clock(DAY + 3 * HOUR + MIN + silent))
    row = next(row for row in tables.runs if row["app_name"] == "nightly")
    assert (row["last_status"], row["running"], row["unknown"], row["failed"]) == (status, *counts)
    assert row["last_end_ms"] == (T0 + DAY + 3 * HOUR + MIN if status == "LOST" else None)
    assert [failure["error"] for failure in tables.failures] == (["LOST"] if status == "LOST" else [])


@pytest.mark.parametrize(("first", "second"), [("FINISHED", "FAILED"), ("FAILED", "FINISHED")])
def test_runs_that_overlap(duckdb: DuckDb, tmp_path: Path, first: str, second: str) -> None:
    """The one that began last is the last one in each table, though it ended first."""
    story = Story("twin", "twin-1").application(0, "RUNNING").heartbeats(0, HOUR)
    story.driver("twin-2").application(10 * MIN, "RUNNING").application(20 * MIN, second)
    story.driver("twin-1").application(HOUR, first)
    report = report_of(duckdb, tmp_path, story, clock(HOUR + MIN))
    (run,) = [row for row in report.tables.runs if row["app_name"] == "twin"]
    (row,) = [row for row in report.tables.uptime if row["app_name"] == "twin"]
    assert (run["last_status"], row["status"]) == (second, second)
    assert broken_rules(report, ["down"]) == ({"down": ["twin"]} if second == "FAILED" else {})


def test_a_window(duckdb: DuckDb, tmp_path: Path) -> None:
    """Counts are of the time that is asked for; when it last ran, and what is usual, is known for longer."""
    span_ms = DAY + HOUR
    tables = tables_of(duckdb, tmp_path, nightly(*NIGHTS), clock(5 * DAY + 2 * HOUR), span_ms=span_ms)
    row = next(row for row in tables.runs if row["app_name"] == "nightly")
    assert (row["runs"], row["failed"], row["ok"], row["usual_ms"]) == (1, 1, 0, HOUR + MIN)
    assert row["last_ok_end_ms"] == T0 + 2 * DAY + 3 * HOUR + 2 * MIN


def test_the_last_run_is_not_compared_with_itself(duckdb: DuckDb, tmp_path: Path) -> None:
    (row,) = tables_of(duckdb, tmp_path, nightly("FINISHED")).runs
    assert (row["last_duration_ms"], row["usual_ms"]) == (HOUR, None)
    (row,) = tables_of(duckdb, tmp_path, nightly("FINISHED", "FAILED", "FINISHED")).runs
    assert (row["last_duration_ms"], row["usual_ms"]) == (HOUR + 2 * MIN, HOUR)


def test_one_that_ever_had_a_query_is_none(duckdb: DuckDb, tmp_path: Path) -> None:
    story = nightly("FINISHED", "FAILED").driver("nightly-0").query(3 * HOUR, "RUNNING")
    tables = tables_of(duckdb, tmp_path, story, clock(2 * DAY))
    assert [row["app_name"] for row in tables.runs] == ["clock"]
    row = next(row for row in tables.uptime if row["app_name"] == "nightly" and row["kind"] == "application")
    assert (row["state"], row["uptime_percent"] is None) == ("down", False)


def test_on_the_terminal(duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Did it run today? When, how long it took; no uptime."""
    monkeypatch.setenv("COLUMNS", "80")
    stories = (
        nightly("FINISHED", "FINISHED"),
        nightly("FINISHED", "FAILED", name="weekly"),
        clock(DAY + 4 * HOUR),
    )
    out = io.StringIO()
    print_report(report_of(duckdb, tmp_path, *stories), Console(file=out, width=80))
    text = out.getvalue()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Uptime, the worst first" not in text
    rows = lines[lines.index("Batch applications, those that failed last first") :]
    assert rows[5:8] == [
        "weekly FAILED 11-21 02:00 1 h 1 min 1 1",
        "clock RUNNING 11-21 04:00 0 0",
        "nightly FINISHED 11-21 02:00 1 h 1 min 2 0",
    ]


def test_on_the_live_page(tmp_path: Path) -> None:
    """What failed last stands beside what is down; the latter in its own words."""
    down = Story("shop").query(0, "RUNNING").query(HOUR, "FAILED")
    lost = (
        Story("clicks").application(0, "CREATED", "RUNNING").query(0, "RUNNING", name="c").heartbeats(0, HOUR)
    )
    folder = write(tmp_path / "log", nightly("FAILED"), down, lost, clock(DAY))
    page = LivePage(ReportOptions((str(folder),)), 0.0, lambda: state_of_files([str(folder)]))
    first_line = page.html(View()).partition('id="now">')[2].partition("</span>")[0]
    assert first_line == "2 lost: clicks, clicks / c; 1 down: shop / orders; 1 failed: nightly"
    assert page.html(View(app="nightly")).partition('id="now">')[2].startswith("1 failed: nightly<")
