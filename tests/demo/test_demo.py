"""The demo, as a stranger runs it, with a real collector and a real Prometheus beside it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.collector import Collector
from tests.support.demo_run import QUERY, DemoRun, start_demo
from tests.support.file_log import Event, file_events, of_name
from tests.support.waiting import free_port, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


def assert_story(events: list[Event]) -> None:
    """The query failed, was restarted from its checkpoint, and missed its SLA meanwhile."""
    changes = of_name(events, "JobStatusChangeEvent", job_kind="query")
    story = [event["attributes"]["newJobStatus"] for event in changes]
    assert story == ["CREATED", "RUNNING", "FAILED", "RESTARTING", "RUNNING", "CANCELED"]
    (failure,) = of_name(events, "JobFailureEvent", job_kind="query")
    assert failure["attributes"]["exception.message"] == "order 4711 has no customer"
    assert failure["attributes"]["code.function.name"] == "customer_of"
    (failed,) = of_name(events, "CheckpointEvent", checkpointStatus="FAILED")
    before = failed["attributes"]["checkpointId"] - 1
    assert of_name(events, "CheckpointOverdueEvent", lastCheckpointId=before)
    assert bad_orders(events) > 0


def bad_orders(events: list[Event]) -> int:
    """Return how many orders without an address the query's tasks have counted."""
    counted = of_name(events, "TaskCounterEvent", counter="bad_orders", labels="reason=no_address")
    return sum(event["attributes"]["count"] for event in counted)


def test_demo(demo_run: DemoRun) -> None:
    """It prints what happens, ends with a table, and keeps its files where it is told to."""
    text, kept = demo_run.text, demo_run.folder / "kept"

    assert_story(demo_run.events)
    assert re.search(
        r"JobFailureEvent +query 'orders_per_customer' failed: [\w.]+PoisonedOrderError: order 4711 has no customer",
        text,
    )
    assert re.search(r"CheckpointOverdueEvent +query 'orders_per_customer': no micro-batch", text)
    said = text.split("What happened")[1]
    # status, uptime, down, failures, restarts
    assert re.search(r"orders_per_customer +CANCELED +[\d.]+ % +[\d.]+ s +1 +1 ", said)
    assert re.search(r"spark-events-demo +FINISHED +100 % +0 +0 ", said)
    assert f"written to {kept / 'report.html'}" in said
    assert "order 4711 has no customer" in (kept / "report.html").read_text()
    whole_lines = re.sub(r"\s+", "", said)  # where a line ends depends on how long the folder's name is
    assert re.search(r"order4711hasnocustomer\([^)]*demonstration\.py:\d+,incustomer_of\)", whole_lines)
    assert re.search(rf" bad_orders +reason=no_address +{bad_orders(demo_run.events)} ", said)


@pytest.mark.collector
@pytest.mark.prometheus
def test_all_three_agree(collector: Collector, demo_run: DemoRun) -> None:
    """The same events are in the file log, in the collector's output, and counted in Prometheus."""
    server, events = demo_run.prometheus, demo_run.events
    # Scraped while it runs: the last sample before its end has all but the last events.
    running = server.query(f'spark_query_status{{query_name="{QUERY}"}} == 1', demo_run.restarted_s)

    ids = {event["eventId"] for event in events}
    app_id = events[0]["attributes"]["app_id"]
    wait_until(
        lambda: (
            len([r for r in collector.log_records() if r["attributes"].get("app_id") == app_id]) >= len(ids)
        ),
        "the collector wrote all",
    )
    received = [
        r["attributes"]["event.id"]
        for r in collector.log_records()
        if r["attributes"].get("app_id") == app_id
    ]
    assert sorted(received) == sorted(ids)

    assert {dict(labels)["status"] for labels in running} <= {"RUNNING", "RESTARTING"}
    counted = server.query(
        "sum by (event_name, status) (last_over_time(spark_events_total[5m]))", demo_run.ended_s
    )
    in_file = Counter(
        (event["eventName"], status_of(event))
        for event in events
        # What came after the last scrape cannot be there: the end of the query and of the application.
        if event["eventName"] in ("JobFailureEvent", "CheckpointOverdueEvent")
        or event["attributes"].get("checkpointStatus") == "FAILED"
        or event["attributes"].get("newJobStatus") in ("CREATED", "FAILED", "RESTARTING")
    )
    by_key = {(dict(k)["event_name"], dict(k).get("status", "")): v for k, v in counted.items()}
    assert {key: by_key.get(key) for key in in_file} == dict(in_file)
    completed = len(of_name(events, "CheckpointEvent", checkpointStatus="COMPLETED"))
    assert completed - 3 <= by_key["CheckpointEvent", "COMPLETED"] <= completed


@pytest.mark.collector
@pytest.mark.prometheus
def test_what_its_tasks_report(collector: Collector, demo_run: DemoRun) -> None:
    """Their counter is in Prometheus; the failed one has a span with the place that raised, in its query's trace."""
    server, events = demo_run.prometheus, demo_run.events
    counted = server.query(
        f'last_over_time(spark_task_bad_orders_total{{query_name="{QUERY}",reason="no_address"}}[5m])',
        demo_run.ended_s,
    )
    (value,) = counted.values()
    assert 0 < value <= bad_orders(events)

    app_id = events[0]["attributes"]["app_id"]

    def failed_tasks() -> list[dict[str, Any]]:
        spans = [span for span in collector.spans() if span["attributes"].get("app_id") == app_id]
        return [span for span in spans if span["name"] == "Task"]

    wait_until(failed_tasks, "the collector wrote the span")
    (span,) = failed_tasks()
    assert span["status"]["message"] == "order 4711 has no customer"
    assert span["attributes"]["code.function.name"] == "customer_of"
    assert span["attributes"]["query_name"] == QUERY
    (raised,) = span["events"]
    attributes = {pair["key"]: pair["value"]["stringValue"] for pair in raised["attributes"]}
    assert attributes["exception.type"] == "spark_events.demo.demonstration.PoisonedOrderError"
    ended_early = [
        other
        for other in collector.spans()
        if (other["traceId"], other["spanId"]) == (span["traceId"], span["parentSpanId"])
    ]
    assert [other["name"] for other in ended_early] == ["Checkpoint"]


def status_of(event: Event) -> str:
    attributes = event["attributes"]
    if event["eventName"] == "JobFailureEvent":
        return "FAILED"
    return str(
        attributes.get("newJobStatus") or attributes.get("checkpointStatus") or attributes.get("status") or ""
    )


@pytest.mark.thorough
def test_collector_away(tmp_path: Path) -> None:
    """With nobody at the endpoint the demo ends as it does without, and says what was not delivered."""
    endpoint = f"http://127.0.0.1:{free_port()}"
    process = start_demo(tmp_path, "--output", "kept", "--otlp-endpoint", endpoint, "--prometheus-port", "0")
    assert process.wait(180) == 0
    text = (tmp_path / "out.txt").read_text()

    assert_story(file_events(tmp_path / "kept" / "events"))
    assert text.count("event reporter 'otel' could not send") == 1
    assert re.search(r"event reporter 'otel' lost \d+ items?: the destination did not take", text)


@pytest.mark.extended
def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C in the middle ends it soon, with a word and no traceback, and the events so far are there."""
    process = start_demo(tmp_path, "--output", "kept", "--prometheus-port", "0")
    out = tmp_path / "out.txt"
    wait_until(lambda: "micro-batch 1 committed" in out.read_text(), "the query runs")
    os.killpg(process.pid, signal.SIGINT)
    started = time.monotonic()
    assert process.wait(40) == 130
    assert time.monotonic() - started < 30
    text = out.read_text()

    assert "interrupted" in text
    assert "Traceback" not in text
    assert of_name(file_events(tmp_path / "kept" / "events"), "CheckpointEvent")


def test_wrong_options(tmp_path: Path) -> None:
    """A wrong option is one line and exit code 2."""
    process = start_demo(tmp_path, "--sla", "soon")
    assert process.wait(60) == 2
    assert "--sla: 'soon' is not valid; expected a duration" in (tmp_path / "out.txt").read_text()
