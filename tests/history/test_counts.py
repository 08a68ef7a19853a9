"""What a report counts: failures, outages and restarts; each failure once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_events.history.history import read_history
from spark_events.history.reading.database import Database
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.table import Row
from spark_events.history.tables.all_tables import Tables
from spark_events.history.tables.failures import FAILURES
from tests.support.history_story import DAY, HOUR, MIN, Story, write

pytestmark = pytest.mark.extended

CRASH = "invalid literal for int() with base 10: 'n/a'"
PLACE = {"code.file.path": "/app/shop (new).py", "code.line.number": 7, "code.function.name": "<module>"}
PLACE_SAID = "(/app/shop (new).py:7, in <module>)"


def tables_of(database: Database, folder: Path, *stories: Story) -> Tables:
    return read_history(database, [str(write(folder / "log", *stories))])[0].tables()


def of_query(tables: Tables) -> Row:
    (row,) = [row for row in tables.uptime if row["kind"] == "query"]
    return row


def listed(tables: Tables) -> list[tuple[str, str, int]]:
    return sorted((row["kind"], row["error"], row["count"]) for row in tables.failures)


def test_three_failures_of_one_outage(database: Database, tmp_path: Path) -> None:
    """A query that fails, is restarted, and fails again before it is up: one outage, three failures."""
    story = Story().query(0, "CREATED", "RUNNING")
    for number in range(3):
        at = HOUR + number * MIN
        story.failure(at, "BOOM").query(at, "FAILED").run(f"run-{number + 2}").query(at + 1, "RESTARTING")
    story.query(2 * HOUR, "RUNNING").query(DAY + HOUR, "RUNNING")
    tables = tables_of(database, tmp_path, story)
    row = of_query(tables)
    assert (row["failures"], row["outages"], row["restarts"]) == (3, 1, 3)
    assert (row["mttr_ms"], row["mtbf_ms"]) == (HOUR, row["up_ms"])
    first, second = (row for row in tables.uptime_per_day if row["kind"] == "query")
    assert (first["failures"], first["outages"], first["restarts"]) == (3, 1, 3)
    assert (second["failures"], second["outages"], second["restarts"]) == (0, 0, 0)
    assert listed(tables) == [("query", "BOOM", 3)]


def test_failures_of_its_own(duckdb: DuckDb, tmp_path: Path) -> None:
    """Those of jobs, executors and of other queries are none of a query, nor of its application."""
    story = Story().application(0, "RUNNING").query(0, "RUNNING").query(0, "RUNNING", name="other")
    story.failure(HOUR, "BOOM", name="other").job_failure(HOUR, "DISK", query_name="orders")
    story.event(HOUR, "ExecutorLostEvent", reason="out_of_memory", job_kind="executor")
    rows = tables_of(duckdb, tmp_path, story).uptime
    counts = {(row["kind"], row["query_name"]): row["failures"] for row in rows}
    assert counts == {("application", ""): 0, ("query", "orders"): 0, ("query", "other"): 1}


def thrown(kind: str, error: str | None, exception: str | None, message: str, **more: Any) -> dict[str, Any]:
    attributes = {"errorClass": error, "exception.type": exception, "exception.message": message}
    return {"job_kind": kind, **attributes, **more}


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (thrown("query", "FOREACH", "ValueError", "no price"), "FOREACH", "ValueError: no price"),
        (thrown("query", "FOREACH", "a.B$C", "C: no price"), "FOREACH", "C: no price"),
        (thrown("query", "FOREACH", "KeyError", ""), "FOREACH", "KeyError"),
        (thrown("query", "ZERO", "org.apache.spark.SparkArithmeticException", "zero"), "ZERO", "zero"),
        (thrown("query", None, "ValueError", "no price"), "ValueError", "no price"),
        (thrown("query", None, "KeyboardInterrupt", "", **PLACE), "KeyboardInterrupt", PLACE_SAID),
    ],
)
def test_what_was_raised(
    database: Database, tmp_path: Path, failure: dict[str, Any], error: str, message: str
) -> None:
    """Where the error is Spark's condition, the message begins with the class."""
    story = Story().event(HOUR, "JobFailureEvent", query_name="orders", **failure)
    (row,) = tables_of(database, tmp_path, story).failures
    assert (row["error"], row["message"]) == (error, message)


def test_errors_that_one_condition_wraps(database: Database, tmp_path: Path) -> None:
    """Each class has a row of its own; those of Spark say no more than their condition."""
    story, spark = Story(), "org.apache.spark.SparkArithmeticException"
    for hour, raised in enumerate(("ValueError", "KeyError", "ValueError", spark, "pyspark.errors.Other"), 1):
        failure = thrown("query", "FOREACH", raised, "no price", eventId=str(hour))
        story.event(hour * HOUR, "JobFailureEvent", query_name="orders", **failure)
    rows = tables_of(database, tmp_path, story).failures
    counts = [(row["exception"], row["count"], row["message"]) for row in rows]
    assert sorted(counts) == [
        ("", 2, "no price"),
        ("KeyError", 1, "KeyError: no price"),
        ("ValueError", 2, "ValueError: no price"),
    ]
    assert len(FAILURES.on_terminal(rows)) == 3


@pytest.mark.parametrize(
    ("of_job", "of_owner"),
    [
        # As Spark and its Python say it: of a UDF, of SQL, of a stream.
        (
            thrown("job", "PYTHON_EXCEPTION", "ValueError", CRASH, **PLACE),
            thrown("application", None, "ValueError", CRASH, **PLACE),
        ),
        (
            thrown("job", "DIVIDE_BY_ZERO", None, "Division by zero.\n== SQL (line 1) ==\n1/0"),
            thrown(
                "application", "DIVIDE_BY_ZERO", "pyspark.errors.Arithmetic", "Division by zero.", **PLACE
            ),
        ),
        (
            thrown("stage", "PYTHON_EXCEPTION", "ValueError", "long " * 200),
            thrown("query", "PYTHON_EXCEPTION", "ValueError", "long " * 200, query_name="orders", **PLACE),
        ),
    ],
)
def test_the_same_failure(
    database: Database, tmp_path: Path, of_job: dict[str, Any], of_owner: dict[str, Any]
) -> None:
    """That of the job which is that of its application or query is not told again."""
    query = {"query_name": "orders"} if of_owner["job_kind"] == "query" else {}
    story = Story().event(HOUR, "JobFailureEvent", **of_job, **query)
    story.event(HOUR + 60, "JobFailureEvent", **of_owner)
    assert [(kind, count) for kind, _, count in listed(tables_of(database, tmp_path, story))] == [
        (of_owner["job_kind"], 1)
    ]


@pytest.mark.parametrize(
    "of_job",
    [
        {"ms": HOUR - 5_001},  # long before: the program went on
        {"ms": HOUR + 1},  # after it
        {"message": "another"},
        {"error": "OTHER"},
        {"query_name": "returns"},  # of another query
        {"app_id": "app-2"},
        {"app_attempt_id": "2"},
    ],
)
def test_another_failure(duckdb: DuckDb, tmp_path: Path, of_job: dict[str, Any]) -> None:
    whole = {"ms": HOUR - 1, "error": "BOOM", "query_name": "orders", **of_job}
    story = Story().failure(HOUR, "BOOM").job_failure(**whole)
    assert len(listed(tables_of(duckdb, tmp_path, story))) == 2


def test_drivers_that_ended_in_several_ways(duckdb: DuckDb, tmp_path: Path) -> None:
    """They raised nothing: each way to end is a failure of its own, in each place where it is shown."""
    by_sigterm, by_exit = (
        "the driver was ended by SIGTERM (exit code 143)",
        "the driver's JVM is gone (exit code 9)",
    )
    story = Story()
    for day, message in enumerate((by_sigterm, by_exit, by_sigterm)):
        for kind in ("application", "query"):
            failure = thrown(kind, None, None, message)
            story.event(day * DAY + HOUR, "JobFailureEvent", "orders" if kind == "query" else None, **failure)
    story.event(
        HOUR, "ExecutorLostEvent", job_kind="executor", reason="exit", executor_id="1", message="exit 1"
    )
    rows = tables_of(duckdb, tmp_path, story).failures
    assert len([row for row in rows if row["kind"] != "executor"]) == 6
    shown = FAILURES.on_terminal(rows)
    assert sorted(
        (row["kind"], row["message"], row["count"]) for row in shown if row["kind"] != "executor"
    ) == [
        ("application", by_sigterm, 2),
        ("application", by_exit, 1),
        ("query", by_sigterm, 2),
        ("query", by_exit, 1),
    ]


def test_a_program_that_tries_again(duckdb: DuckDb, tmp_path: Path) -> None:
    """Of three jobs that failed within a second, the last is what the application failed of."""
    story = Story()
    for number in range(3):
        story.job_failure(HOUR + number * 100, "BOOM")
    story.event(HOUR + 300, "JobFailureEvent", **thrown("application", "BOOM", None, "boom"))
    assert listed(tables_of(duckdb, tmp_path, story)) == [("application", "BOOM", 1), ("job", "BOOM", 2)]
