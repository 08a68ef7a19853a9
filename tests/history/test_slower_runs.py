"""Runs of batch applications against the runs before them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spark_events.cli.reports.tables import print_report
from spark_events.history.history import read_history
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.report import collect
from tests.support.history_story import HOUR, MIN, T0, Story, write

EVERY = 2 * HOUR
SKEW = {"issue": "skew", "subject": "stage 4.0", "summary": "task 3 reads", "advice": "salt"}


def hourly(*minutes: float, name: str = "hourly") -> Story:
    """Return a job that runs every two hours, for so many minutes."""
    story = Story(name)
    for number, lasts in enumerate(minutes):
        story.driver(f"app-{number}").application(number * EVERY, "CREATED", "RUNNING")
        story.application(number * EVERY + int(lasts * MIN), "FINISHED")
    return story


def slower(duckdb: DuckDb, folder: Path, *stories: Story) -> list[dict[str, Any]]:
    history, _ = read_history(duckdb, [str(write(folder / "log", *stories))])
    return history.tables().slower_runs


def test_a_run_that_takes_much_longer(duckdb: DuckDb, tmp_path: Path) -> None:
    """With what was reported of it, and was not before."""
    story = hourly(10, 11, 10, 9, 12, 10, 18.5, 10)
    about = {"job_kind": "stage", "lostMs": 7 * MIN, **SKEW}
    usual = {"job_kind": "stage", "lostMs": MIN, **SKEW, "issue": "spill"}
    executor = {"job_kind": "executor", "executor_id": "3", "host": "node-7"}
    for number in (2, 6):
        story.driver(f"app-{number}").event(number * EVERY + MIN, "PerformanceIssueEvent", **usual)
    story.event(6 * EVERY + 2 * MIN, "PerformanceIssueEvent", **about)
    story.event(6 * EVERY + 3 * MIN, "ExecutorLostEvent", reason="out_of_memory", **executor)

    assert slower(duckdb, tmp_path, story) == [
        {
            "app_name": "hourly",
            "app_id": "app-6",
            "start_ms": T0 + 6 * EVERY,
            "duration_ms": int(18.5 * MIN),
            "usual_ms": 10 * MIN,
            "p95_ms": 12 * MIN,
            "compared": 6,
            "changed": "skew (7 min): stage 4.0; lost executors: 1, before at most 0",
        }
    ]


@pytest.mark.parametrize(
    "minutes",
    [
        (10, 11, 10, 9, 12, 10, 18),  # 1.5 times the longest of them, and not more
        (10, 10, 10, 10, 60),  # too few to compare with
        (0.1, 0.1, 0.1, 0.1, 0.1, 0.5),  # five times as long, and it costs nobody anything
        (10, 10, 30, 10, 10, 10, 10, 40),  # it was as long before
    ],
)
def test_silent(duckdb: DuckDb, tmp_path: Path, minutes: tuple[float, ...]) -> None:
    assert slower(duckdb, tmp_path, hourly(*minutes)) == []


def test_only_the_last_twenty_count(duckdb: DuckDb, tmp_path: Path) -> None:
    """A job that once took an hour is compared with what it has taken since."""
    assert slower(duckdb, tmp_path, hourly(60, 60, *[10] * 18, 40)) == []
    (row,) = slower(duckdb, tmp_path / "later", hourly(60, 60, *[10] * 19, 40))
    assert (row["app_id"], row["compared"], row["changed"]) == ("app-21", 20, "")


def test_runs_that_say_nothing_of_their_length(duckdb: DuckDb, tmp_path: Path) -> None:
    """Those that failed, those whose start is not known, those with streaming queries, those of other names."""
    story = hourly(10, 10, 10, 10, 10)
    story.driver("app-7").application(7 * EVERY, "RUNNING").application(7 * EVERY + 90 * MIN, "FAILED")
    story.driver("app-8").application(8 * EVERY, "FINISHED")
    other = hourly(90, name="weekly")
    streaming = hourly(10, 10, 10, 10, 10, 90, name="streaming")
    for number in range(6):
        streaming.driver(f"app-{number}").query(number * EVERY + MIN, "RUNNING")
    assert slower(duckdb, tmp_path, story, other, streaming) == []


def test_on_the_terminal_and_on_the_page(duckdb: DuckDb, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from spark_events.history.page.page import page

    stories = hourly(10, 11, 10, 9, 12, 60), hourly(10, 11, 10, 9, 12, 11, name="weekly")
    history, reading = read_history(duckdb, [str(write(tmp_path / "log", *stories))])
    report = collect(history, history.tables(), [reading])
    out = io.StringIO()
    print_report(report, Console(file=out, width=120))
    table = out.getvalue().partition("Slower than usual")[2]
    (line,) = [line for line in table.splitlines() if "20 10:00:00" in line]
    assert line.split()[0] == "hourly"
    assert line.split()[-4:] == ["1", "h", "10", "min"]
    table = page(report).partition('<table id="slower-runs">')[2].partition("</table>")[0]
    assert table.count("<tr>") == 2
    assert '<td class="bad">1 h</td><td>10 min</td><td>12 min</td><td>5</td>' in table
