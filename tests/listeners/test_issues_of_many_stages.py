"""What each stage of an application loses too little of to be told, and all of them enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.api import Event
from tests.support import spark_records as r
from tests.support.measured_tasks import statistics
from tests.support.spark_records import T0, Feed, seen

S = 1_000
TINY = {"Scheduler_Delay": [19, 20, 20, 400 * 20]}
"""Of 400 tasks, on four cores: 2 s for each stage."""


def stage(
    number: int, begun_ms: int, run_ms: list[int], took_ms: int, of: dict[str, Any], **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield the records of a stage, and of its job."""
    measured = statistics(run_ms, **more) | {
        "First Launch": T0 + begun_ms,
        "Last Finish": T0 + begun_ms + took_ms,
    }
    yield r.job_start(begun_ms, number, (number,), **of)
    yield r.stage("Submitted", begun_ms, number)
    yield {**r.stage_tasks(begun_ms + took_ms, None, 1), "Stage ID": number, "Task Statistics": measured}
    completed = r.stage("Completed", begun_ms + took_ms, number)
    completed["Stage Info"]["Submission Time"] = T0 + begun_ms
    yield completed
    yield r.job_end(begun_ms + took_ms, number)


def stages(of: dict[str, Any], rdd: str = "", count: int = 60) -> Iterator[dict[str, Any]]:
    """Yield the records of many stages of 400 tasks each, one after the other, of 3 s each."""
    for number in range(count):
        for record in stage(number, 1 + number * 4 * S, [10] * 400, 3 * S, of, **TINY):
            if rdd and "Stage Info" in record:
                record["Stage Info"]["RDD Info"] = [{"RDD ID": 1, "Name": rdd}]
            yield record


def told(
    *records: dict[str, Any], end_ms: int = 240 * S, properties: dict[str, str] | None = None
) -> list[Event]:
    begin = [
        r.application_start(),
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties or {}},
    ]
    feed = Feed()(*begin, r.executor("Added", 0), *records, r.application_end(end_ms))
    return [each for each in seen(feed.end(), "PerformanceIssueEvent") if "live" not in each.attributes]


def test_too_many_tasks_in_short_stages() -> None:
    """A stage loses 2.4 s, and all of them more than two minutes."""
    events = [each for each in told(*stages({})) if each.attributes["issue"] == "task-count"]
    assert events[-1].attributes["issueState"] == "CLOSED"
    assert events[-1].attributes["stages"] == 60
    assert events[-1].attributes["lostMs"] == 60 * (400 * (20 + 4) * 396 // 400 // 4)


@pytest.mark.parametrize(("rdd", "kinds"), [("ShuffledRowRDD", {"task-count"}), ("StateStoreRDD", set())])
def test_of_a_query(rdd: str, kinds: set[str]) -> None:
    """Tasks that keep state are told with the state."""
    events = told(r.query_started(0), *stages({"group": "run-1"}, rdd), r.terminated())
    assert {each.attributes["issue"] for each in events} == kinds
    assert all(each.attributes["subject"] == "query 'orders'" for each in events)


@pytest.mark.parametrize(
    ("name", "subject"),
    [("orders", "query 'orders'"), (None, "query 'query-1' (of file:/orders into file:/daily)")],
)
def test_a_query_without_a_name_is_known_by_what_it_reads_and_writes(name: str | None, subject: str) -> None:
    ends = {
        "sources": [{"description": "FileStreamSource[file:/orders]"}],
        "sink": {"description": "FileSink[file:/daily]"},
    }
    events = told(
        r.query_started(0, name=name),
        r.progress(1, 1, name=name, **ends),
        *stages({"group": "run-1"}, "ShuffledRowRDD"),
        r.terminated(),
    )
    assert [each.attributes["subject"] for each in events if each.attributes["issue"] == "task-count"][
        -1
    ] == subject


@pytest.mark.parametrize(
    ("cpus", "execution", "is_told"), [("2", "7", True), ("1", "7", False), ("2", "", False)]
)
def test_tasks_that_hold_two_cores(cpus: str, execution: str, is_told: bool) -> None:
    """Of SQL; what an RDD's functions use, nobody knows."""
    of = {"spark__sql__execution__id": execution} if execution else {}
    records = stage(0, 1, [20 * S] * 8, 80 * S, of, at_once=2)
    events = told(
        r.execution("Start", 0, 7),
        *records,
        end_ms=81 * S,
        properties={"spark.master": "yarn", "spark.task.cpus": cpus},
    )
    assert any(each.attributes["issue"] == "idle-cores" for each in events) is is_told
