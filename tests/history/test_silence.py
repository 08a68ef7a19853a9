"""Runs that fall silent: not heard of, then lost, and what nobody can tell without heartbeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_events.history.history import read_history
from spark_events.history.options import Sla
from spark_events.history.reading.database import Database
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.report import collect
from spark_events.history.store.store import HistoryStore
from spark_events.history.tables.all_tables import Tables
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write


def tables_of(database: Database, folder: Path, *stories: Story, sla_ms: int = HOUR) -> Tables:
    return read_history(database, [str(write(folder / "log", *stories))], Sla(sla_ms))[0].tables()


def streaming(last_heard_ms: int = HOUR, app: str = "shop", every_ms: int = MIN) -> Story:
    """A query that runs, and whose application says that it lives until some moment."""
    story = Story(app, f"{app}-1").application(0, "CREATED", "RUNNING").query(0, "CREATED", "RUNNING")
    return story.checkpoint(0, 1, 1).heartbeats(0, last_heard_ms, every_ms)


def until(ms: int) -> Story:
    """Another application that is heard of at some moment, which the report goes to."""
    return Story("clock", "clock-1").application(ms, "CREATED", "RUNNING").heartbeats(ms, ms)


def states(tables: Tables, app: str = "shop") -> dict[str, list[tuple[str, str, int, int]]]:
    """Return status, state, and from when to when, in minutes, by kind of job."""
    found: dict[str, list[tuple[str, str, int, int]]] = {}
    for row in tables.status_intervals:
        if row["app_name"] == app:
            times = ((row[name] - T0) // MIN for name in ("start_ms", "end_ms"))
            found.setdefault(row["kind"], []).append((row["status"], row["state"], *times))
    return found


def row_of(tables: Tables, kind: str = "query", app: str = "shop") -> dict[str, Any]:
    (row,) = [row for row in tables.uptime if row["kind"] == kind and row["app_name"] == app]
    return row


@pytest.mark.parametrize(
    ("silent_minutes", "last"),
    [
        (2, ("RUNNING", "up", 0, 62)),
        (3, ("UNKNOWN", "unknown", 60, 63)),
        (9, ("UNKNOWN", "unknown", 60, 69)),
        (10, ("LOST", "down", 60, 70)),
        (90, ("LOST", "down", 60, 150)),
    ],
)
def test_silence(
    database: Database, tmp_path: Path, silent_minutes: int, last: tuple[str, str, int, int]
) -> None:
    """From when it was last heard of, for the application and its query, which says nothing itself."""
    tables = tables_of(database, tmp_path, streaming(), until(HOUR + silent_minutes * MIN))
    for kind in ("application", "query"):
        assert states(tables)[kind][-1] == last
        row = row_of(tables, kind)
        assert (row["last_heard_ms"], row["silent_ms"]) == (T0 + HOUR, silent_minutes * MIN)
        assert row["heartbeat_ms"] == MIN
        assert row["up_ms"] == (HOUR if last[1] != "up" else HOUR + silent_minutes * MIN)
        assert row["down_ms"] == (silent_minutes * MIN if last[1] == "down" else 0)
        assert row["unknown_ms"] == (silent_minutes * MIN if last[1] == "unknown" else 0)
        assert row["failures"] == row["outages"] == int(last[0] == "LOST")


def test_lost_has_a_line(duckdb: DuckDb, tmp_path: Path) -> None:
    """One, of the application, not of each of its queries as well; the checkpoint is overdue since."""
    tables = tables_of(duckdb, tmp_path, streaming(), until(3 * HOUR))
    (failure,) = tables.failures
    assert failure == {
        "date": "2026-11-20",
        "kind": "application",
        "app_name": "shop",
        "query_name": "",
        "error": "LOST",
        "exception": "",
        "labels": "",
        "count": 1,
        "first_ms": T0 + HOUR,
        "last_ms": T0 + HOUR,
        "message": "not heard of since 2026-11-20 01:00:00 UTC, without an end: killed, or its machine is gone",
    }
    (sla,) = tables.checkpoint_sla
    # It was idle for an hour, and owes nothing for that.
    assert (sla["overdue"], sla["worst_gap_ms"]) == (True, 2 * HOUR)


def test_a_query_that_is_lost_alone(duckdb: DuckDb, tmp_path: Path) -> None:
    """Its application goes on, and says that it lives; the query began again without an end."""
    story = streaming(DAY).run("run-2").query(HOUR, "RESTARTING").query(2 * HOUR, "RUNNING")
    tables = tables_of(duckdb, tmp_path, story)
    assert states(tables)["query"] == [
        ("RUNNING", "up", 0, 60),
        ("RESTARTING", "down", 60, 120),
        ("RUNNING", "up", 120, 1440),
    ]
    (failure,) = tables.failures
    assert (failure["kind"], failure["error"]) == ("query", "LOST")
    assert failure["message"] == "gone by 2026-11-20 01:00:00 UTC, without an end"
    assert (row_of(tables)["failures"], row_of(tables, "application")["failures"]) == (1, 0)


def test_an_outage_that_nobody_saw_end(duckdb: DuckDb, tmp_path: Path) -> None:
    """It failed, began again, and was not heard of since: that is not a recovery."""
    story = streaming().query(30 * MIN, "FAILED").run("run-2").query(31 * MIN, "RESTARTING")
    tables = tables_of(duckdb, tmp_path, story, until(HOUR + 5 * MIN))
    assert states(tables)["query"][-2:] == [("RESTARTING", "down", 31, 60), ("UNKNOWN", "unknown", 60, 65)]
    row = row_of(tables)
    assert (row["outages"], row["mttr_ms"], row["longest_outage_ms"]) == (1, None, 30 * MIN)


def test_silent_and_not_yet_overdue(duckdb: DuckDb, tmp_path: Path) -> None:
    tables = tables_of(duckdb, tmp_path, streaming(), until(HOUR + 30 * MIN))
    assert row_of(tables)["status"] == "LOST"
    assert not tables.checkpoint_sla[0]["overdue"]
    not_heard = tables_of(duckdb, tmp_path / "x", streaming(), until(HOUR + 5 * MIN), sla_ms=MIN)
    assert not not_heard.checkpoint_sla[0]["overdue"]


def test_a_restart_after_an_idle_night(database: Database, tmp_path: Path) -> None:
    """The outage is from when it was last heard of, to within a heartbeat: not the whole night."""
    story = streaming(8 * HOUR).driver("shop-2").application(8 * HOUR + 2 * MIN, "CREATED", "RUNNING")
    story.query(8 * HOUR + 2 * MIN, "RESTARTING").query(8 * HOUR + 3 * MIN, "RUNNING")
    tables = tables_of(database, tmp_path, story.heartbeats(8 * HOUR + 2 * MIN, 9 * HOUR))
    assert states(tables)["query"] == [
        ("RUNNING", "up", 0, 480),
        ("LOST", "down", 480, 482),
        ("RESTARTING", "down", 482, 483),
        ("RUNNING", "up", 483, 540),
    ]
    assert (row_of(tables)["restarts"], row_of(tables)["mttr_ms"]) == (1, 3 * MIN)
    assert (row_of(tables)["failures"], row_of(tables)["outages"]) == (1, 1)


def test_two_drivers_at_once(duckdb: DuckDb, tmp_path: Path) -> None:
    """The earlier one lives on, and says so: the end of the later one is not an outage."""
    first = streaming(2 * HOUR)
    later = Story("shop", "shop-2").application(HOUR, "CREATED", "RUNNING", "FINISHED")
    tables = tables_of(duckdb, tmp_path, first, later)
    assert states(tables)["application"] == [("RUNNING", "up", 0, 120)]
    first.events = [event for event in first.events if event["eventName"] != "HeartbeatEvent"]
    tables = tables_of(duckdb, tmp_path / "without", first, later, until(2 * HOUR))
    assert states(tables)["application"][-1] == ("FINISHED", "stopped", 60, 120)


@pytest.mark.parametrize("attempts", [(None, None), ("1", "2")])
def test_a_second_attempt_of_the_same_id(duckdb: DuckDb, tmp_path: Path, attempts: tuple[str, str]) -> None:
    """It does not make the first look alive; where nobody says which attempt it is, it has to."""
    story = Story("shop", "shop-1").attempt(attempts[0])
    story.application(0, "CREATED", "RUNNING").query(0, "RUNNING").checkpoint(10 * MIN, 1)
    story.heartbeats(0, 10 * MIN).attempt(attempts[1])
    story.application(20 * MIN, "CREATED", "RUNNING").checkpoint(30 * MIN, 1).heartbeats(20 * MIN, 30 * MIN)
    tables = tables_of(duckdb, tmp_path, story)
    first = states(tables)["query"]
    if attempts[0]:
        assert first == [("RUNNING", "up", 0, 10), ("LOST", "down", 10, 30)]
    else:
        assert first == [("RUNNING", "up", 0, 30)]


@pytest.mark.parametrize("interval_ms", [None, 0])
def test_without_heartbeats(duckdb: DuckDb, tmp_path: Path, interval_ms: int | None) -> None:
    """Silence may be idleness: it runs as far as is known, and the report says of how many."""
    story = Story().application(0, "CREATED", "RUNNING").query(0, "RUNNING")
    if interval_ms is not None:
        story.event(MIN, "HeartbeatEvent", intervalMs=interval_ms)
    folder = write(tmp_path / "log", story, until(DAY))
    history, reading = read_history(duckdb, [str(folder)])
    report = collect(history, history.tables(), [reading])
    assert {row["status"] for row in report.tables.uptime} == {"RUNNING"}
    (note,) = report.notes
    assert note.startswith("applications without heartbeats: 1 (")


def test_with_heartbeats_there_is_no_note(duckdb: DuckDb, tmp_path: Path) -> None:
    ended = Story("nightly").application(0, "CREATED", "RUNNING", "FINISHED")
    history, reading = read_history(duckdb, [str(write(tmp_path / "log", streaming(), ended))], Sla(HOUR))
    assert collect(history, history.tables(), [reading]).notes == []


def test_the_worst_first(duckdb: DuckDb, tmp_path: Path) -> None:
    """Lost, not heard of, down, and then what is up, whatever its downtime was."""
    failed = Story("failed", "failed-1").query(0, "RUNNING").query(MIN, "FAILED")
    recovered = Story("recovered", "r-1").query(0, "RUNNING", "FAILED").query(20 * HOUR, "RUNNING")
    stories = (failed, recovered, streaming(DAY - 5 * MIN, "unheard"), streaming(DAY - HOUR, "lost"))
    history, _ = read_history(duckdb, [str(write(tmp_path / "log", *stories, until(DAY)))])
    report = collect(history, history.tables(), [])
    order = list(dict.fromkeys(row["app_name"] for row in report.tables.uptime))
    assert order[:4] == ["lost", "unheard", "failed", "recovered"]


def test_heartbeats_are_one_fact_a_day(database: Database, tmp_path: Path) -> None:
    """A store is as small as without; days in it say the same as all at once, also once they are dropped."""
    stories = (streaming(2 * DAY + HOUR), until(2 * DAY + HOUR + 5 * MIN))
    folder = str(write(tmp_path / "log", *stories))
    history, reading = read_history(database, [folder])
    count = "SELECT count(*), max(duration_ms) FROM {} WHERE fact = 'heartbeat' AND app_name = 'shop'"
    assert list(map(tuple, database.rows(count.format(history.facts)))) == [(3, MIN)]
    assert (reading.facts, reading.duplicates, reading.own, reading.odd_numbers) == (7, 0, 0, 0)

    store = HistoryStore(database, str(tmp_path / "store"))
    for _ in range(2):
        store.add([folder])
    assert row_of(store.history().tables()) == row_of(history.tables())
    assert row_of(store.history().tables())["status"] == "UNKNOWN"
    assert store.retain(0) == ["2026-11-20", "2026-11-21"]
    kept = row_of(HistoryStore(database, str(tmp_path / "store")).history().tables())
    assert (kept["status"], kept["heartbeat_ms"], kept["up_ms"]) == ("UNKNOWN", MIN, HOUR)
    later = str(write(tmp_path / "later", until(3 * DAY)))
    store = HistoryStore(database, str(tmp_path / "store"))
    store.add([later])
    assert store.retain(0) == ["2026-11-22"]
    assert row_of(store.history().tables())["status"] == "LOST"
