"""What is said of a query that failed: why, when, whether it has recovered; without Spark's words around it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from spark_events.cli.sql.views import show_result, show_status
from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.deployer import DeployResult
from spark_events.sql_runner.deploy.query_row import QueryRow

_IDS = "[id = a170cded-2774-494e-b0d8-c2627b9f723a, runId = 432cc934-90c3-4fd1-8270-1a2bf9a411fc]"
_PLAN = (
    f"\n=== Streaming Query ===\nIdentifier: {_IDS}\nCurrent Committed Offsets: {{}}\n\nCurrent State: ACTIVE"
)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            f"[STREAM_FAILED] Query {_IDS} terminated with exception: [USER_RAISED_EXCEPTION] boom "
            f"SQLSTATE: P0001 SQLSTATE: XXKST{_PLAN}",
            "[USER_RAISED_EXCEPTION] boom",
        ),
        (
            "Job aborted due to stage failure: Task 0 in stage 70.0 failed 1 times, most recent failure: Lost "
            "task 0.0 in stage 70.0 (TID 71) (localhost executor driver): java.io.IOException: No space left"
            f"\n\tat x.y(Z.java:1)\n{_PLAN}",
            "RuntimeError: java.io.IOException: No space left",
        ),
        (
            "An error occurred while calling o104.start.\n: org.apache.hadoop.fs.ParentNotDirectoryException: "
            "Parent path is not a directory: file:/tmp/x\n\tat a.b(C.java:2)",
            "RuntimeError: org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: "
            "file:/tmp/x",
        ),
        (
            "An error occurred while calling o2.table.\n: java.util.concurrent.ExecutionException: "
            "org.apache.spark.sql.AnalysisException: rate is no source.\n\tat a.b(C.java:2)\n"
            "Caused by: org.apache.spark.sql.AnalysisException: rate is no source.\n\tat a.b(C.java:2)",
            "RuntimeError: org.apache.spark.sql.AnalysisException: rate is no source.",
        ),
        ("no words of Spark's around it", "RuntimeError: no words of Spark's around it"),
    ],
)
def test_the_reason_is_what_is_left(text: str, summary: str) -> None:
    assert error_summary(RuntimeError(text)) == summary


@pytest.mark.parametrize(
    ("state", "recovered", "told"),
    [
        ("RUNNING", True, "q: recovered; the last error, 2026-11-25 03:00:00 UTC: boom"),
        ("RESTARTING", False, "q: 2026-11-25 03:00:00 UTC: boom"),
    ],
)
def test_an_error_has_its_time(state: str, recovered: bool, told: str) -> None:
    row = QueryRow(
        "q", state, True, 1, "session 'x'", error="boom", error_ms=1_795_575_600_000, recovered=recovered
    )
    out = io.StringIO()

    show_status([row], Console(file=out, width=200))

    assert told in out.getvalue()


@pytest.mark.parametrize(
    ("savepoint", "said"),
    [
        ("savepoints/a/1/s", "ok a version 1: stop with a savepoint, savepoints/a/1/s"),
        ("", "ok a version 1: stop"),
    ],
)
def test_a_stop_says_whether_it_made_a_savepoint(savepoint: str, said: str) -> None:
    out = Console(file=io.StringIO(), width=160)
    show_result(DeployResult("a", Action.STOP, 1, "done", savepoint=savepoint), out)
    assert out.file.getvalue() == f"{said}\n"  # type: ignore[attr-defined]


def test_what_fails_is_called_what_it_was_to_be() -> None:
    """It may have made a savepoint before; a stop is one either way."""
    out = Console(file=io.StringIO(), width=160)
    for action in (Action.RESTART, Action.STOP):
        show_result(DeployResult("a", action, 1, "it hangs", failed=True), out)
    assert out.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "failed a version 1: stop with a savepoint, and start from it: it hangs",
        "failed a version 1: stop: it hangs",
    ]
