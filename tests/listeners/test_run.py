"""What belongs to what in a run: one rule each."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.listeners.run import Run
from spark_events.listeners.spark_listeners import Dispatcher
from tests.support import spark_records as r
from tests.support.spark_records import Feed


def handed(*records: dict[str, Any], run: Run | None = None) -> Run:
    """Return a run that was told of some records."""
    run = run or Run()

    def fail(name: str, error: Exception) -> None:
        raise error

    dispatcher = Dispatcher([run], fail)
    for record in records:
        dispatcher.hand(record["Event"], record, 1_000)
    return run


def job(number: int, *stages: int, **properties: str) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": stages, "Properties": named}


def execution(number: int, root: int | None = None, description: str = "collect") -> dict[str, Any]:
    name = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    return {"Event": name, "executionId": number, "rootExecutionId": root, "description": description}


def test_a_stage_works_for_the_job_that_began_first() -> None:
    """A later job that needs its shuffle data waits for it, and gets it when the first one has ended."""
    run = handed(job(0, 1, 2), job(1, 2, 3))
    first, second = run.jobs[0], run.jobs[1]
    assert run.job_of(2) is first
    assert list(run.jobs_of(2)) == [first, second]

    handed({"Event": "SparkListenerJobEnd", "Job ID": 0}, run=run)
    assert run.job_of(2) is second
    assert run.job_of(1) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²", "9" * 5_000])
def test_a_job_whose_execution_is_no_number_is_of_none(text: str) -> None:
    """It is a local property, which anybody may set."""
    run = handed(job(0, 1, spark_sql_execution_id=text), job(1, 2, spark_sql_execution_root_id=text))
    assert [each.execution for each in run.jobs.values()] == [None, None]


def test_a_job_is_of_the_outermost_execution() -> None:
    """Spark names both: the one it runs in, and the root of it. What is within another has none of its own."""
    run = handed(
        execution(4),
        execution(5, root=4),
        job(0, 1, spark_sql_execution_id="5", spark_sql_execution_root_id="4"),
    )
    of_job = run.execution_of(run.jobs[0])
    assert of_job is not None
    assert of_job.id == 4
    assert list(run.executions) == [4]


def test_a_job_without_an_execution() -> None:
    """A plain RDD's has none; one of an execution that began before anybody listened has none that is known."""
    run = handed(job(0, 1), job(1, 2, spark_sql_execution_id="7"))
    assert run.execution_of(run.jobs[0]) is None
    assert run.execution_of(run.jobs[1]) is None
    assert run.jobs[1].execution == 7


def test_a_job_works_for_the_query_of_its_group() -> None:
    """As long as that run of the query goes on."""
    run = handed(
        r.query_started(0), job(0, 1, spark_jobGroup_id="run-1"), job(1, 2, spark_jobGroup_id="mine")
    )
    assert run.jobs[0].query == {"query_name": "orders"}
    assert run.jobs[1].query == {}
    handed(r.terminated(), run=run)
    assert run.query_of("run-1") == {}


def test_nothing_stays() -> None:
    """What has ended is forgotten; what ends twice, or was never seen to begin, does no harm."""
    ended = {"Event": "SparkListenerJobEnd", "Job ID": 0}
    end = {"Event": execution(1)["Event"].replace("Start", "End"), "executionId": 1}
    run = handed(
        r.query_started(0), execution(1), job(0, 1), job(0, 1), ended, ended, end, end, r.terminated()
    )
    assert not run.jobs
    assert not run.executions
    assert not run.queries
    assert not run.jobs_of(1)


def test_what_spark_ends_after_the_application_has_ended_already() -> None:
    """``SparkContext.stop`` posts the application's end first, and then fails what still runs."""
    late = (
        r.stage("Completed", 5_100, reason="Stage cancelled because SparkContext was shut down"),
        r.job_end(5_200, message="Job 0 cancelled because SparkContext was shut down"),
        r.execution("End", 5_300),
    )
    feed = Feed()(
        r.application_start(),
        r.execution("Start", 1_000, description="collect"),
        r.job_start(2_000, spark__sql__execution__id="0"),
        r.stage("Submitted", 3_000),
        r.application_end(5_000),
        *late,
    )
    assert feed.listeners.stumbled == 0
    names = [span.name for span in feed.spans()]
    assert names.count("SQL execution") == names.count("Job") == 1


def test_no_text_of_a_user_is_kept_whole() -> None:
    """An execution's description may be a statement of any length, as may a job's."""
    sql = "SELECT " + "a, " * 10_000
    run = handed(execution(4, description=sql), job(0, 1, spark_job_description=sql))
    assert len(run.executions[4].description) == len(run.jobs[0].description) == 200
