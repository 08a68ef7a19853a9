"""One story of a query, and what any reading of it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_events.history.history import read_history
from spark_events.history.reading.database import Database
from spark_events.history.reading.facts import COLUMNS
from tests.support.history_story import DAY, MIN, T0, Story


def told() -> Story:
    """A query that runs, fails, and is restarted."""
    return (
        Story()
        .application(0, "CREATED", "RUNNING")
        .query(MIN, "CREATED")
        .checkpoint(2 * MIN, 5_000, 60_000)
        .query(2 * MIN, "RUNNING")
        .failure(12 * MIN, "BOOM", "it broke", **{"failureLabel.team": "payments"})
        .query(12 * MIN, "FAILED")
        .run("run-2")
        .query(15 * MIN, "RESTARTING")
        .checkpoint(17 * MIN, 90_000, 15 * MIN)
        .query(17 * MIN, "RUNNING")
        .job(18 * MIN)
        .event(DAY, "AllSubtasksStatusChangeEvent", status="ALL_RUNNING_OR_FINISHED")
    )


def figures(database: Database, *paths: Path) -> dict[str, Any]:
    history, reading = read_history(database, [str(path) for path in paths])
    tables = history.tables()
    (query,) = [row for row in tables.uptime if row["kind"] == "query"]
    (sla,) = tables.checkpoint_sla
    (failure,) = tables.failures
    return {
        "up": query["up_ms"],
        "down": query["down_ms"],
        "mttr": query["mttr_ms"],
        "last_heard": query["last_heard_ms"],
        "met": (sla["met"], sla["completed"], sla["late_by_duration"], sla["late_by_gap"]),
        "failure": (failure["error"], failure["labels"], failure["message"], failure["date"]),
        "duplicates": reading.duplicates,
        "problems": reading.problems,
    }


def read(database: Database, *paths: Path) -> tuple[list[str], int, dict[str, int]]:
    """Return what is read at some paths: see ``read_texts``."""
    return read_texts(database, *map(str, paths))


def read_texts(database: Database, *paths: str) -> tuple[list[str], int, dict[str, int]]:
    """Return the facts that are read, each as text, how many came twice, and what did not fit.

    The tables are made of the facts alone: where these are the same, so are the tables, and much sooner.
    """
    history, reading = read_history(database, paths)
    facts = database.rows(f"SELECT {', '.join(COLUMNS)} FROM {history.facts}")
    return sorted(str(tuple(fact)) for fact in facts), reading.duplicates, reading.problems


EXPECTED = {
    "up": 10 * MIN + DAY - 17 * MIN,
    "down": 5 * MIN,
    "mttr": 5 * MIN,
    "last_heard": T0 + 17 * MIN,
    "met": (1, 2, 1, 1),
    "failure": ("BOOM", "team=payments, type=USER", "it broke", "2026-11-20"),
    "duplicates": 0,
    "problems": {},
}
