"""What tasks have counted, as events: by how much each counter has grown, and whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import spark_records as r
from tests.support.spark_records import Feed, seen


def counted(
    partition: int, by: int, name: str = "rows", run: str = "run-1", shop: str = "a"
) -> dict[str, Any]:
    """Return the report of a task that has counted."""
    return {
        "Event": "SparkEventsTaskReport",
        "stage": 0,
        "partition": partition,
        "attempt": 0,
        "task": partition,
        "properties": {"spark.jobGroup.id": run},
        "metrics": [("counter", name, (("shop", shop), ("reason", "b")), by)],
        "events": [],
        "spans": [],
        "dropped": {},
    }


def test_at_the_end_of_a_query() -> None:
    """With its variables, before the event of its end; what belongs to no query comes with the application's."""
    feed = Feed()(r.application_start(), r.query_started(0), counted(0, 5), counted(1, 7))
    events = feed(counted(2, 9, run="nobody"), r.terminated(), r.application_end(9_000)).end()
    of_query, of_application = seen(events, "TaskCounterEvent")

    assert of_query.body == "query 'orders' counted 12 rows (shop=a, reason=b)"
    expected = {"counter": "rows", "labels": "shop=a, reason=b", "count": 12, "job_kind": "query"}
    expected |= {"query_name": "orders", "query_id": "query-1", "run_id": "run-1", "app_id": "app-1"}
    assert expected.items() <= {**of_query.attributes, **of_query.variables}.items()
    (end,) = (
        event
        for event in seen(events, "JobStatusChangeEvent")
        if event.attributes["newJobStatus"] == "CANCELED"
    )
    assert events.index(of_query) < events.index(end)
    assert (of_application.attributes["job_kind"], of_application.attributes["count"]) == ("application", 9)


def test_before_the_issues_of_the_application() -> None:
    """At its end: what its tasks have counted, then what made it slow, then that it has ended."""
    peaks = {"Event": "SparkEventsExecutorMetrics", "Task Peaks": {"1": {"JVMHeapMemory": 1 << 30}}}
    settings = {"spark.master": "yarn", "spark.executor.memory": "8g"}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": settings}
    feed = Feed()(r.application_start(), environment, r.executor("Added", 0), peaks, counted(0, 5))
    events = feed(r.application_end(3_600_000)).end()
    of_end = [event.name for event in events if event.time_ms == r.T0 + 3_600_000]
    assert of_end == [
        "TaskCounterEvent",
        "PerformanceIssueEvent",
        "PerformanceIssueEvent",
        "ExecutorLostEvent",
        "JobStatusChangeEvent",
    ]


def test_from_time_to_time() -> None:
    """Each event has what is new since the one before it; where nothing is, there is none."""
    feed = Feed(task__counters__interval="10s")(r.application_start(), r.query_started(0), counted(0, 5))
    feed.tick(1_000).tick(10_000)
    assert feed.gauge("app.task.orders.shop.a.reason.b.rows") == 5
    feed.tick(11_000)(counted(1, 7)).tick(12_000).tick(22_000).tick(60_000)
    first, second = seen(feed(r.application_end(70_000)).end(), "TaskCounterEvent")

    assert (first.attributes["count"], first.time_ms - r.T0) == (5, 11_000)
    assert (second.attributes["count"], second.time_ms - r.T0) == (7, 22_000)
    assert first.id != second.id


def test_a_tick_that_fails() -> None:
    """The others go on, and so does the application's report."""
    feed = Feed(task__counters__interval="10s")(r.application_start(), counted(0, 5, run="nobody"))
    feed.listeners._dispatcher._tickers[0] = lambda now_ms: 1 // 0
    feed.tick(1_000).tick(12_000)
    assert feed.listeners.stumbled == 2
    assert len(seen(feed(r.application_end(20_000)).end(), "TaskCounterEvent")) == 1


def test_series_beyond_the_limit_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_events.listeners.tasks.task_reports._MOST_SERIES", 10)
    feed = Feed()(r.application_start(), *(counted(n, n + 1, name=f"c{n}") for n in range(20)))
    assert feed.gauge("app.task.dropped.series.dropped") == 10
    events = seen(feed(r.application_end(9_000)).end(), "TaskCounterEvent")
    assert sorted(event.attributes["count"] for event in events) == list(range(1, 11))


def test_a_batch_that_reports_before_its_query_is_known() -> None:
    """Spark's records may wait in a queue; what is of no query counts for the application."""
    early, of_nobody = {**counted(0, 5), "batch": 0}, {**counted(0, 7, run="nobody"), "batch": 0}
    feed = Feed()(r.application_start(), early, of_nobody, r.query_started(0), counted(1, 1))
    assert feed.gauge("app.task.orders.shop.a.reason.b.rows") == 6
    of_query, of_application = seen(feed(r.application_end(9_000)).end(), "TaskCounterEvent")
    assert (of_query.variables["run_id"], of_query.attributes["count"]) == ("run-1", 6)
    assert (of_application.attributes["job_kind"], of_application.attributes["count"]) == ("application", 7)


def test_switched_off() -> None:
    feed = Feed(task__counters__interval="0")(r.application_start(), r.query_started(0), counted(0, 5))
    assert seen(feed(r.application_end(1_000)).end(), "TaskCounterEvent") == []


def test_what_failed_attempts_counted() -> None:
    failed = {"time_ns": r.T0 * 1_000_000, "begun_ns": r.T0 * 1_000_000, "type": "E", "message": "no"}
    feed = Feed()(r.application_start(), {**counted(0, 5), "failed": failed}, r.application_end(9_000))
    (event,) = seen(feed.end(), "TaskCounterEvent")
    assert event.attributes["counter"] == "rows_failed_attempts"


def test_too_many_counters() -> None:
    """Those that have grown most are reported."""
    feed = Feed()(r.application_start(), *(counted(n, n + 1, shop=f"s{n}") for n in range(103)))
    events = seen(feed(r.application_end(9_000)).end(), "TaskCounterEvent")
    assert [event.attributes["count"] for event in events] == list(range(103, 3, -1))
