"""What events say of failures of real actions, queries and executors, live and in a replay."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import observed, replay
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.extended]
ACTIONS = APPS / "failing_actions.py"
SPARK_4 = not pyspark.__version__.startswith("3.")
PLACE = ("code.file.path", "code.line.number", "code.function.name")
BY_ONE_THREAD = {"exception.stacktrace", *PLACE}
"""What a log does not tell: where the driver's Python waited. Spark adds frames to a stack while it is written down."""


def line_of(mark: str) -> int:
    """Return the line of the application that a comment marks."""
    lines = ACTIONS.read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    return number


class Told:
    """An application that has ended, and both accounts of its events."""

    def __init__(self, folder: Path, app: str, *options: str) -> None:
        conf, _ = observed(folder)
        self.logs = folder / "logs"
        self.run: AppRun = App(
            cli("run", *options, str(APPS / app), str(folder)),
            {**conf, "spark.sql.ansi.enabled": "true"},
            folder,
        ).end()
        assert self.run.code == 0, self.run.err[-3000:]
        self.live = file_events(folder / "live")
        self.replayed = {event["eventId"]: event for event in replay(self.logs, folder / "replayed")}

    def failures(self, kind: str) -> list[dict[str, Any]]:
        """Return the failures of a kind of job, with their bodies."""
        events = of_name(self.live, "JobFailureEvent", job_kind=kind)
        return [{"body": event["body"], **event["attributes"]} for event in events]

    def unlike_in_the_replay(self) -> set[str]:
        """Return which attributes of failures a replay gives otherwise."""
        different = set()
        for event in of_name(self.live, "JobFailureEvent"):
            other = self.replayed[event["eventId"]]
            assert event["body"] == other["body"]
            mine, its = event["attributes"], other["attributes"]
            different |= {key for key in mine.keys() | its.keys() if mine.get(key) != its.get(key)}
        return different


@pytest.fixture(scope="module")
def told(java: str, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("failing"), ACTIONS.name)


@pytest.fixture(scope="module")
def fetched(java: str, tmp_path_factory: pytest.TempPathFactory) -> Told:
    with pytest.MonkeyPatch.context() as patch:
        # Where a cluster on this machine finds the scripts to start executors with.
        patch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
        folder = tmp_path_factory.mktemp("fetched")
        return Told(folder, "fetch_failed.py", "--master", "local-cluster[2,1,1024]")


def place(failure: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(failure.get(name) for name in PLACE)


def test_errors_of_sql_have_their_class_and_place(told: Told) -> None:
    """That of the expression, where Spark names it, or else that of the action."""
    raised, divided, cast, *_ = told.failures("job")
    assert raised["body"] == "job 0 failed: SparkRuntimeException: bad row"
    assert raised["exception.type"] == "org.apache.spark.SparkRuntimeException"
    assert place(raised) == (str(ACTIONS), line_of("save"), "save")
    assert divided["body"].startswith("job 1 failed: SparkArithmeticException: Division by zero.")
    expression = (str(ACTIONS), line_of("expression"), None) if SPARK_4 else place(raised)
    assert place(divided) == expression
    assert cast["body"].startswith("job 2 failed: SparkNumberFormatException: The value 'a")
    assert place(cast) == (str(ACTIONS), line_of("collect"), "cast")
    assert {failure["failureLabel.type"] for failure in (raised, divided, cast)} == {"USER"}


def test_of_two_threads_at_once_neither_gets_the_place_of_the_other(told: Told) -> None:
    """The first began alone; when the second began, either may have begun it."""
    by_message = {failure["exception.message"]: failure for failure in told.failures("job")}
    assert place(by_message["late 0"]) == (str(ACTIONS), line_of("held"), "save_held")
    assert place(by_message["beside"]) == (None, None, None)


def test_a_python_worker_that_was_killed(told: Told) -> None:
    killed, watched = (failure for failure in told.failures("job") if "Python worker" in failure["body"])
    assert "a crash in native code looks the same" in killed["body"]
    assert "would have been written down" in watched["body"] or not SPARK_4
    assert "Most likely it was killed (SIGKILL) because memory ran out" in killed["body"]
    assert killed["failureLabel.type"] == "SYSTEM"
    assert "SIGKILL" not in killed["exception.stacktrace"], "that is Spark's own text"
    assert place(killed) == (str(ACTIONS), line_of("save"), "save")


def test_a_foreach_batch_function(told: Told) -> None:
    (failure,) = [each for each in told.failures("query") if each["query_name"] == "customers"]
    assert failure["body"] == "query 'customers' failed: KeyError: 'customer'"
    assert place(failure) == (str(ACTIONS), line_of("foreachBatch"), "unknown_customer")


def test_a_checkpoint_of_another_query_is_the_users(told: Told) -> None:
    """Another key to group by, and another operator."""
    failures = [each for each in told.failures("query") if each["query_name"] == "changed"]
    assert [failure["failureLabel.type"] for failure in failures] == ["USER", "USER"]
    assert "key schema does not match existing state key schema" in failures[0]["body"] or not SPARK_4
    assert "Streaming stateful operator name does not match" in failures[1]["body"]


def test_a_replay_tells_the_same(told: Told) -> None:
    """But for where the driver's Python waited."""
    assert told.unlike_in_the_replay() <= BY_ONE_THREAD
    found = of_name(list(told.replayed.values()), "JobFailureEvent", job_kind="job")
    (cast,) = [event["attributes"] for event in found if "cast to" in event["body"]]
    assert place(cast) == (str(ACTIONS), line_of("collect"), None), "Spark itself names this place"


def test_time_in_foreach_batch_is_the_micro_batchs(told: Told, tmp_path: Path) -> None:
    """Three batches take a second each in the user's function, after their job."""
    figures = tmp_path / "figures.json"
    command = cli("why", str(told.logs), "--json", str(figures))
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (application,) = json.loads(figures.read_text())["applications"]
    parts = application["parts"]
    assert parts["driver in a micro-batch"] >= 3_000


def test_a_stage_that_could_not_fetch_names_the_executor(fetched: Told) -> None:
    """And says why, as far as Spark does."""
    assert fetched.run.out.splitlines()[1] == "read again: [(0, 25), (1, 25), (2, 25), (3, 25)]"
    (failure,) = fetched.failures("stage")
    assert re.fullmatch(r"stage \d\.0 failed: (Metadata)?FetchFailedException: \S.*", failure["body"])
    assert failure["exception.message"]
    named = tuple(failure.get(f"executorLost.{name}") for name in ("id", "reason", "exitCode"))
    assert named == ("0", "killed", 137)
    assert fetched.unlike_in_the_replay() == set()
