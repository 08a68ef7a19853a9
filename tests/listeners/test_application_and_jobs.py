"""Applications, jobs and stages: records in, events out."""

from __future__ import annotations

import re

import pytest

from spark_events.listeners.spark_records import TABLE_TRANSITION
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, new_statuses, seen


def test_application_that_finishes() -> None:
    """CREATED and RUNNING with the start, FINISHED with the end; the time in RUNNING is told."""
    events = Feed()(r.application_start(), r.application_end(5_000, ExitCode=0)).end()

    assert new_statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert events[-1].attributes["oldJobStatusMs"] == 5_000
    assert events[-1].attributes["oldJobStatus"] == "RUNNING"
    assert events[-1].time_ms == T0 + 5_000
    assert "oldJobStatus" not in events[0].attributes


def test_application_that_fails_by_exit_code() -> None:
    """An exit code is a failure with one JobFailureEvent."""
    events = Feed()(r.application_start(), r.application_end(10, ExitCode=3)).end()
    (failure,) = seen(events, "JobFailureEvent")

    assert new_statuses(events, "application")[-1] == "FAILED"
    assert failure.attributes["exception.message"] == "the application ended with exit code 3"
    assert failure.attributes["isGlobalFailure"] == "true"


def test_application_that_ctrl_c_ends() -> None:
    """It failed, by nobody's fault: the text says what ended it."""
    raised = 'Traceback (most recent call last):\n  File "a.py", line 7, in <module>\nKeyboardInterrupt\n'
    end = r.application_end(10, ExitCode=130, SparkEventsExitSignal="SIGINT", Exception=raised)
    events = Feed()(r.application_start(), end).end()
    (failure,) = seen(events, "JobFailureEvent")

    assert new_statuses(events, "application")[-1] == "FAILED"
    assert failure.attributes["exception.type"] == "KeyboardInterrupt"
    assert failure.attributes["exception.message"] == "the driver was ended by SIGINT (Ctrl-C)"
    assert failure.attributes["failureLabel.type"] == "UNKNOWN"
    assert failure.body.endswith("failed: KeyboardInterrupt: the driver was ended by SIGINT (Ctrl-C)")


MOST, INTERVAL = "spark.yarn.maxAppAttempts", "spark.yarn.am.attemptFailuresValidityInterval"


@pytest.mark.parametrize(
    ("attempt", "conf", "told", "severity"),
    [
        ("1", {MOST: "2"}, "true", "WARN"),
        ("2", {MOST: "2"}, "false", "ERROR"),
        ("2", {MOST: "2", INTERVAL: "1h"}, None, "ERROR"),
        ("1", {}, None, "ERROR"),
        (None, {MOST: "2"}, "false", "ERROR"),
    ],
    ids=["attempts are left", "the last", "failures are forgotten", "only YARN knows", "client mode"],
)
def test_whether_yarn_starts_an_application_again(
    attempt: str | None, conf: dict[str, str], told: str | None, severity: str
) -> None:
    own = {} if attempt is None else {"App Attempt ID": attempt}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf}
    feed = Feed()(r.application_start(**own), environment, r.application_end(10, ExitCode=3))
    (failure,) = seen(feed.end(), "JobFailureEvent")

    assert failure.attributes.get("canRestart") == told
    assert failure.severity.name == severity


def test_yarn_starts_no_application_more_often_than_it_allows() -> None:
    """The application asks for five attempts, and has had the two that YARN's administrator allows."""
    environment = {
        "Event": "SparkListenerEnvironmentUpdate",
        "Spark Properties": {MOST: "5"},
        "Hadoop Properties": {"yarn.resourcemanager.am.max-attempts": "2"},
    }
    start = r.application_start(**{"App Attempt ID": "2"})
    feed = Feed()(start, environment, r.application_end(10, ExitCode=3))
    (failure,) = seen(feed.end(), "JobFailureEvent")
    assert failure.attributes["canRestart"] == "false"


def test_open_queries_end_with_the_application() -> None:
    """Nothing stays RUNNING forever in a history because Spark stopped first."""
    for end, status in ((r.application_end(900), "CANCELED"), (r.application_end(900, ExitCode=1), "FAILED")):
        feed = Feed()(r.application_start(), r.query_started(1), r.progress(2, 0), end)
        assert new_statuses(feed.end(), "query") == ["CREATED", "RUNNING", status]


def test_job_that_finishes_twice_known() -> None:
    """A job that was found running at attach, and whose JobStart comes as well, starts once."""
    events = Feed()(r.application_start(), r.job_start(1), r.job_start(1), r.job_end(50)).end()

    assert new_statuses(events, "job") == ["RUNNING", "FINISHED"]


@pytest.mark.parametrize(
    "message",
    [
        "[SPARK_JOB_CANCELLED] Job 3 cancelled Query was stopped SQLSTATE: XXKDA",
        "Job 3 cancelled part of cancelled job group abc",
        "Job 3 cancelled because SparkContext was shut down",
        "Job 3 cancelled ",
    ],
)
def test_cancelled_job_is_no_failure(message: str) -> None:
    """Cancellation, in the words of Spark 3 and 4, is CANCELED and no JobFailureEvent."""
    events = Feed()(r.application_start(), r.job_start(1), r.job_end(50, message=message)).end()

    assert new_statuses(events, "job") == ["RUNNING", "CANCELED"]
    assert seen(events, "JobFailureEvent") == []


def test_jobs_of_a_query_carry_its_name() -> None:
    """A job in the group of a query's run belongs to the query."""
    feed = Feed()(r.application_start(), r.query_started(1), r.job_start(2, group="run-1"), r.job_end(3))
    events = seen(feed.end(), "JobStatusChangeEvent", "job")

    assert [event.variables["query_name"] for event in events] == ["orders", "orders"]


def test_stage_that_is_tried_again() -> None:
    """A failed stage attempt is reported once it shows that Spark tries again, with the time it failed at."""
    fetch = "org.apache.spark.shuffle.FetchFailedException: lost\n\tat org.apache.spark.X.y(X.scala:1)"
    feed = Feed()(
        r.application_start(),
        r.job_start(1),
        r.stage("Submitted", 2),
        r.stage("Completed", 30, reason=fetch),
        r.stage("Submitted", 40, attempt=1),
        r.stage("Completed", 50, attempt=1),
        r.job_end(60),
    )
    (failure,) = seen(feed.end(), "JobFailureEvent")

    assert failure.attributes["job_kind"] == "stage"
    assert failure.attributes["canRestart"] == "true"
    assert failure.attributes["exception.type"] == "org.apache.spark.shuffle.FetchFailedException"
    assert failure.attributes["failureLabel.type"] == "SYSTEM"
    assert failure.time_ms == T0 + 30


def test_stage_that_fails_for_good_is_the_jobs_failure() -> None:
    """A stage that takes its job along is one failure, the job's."""
    feed = Feed()(
        r.application_start(),
        r.job_start(1),
        r.stage("Submitted", 2),
        r.stage("Completed", 30, reason="Job aborted due to stage failure"),
        r.job_end(31, message="Job aborted due to stage failure"),
    )

    assert [event.attributes["job_kind"] for event in seen(feed.end(), "JobFailureEvent")] == ["job"]


def test_all_subtasks() -> None:
    """Each change between all and not all is an event of its own id; the end of the stage is none."""
    feed = Feed()(
        r.application_start(),
        r.stage("Submitted", 0),
        r.stage_tasks(10, "ALL_RUNNING_OR_FINISHED", 1),
        r.stage_tasks(20, "NOT_ALL_RUNNING_OR_FINISHED", 2),
        r.stage_tasks(30, "ALL_RUNNING_OR_FINISHED", 3),
        r.stage_tasks(40, None, 3),
    )
    events = seen(feed.end(), "AllSubtasksStatusChangeEvent")

    assert [event.attributes["waitMs"] for event in events] == [10, 20, 30]
    assert len({event.id for event in events}) == 3
    assert events[0].attributes.items() >= {"status": "ALL_RUNNING_OR_FINISHED", "numTasks": 4}.items()


def test_ids_are_the_same_in_every_replay() -> None:
    """The same records give the same ids; another application or attempt gives others."""
    records = (r.job_start(1), r.job_end(50), r.application_end(60))
    first = [event.id for event in Feed()(r.application_start(), *records).end()]
    again = [event.id for event in Feed()(r.application_start(), *records).end()]
    attempt = [event.id for event in Feed()(r.application_start(**{"App Attempt ID": "2"}), *records).end()]

    assert first == again
    assert not set(first) & set(attempt)


def test_odd_records_cost_nothing_but_themselves(caplog: pytest.LogCaptureFixture) -> None:
    """A record that is not as it should be is skipped, and said once."""
    feed = Feed()(
        r.application_start(),
        {"Event": "SparkListenerJobStart"},
        {"Event": "SparkListenerJobStart", "Job ID": "x"},
        {"Event": "SomethingNew"},
        {},
        r.job_start(1, job=7),
        r.job_end(2, job=7),
    )

    assert new_statuses(feed.end(), "job") == ["RUNNING", "FINISHED"]
    assert "skipped a SparkListenerJobStart record" in caplog.text
    # One line for each kind of error, with its place; not a traceback, nor what follows from the first error.
    said = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [re.sub(r":\d+ ", ":n ", record.getMessage().partition("(repeats")[0]) for record in said] == [
        "skipped a SparkListenerJobStart record: KeyError('Job ID') at run.py:n ",
        "skipped a SparkListenerJobStart record: "
        "ValueError(\"invalid literal for int() with base 10: 'x'\") at run.py:n ",
    ]
    assert [record.exc_info for record in said] == [None, None]


def test_times_that_cannot_be_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Of a log from a clock in the year 9999, where all records have such times; each is counted."""
    late = [
        {**record, "Submission Time": 253_402_300_000_000} for record in (r.job_start(0), r.job_start(1, 1))
    ]
    feed = Feed()(r.application_start(), *late)
    assert feed.listeners.stumbled == 2
    assert caplog.text.count("is out of range") == 1
    assert "Traceback" not in caplog.text


def test_counts_and_gauges() -> None:
    """Events are counted by name, kind and status; jobs that run now are a gauge."""
    feed = Feed()(r.application_start(), r.job_start(1), r.job_start(1, job=1), r.job_end(2))
    events = feed.end()

    assert feed.gauge("app.activeJobs") == 1
    assert feed.gauge("app.RUNNING.status") == 1
    assert feed.gauge("app.CREATED.status") == 0
    assert feed.metrics is not None
    counted = {name: m.count for name, (m, _) in feed.metrics.metrics.items() if name.endswith(".events")}
    assert sum(counted.values()) == len(events)


def test_table_transaction_says_of_which_run() -> None:
    """Its event has the variables of all events of an application, its id among them."""
    transaction = {"txid": "t", "table": "sales", "state": "INTENT"}
    record = {"Event": TABLE_TRANSITION, "Timestamp": T0 + 1, "transaction": transaction}
    (event,) = seen(Feed()(r.application_start(), record).end(), "TableTransactionEvent")

    assert event.variables == {"app_name": "app", "app_id": "app-1"}
