"""What a JobFailureEvent says that no single record of Spark's has: the class, the place, the executor, the limits."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import AttributeValue
from spark_events.sources.ending import Ending
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen

DIVIDED = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
CRASHED = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "0.0 (TID 14) (localhost executor driver): org.apache.spark.SparkException: Python worker exited unexpectedly "
    "(crashed)"
)
FETCH_FAILED = (
    "org.apache.spark.shuffle.FetchFailedException: Failed to connect to /10.0.0.7:37711\n\tat a.B.c(B:1)"
)


def failure_of(feed: Feed, kind: str = "job") -> tuple[str, dict[str, AttributeValue]]:
    (event,) = seen(feed.end(), "JobFailureEvent", kind)
    return event.body, dict(event.attributes)


def last_state(ms: int, **thrown: str) -> dict[str, Any]:
    said = {key.replace("_", " "): value for key, value in thrown.items()}
    return {**r.stage_tasks(ms, None, 0), "Thrown By Task": said or None}


def began(job: dict[str, Any]) -> Feed:
    return Feed()(r.application_start(), job, r.stage("Submitted", 20))


def test_the_class_that_a_task_threw() -> None:
    """Spark 4 passes on only what a SQL error says, in the records of its stage and of its job."""
    feed = began(r.job_start(10))
    feed(last_state(30, Class="org.apache.spark.SparkArithmeticException"))
    feed(r.stage("Completed", 30, reason=DIVIDED), r.job_end(40, message=DIVIDED))
    body, attributes = failure_of(feed)
    assert body == "job 0 failed: SparkArithmeticException: Division by zero."
    assert attributes["exception.type"] == "org.apache.spark.SparkArithmeticException"


def test_the_cause_that_a_task_threw() -> None:
    """Spark 4 passes on neither the class nor the cause of what says only which file it was."""
    said = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.parquet.  SQLSTATE: KD001"
    )
    causes = "\nCaused by: java.lang.RuntimeException: file:/a.parquet is not a Parquet file\n\tat a.B.c(B:1)"
    feed = began(r.job_start(10))(last_state(30, Class="org.apache.spark.SparkException", Causes=causes))
    body, attributes = failure_of(feed(r.stage("Completed", 30, reason=said), r.job_end(40, message=said)))
    assert body == (
        "job 0 failed: SparkException: Encountered error while reading file file:///a.parquet: "
        "RuntimeException: file:/a.parquet is not a Parquet file"
    )
    assert attributes["exception.stacktrace"] == said + causes
    assert attributes["failureLabel.type"] == "USER"


def test_a_stage_that_has_failed_with_another_exception() -> None:
    """In Python, the first lines of all are the same: what the job fails with is its own."""
    thrown = "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    frame = '  File "app.py", line 3, in f\n    x\n'
    of_stage, of_job = f"{thrown}{frame}KeyError: 'stage'", f"{thrown}{frame}ValueError: job"
    feed = began(r.job_start(10))(last_state(30, Class="x.Other"))
    body, _ = failure_of(feed(r.stage("Completed", 30, reason=of_stage), r.job_end(40, message=of_job)))
    assert body.startswith("job 0 failed: ValueError: job")


def test_the_class_of_another_failure() -> None:
    """A stage that is tried again has not thrown what its job fails with."""
    feed = began(r.job_start(10))(last_state(30, Class="x.Other"), r.stage("Completed", 30, reason="other"))
    body, attributes = failure_of(feed(r.job_end(40, message=DIVIDED)))
    assert body == "job 0 failed: Division by zero."
    assert "exception.type" not in attributes


@pytest.mark.parametrize(
    ("removed", "named"),
    [("Command exited with code 137", ("1", "killed", 137)), (None, (None, None, None))],
    ids=["it is gone", "it lives"],
)
def test_the_executor_whose_data_could_not_be_fetched(
    removed: str | None, named: tuple[str | int | None, ...]
) -> None:
    """A stage whose attempt failed so is tried again; whether the executor is lost, its own record says."""
    feed = Feed()(
        r.application_start(), r.executor("Added", 0, "1"), r.job_start(10), r.stage("Submitted", 20)
    )
    if removed:
        feed(r.executor("Removed", 25, "1", **{"Removed Reason": removed}))
    feed(last_state(30, Fetched_From="1"), r.stage("Completed", 30, reason=FETCH_FAILED))
    body, attributes = failure_of(feed(r.stage("Submitted", 40, attempt=1)), "stage")
    assert body == "stage 0.0 failed: FetchFailedException: Failed to connect to /10.0.0.7:37711"
    assert tuple(attributes.get(f"executorLost.{name}") for name in ("id", "reason", "exitCode")) == named


@pytest.mark.parametrize(("also_gone", "named"), [((), "1"), (("2",), None)], ids=["one", "two"])
def test_data_of_which_spark_has_forgotten_where_it_was(
    also_gone: tuple[str, ...], named: str | None
) -> None:
    """It was on the executor that went while the stage ran, if that was only one."""
    missing = (
        "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 0"
    )
    feed = Feed()(r.application_start(), *(r.executor("Added", 0, number) for number in "0123"))
    gone = {"Removed Reason": "Command exited with code 137"}
    feed(r.executor("Removed", 15, "0", **gone), r.job_start(10), r.stage("Submitted", 20))
    feed(*(r.executor("Removed", 25, number, **gone) for number in ("1", *also_gone)))
    feed(r.stage("Completed", 30, reason=missing), r.stage("Submitted", 40, attempt=1))
    _, attributes = failure_of(feed, "stage")
    assert attributes.get("executorLost.id") == named


def test_a_job_that_fails_for_what_could_not_be_fetched() -> None:
    """So does the application that did not catch it."""
    feed = Feed()(
        r.application_start(), r.executor("Added", 0, "1"), r.job_start(10), r.stage("Submitted", 20)
    )
    feed(r.executor("Removed", 25, "1", **{"Removed Reason": "Executor Process Lost"}))
    feed(last_state(30, Fetched_From="1"), r.stage("Completed", 30, reason=FETCH_FAILED))
    too_often = (
        "x has failed the maximum allowable number of times: 4. Most recent failure reason:\n" + FETCH_FAILED
    )
    raised = (
        'Traceback (most recent call last):\n  File "/jobs/app.py", line 16, in <module>\n    rows.count()\n'
        f"py4j.protocol.Py4JJavaError: An error occurred.\n: org.apache.spark.SparkException: {too_often}"
    )
    end = r.application_end(50, **Ending(1, exception=raised).fields)
    events = seen(feed(r.job_end(40, message=too_often), end).end(), "JobFailureEvent")
    assert [event.body for event in events] == [
        f"{what} failed: FetchFailedException: Failed to connect to /10.0.0.7:37711"
        for what in ("job 0", "application 'app'")
    ]
    for event in events:
        names = ("executorLost.id", "executorLost.reason", "failureLabel.type")
        assert [event.attributes[name] for name in names] == ["1", "process_lost", "SYSTEM"]


def call(at_ms: int) -> dict[str, Any]:
    return {"file": "/jobs/app.py", "line": 7, "function": "save_all", "atMs": T0 + at_ms}


CALLED = ("/jobs/app.py", 7, "save_all")


@pytest.mark.parametrize(
    ("ended_ms", "call_site", "place"),
    [
        (40, None, CALLED),
        # Whoever waits then may wait for something else: the job is over.
        (12, None, (None, None, None)),
        (13, None, (None, None, None)),
        (40, "collect at /jobs/app.py:7", CALLED),
        (40, "collect at /jobs/lib.py:3", ("/jobs/lib.py", 3, None)),
        (13, "collect at /jobs/app.py:7", CALLED),
        (40, "save at NativeMethodAccessorImpl.java:0", CALLED),
    ],
)
def test_the_place_of_the_action(
    ended_ms: int, call_site: str | None, place: tuple[str | int | None, ...]
) -> None:
    """The place that Spark names, or else where the one Python thread waited while the job ran."""
    site = {"callSite__short": call_site} if call_site else {}
    feed = began({**r.job_start(10, **site), "SparkEventsPythonCall": call(12)})
    _, attributes = failure_of(feed(r.job_end(ended_ms, message="boom")))
    names = ("code.file.path", "code.line.number", "code.function.name")
    assert tuple(attributes.get(name) for name in names) == place


def test_a_failure_that_has_a_place_keeps_it() -> None:
    said = f'{DIVIDED}\n== DataFrame ==\n"div" was called from\n/jobs/columns.py:3\n'
    feed = began({**r.job_start(10), "SparkEventsPythonCall": call(12)})
    _, attributes = failure_of(feed(r.job_end(40, message=said)))
    assert (attributes["code.file.path"], attributes["code.line.number"]) == ("/jobs/columns.py", 3)
    assert "code.function.name" not in attributes


@pytest.mark.parametrize(
    ("conf", "said", "limits"),
    [
        (
            {"spark.master": "yarn", "spark.executor.memory": "2g"},
            "the container has 2.4 GiB, of which 384 MiB are memoryOverhead, spark.executor.pyspark.memory is not set",
            {"heap": 2 << 30, "overhead": 384 << 20, "container": (2 << 30) + (384 << 20)},
        ),
        (
            {"spark.master": "spark://m:7077", "spark.executor.pyspark.memory": "1g"},
            "no container of Spark's: the limit is that of the machine, or of a cgroup, spark.executor.pyspark.memory is 1 GiB",
            {"heap": 1 << 30, "python": 1 << 30},
        ),
    ],
    ids=["YARN", "standalone"],
)
def test_a_python_worker_that_ended_without_a_word(
    conf: dict[str, str], said: str, limits: dict[str, int]
) -> None:
    """Most likely for memory: the event says so, and what the limits are; Spark's own words are in the stack trace."""
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf}
    feed = Feed()(r.application_start(), environment, r.job_start(10), r.job_end(40, message=CRASHED))
    body, attributes = failure_of(feed)
    assert body.startswith(
        "job 0 failed: SparkException: Python worker exited unexpectedly (crashed). Most likely it was"
    )
    assert "killed (SIGKILL) because memory ran out" in body
    assert said in body
    assert body.endswith("a crash in native code looks the same.")
    assert attributes["failureLabel.type"] == "SYSTEM"
    assert attributes["exception.stacktrace"] == CRASHED
    assert {f"memoryLimit.{name}": size for name, size in limits.items()} == {
        name: value for name, value in attributes.items() if name.startswith("memoryLimit.")
    }


@pytest.mark.parametrize(
    ("written", "said", "label"),
    [
        (":", "would have been written down by Python's faulthandler.", "SYSTEM"),
        (
            ": Fatal Python error: Segmentation fault",
            "(crashed): Fatal Python error: Segmentation fault",
            "UNKNOWN",
        ),
        (". Consider a setting.", "looks the same. Consider a setting.", "SYSTEM"),
    ],
    ids=["nothing", "a crash", "it was not asked"],
)
def test_what_pythons_fault_handler_has_written_of_it(written: str, said: str, label: str) -> None:
    """Spark says it after a colon, where its setting lets Python write it down."""
    feed = Feed()(r.application_start(), r.job_start(10), r.job_end(40, message=CRASHED + written))
    body, attributes = failure_of(feed)
    assert body.endswith(said)
    assert ("SIGKILL" in body) == (label == "SYSTEM")
    assert attributes["failureLabel.type"] == label
