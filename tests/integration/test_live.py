"""One real application, and what each reporter made of it: file log, collector, Prometheus."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import (
    APPS,
    REPO,
    App,
    AppRun,
    Collector,
    Event,
    cli,
    file_events,
    free_port,
    http_get,
    of_name,
    statuses,
    wait_until,
)

pytestmark = pytest.mark.spark


@dataclass
class Live:
    """The application, and what came out of it."""

    run: AppRun
    events: list[Event]
    metrics: str
    folder: Path
    spans: list[dict[str, Any]]


@pytest.fixture(scope="module")
def live(java: str, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """The application, submitted by ``spark-events run`` without a change of code."""
    folder = tmp_path_factory.mktemp("live")
    port = free_port()
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": (folder / "events").as_uri(),
        "spark.events.reporter.file.scope.variables.additional": "team:payments,env:prod",
        "spark.traces.reporter.file.factory.class": "file_log",
        "spark.traces.reporter.file.path": (folder / "events").as_uri(),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
        "spark.app.name": "from-defaults",
    }
    command = cli("run", "--master", "local[2]", str(APPS / "lifecycle.py"), str(folder), "--hold")
    app = App(command, conf, folder)
    url = f"http://127.0.0.1:{port}/metrics"
    ended = 'query_name="bounded",status="FINISHED"'
    app.wait_for(lambda: ended in http_get(url), "the bounded query has ended")
    metrics = http_get(url)
    (folder / "go").touch()
    run = app.end()
    spans = [json.loads(x) for f in (folder / "events").glob("*.spans.*") for x in f.read_text().splitlines()]
    return Live(run, file_events(folder / "events"), metrics, folder, spans)


def test_the_job_ends_as_it_would_have(live: Live) -> None:
    """Reporting changes neither output nor exit code."""
    assert live.run.code == 0, live.run.err[-3000:]
    assert [line.split(":")[0] for line in live.run.out.splitlines()] == ["failed", "cancelled"]


def test_application_status(live: Live) -> None:
    """An application is created, runs, and finishes."""
    assert statuses(live.events, "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_query_status_across_a_restart(live: Live) -> None:
    """A query that failed and is started again from its checkpoint is RESTARTING, under its old id."""
    changes = of_name(live.events, "JobStatusChangeEvent", job__kind="query", query_name="orders")

    assert [event["attributes"]["newJobStatus"] for event in changes] == [
        "CREATED",
        "RUNNING",
        "FAILED",
        "RESTARTING",
        "RUNNING",
        "CANCELED",
    ]
    assert len({event["attributes"]["query_id"] for event in changes}) == 1
    assert len({event["attributes"]["run_id"] for event in changes}) == 2


def test_bounded_query_finishes(live: Live) -> None:
    """A query with a bounded trigger finishes; one that is stopped is cancelled."""
    changes = of_name(live.events, "JobStatusChangeEvent", job__kind="query", query_name="bounded")

    assert [event["attributes"]["newJobStatus"] for event in changes] == ["CREATED", "RUNNING", "FINISHED"]


def test_jobs_end_as_they_did(live: Live) -> None:
    """Of all Spark jobs one failed and one was cancelled."""
    ended = Counter(statuses(live.events, "job"))

    assert ended["FAILED"] == 1
    assert ended["CANCELED"] == 1
    assert ended["RUNNING"] == ended["FINISHED"] + ended["FAILED"] + ended["CANCELED"]


def test_failure_of_the_query(live: Live) -> None:
    """A failure says which Python exception was raised, under all that Spark wraps around it."""
    (failure,) = of_name(live.events, "JobFailureEvent", job__kind="query")
    attributes = failure["attributes"]

    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "order 4711 has no customer"
    assert "Traceback (most recent call last)" in attributes["exception.stacktrace"]
    assert attributes["failureLabel.type"] == "USER"
    assert attributes["isGlobalFailure"] == "true"
    assert failure["severityText"] == "ERROR"


def test_failure_of_the_job(live: Live) -> None:
    """A failed job says the error class and the message; its tasks' failure is no global one."""
    (failure,) = of_name(live.events, "JobFailureEvent", job__kind="job")
    attributes = failure["attributes"]

    assert "bad row" in attributes["exception.message"]
    assert attributes["canRestart"] == "false"
    assert attributes["isGlobalFailure"] == "false"


def test_checkpoints(live: Live) -> None:
    """Each micro-batch is a checkpoint with all of Flink's attributes; the one that failed is FAILED."""
    events = of_name(live.events, "CheckpointEvent", query_name="orders")
    batches = [(e["attributes"]["checkpointId"], e["attributes"]["checkpointStatus"]) for e in events]

    assert batches[:4] == [(0, "COMPLETED"), (1, "COMPLETED"), (2, "FAILED"), (2, "COMPLETED")]
    assert batches[4:] == [(n, "COMPLETED") for n in range(3, 3 + len(batches[4:]))]
    for event in events:
        assert event["attributes"].keys() >= {
            "checkpointId",
            "fullSize",
            "checkpointedSize",
            "metadataSize",
            "checkpointStatus",
            "isUnaligned",
            "checkpointType",
            "durationMs",
        }
        assert event["attributes"]["checkpointLocation"].endswith("/orders")
    completed = [e["attributes"] for e in events if e["attributes"]["checkpointStatus"] == "COMPLETED"]
    timed = {"commitOffsetsMs", "stateCommitMs", "numInputRows"}
    # The batch that is run again finds its offsets in the log already.
    assert all(a.keys() >= timed | (set() if a["checkpointId"] == 2 else {"walCommitMs"}) for a in completed)
    assert max(a["fullSize"] for a in completed) > 0


def test_all_subtasks(live: Live) -> None:
    """A stage says when all its tasks run or have finished, and when that ceased."""
    events = of_name(live.events, "AllSubtasksStatusChangeEvent")
    first = events[0]["attributes"]

    assert first["status"] == "ALL_RUNNING_OR_FINISHED"
    assert first["numTasks"] == 4
    assert first["waitMs"] >= 0
    assert "NOT_ALL_RUNNING_OR_FINISHED" in {event["attributes"]["status"] for event in events}


def test_ids_are_unique(live: Live) -> None:
    """No two events share an id."""
    ids = [event["eventId"] for event in live.events]

    assert len(set(ids)) == len(ids)


def test_every_event_says_whose_it_is(live: Live) -> None:
    """Variables, the additional ones included, are attributes of each event."""
    for event in live.events:
        assert (
            event["attributes"].items()
            >= {"team": "payments", "env": "prod", "app_name": "lifecycle"}.items()
        )
        assert event["attributes"]["app_id"].startswith("local-")
        assert event["timeUnixNano"].endswith("000000")


def test_metrics_agree_with_the_file_log(live: Live) -> None:
    """Events are counted by name, kind and status, and a query's restarts and status are gauges."""
    events = of_name(live.events, "CheckpointEvent", query_name="orders", checkpointStatus="COMPLETED")
    line = (
        'spark_events_total{app_name="lifecycle",event_name="CheckpointEvent",job_kind="query",'
        f'query_name="orders",status="COMPLETED"}} {float(len(events))}'
    )

    assert line in live.metrics
    assert 'spark_query_num_restarts{app_name="lifecycle",query_name="orders"} 1.0' in live.metrics
    assert (
        'spark_query_status{app_name="lifecycle",query_name="orders",status="CANCELED"} 1.0' in live.metrics
    )
    assert 'spark_query_status{app_name="lifecycle",query_name="orders",status="RUNNING"} 0.0' in live.metrics
    assert 'spark_application_status{app_name="lifecycle",status="RUNNING"} 1.0' in live.metrics
    assert 'spark_query_status_age_seconds{app_name="lifecycle",query_name="orders"}' in live.metrics


def test_each_metric_in_the_readme_is_there(live: Live) -> None:
    """What reporters/prometheus/README.md says of queries and applications, a real run has."""
    readme = (REPO / "reporters" / "prometheus" / "README.md").read_text()
    named = set(re.findall(r"spark_(?:query|application)_[a-z_]+[a-z]", readme))
    # Kafka and the like alone say how far they are; this run has no watermark, and no late rows.
    elsewhere = {
        "spark_query_source_backlog",
        "spark_query_watermark_timestamp_seconds",
        "spark_query_watermark_lag_seconds",
        "spark_query_last_checkpoint_size_bytes",
    }
    served = set(re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?\{", live.metrics, re.MULTILINE))

    assert named - served - elsewhere == set()
    assert len(named) > 25


def test_series_know_no_run(live: Live) -> None:
    """Application and run ids are labels of the info metric alone: series outlive a restart."""
    with_ids = [line for line in live.metrics.splitlines() if "local-" in line]

    assert len(with_ids) == 1
    assert with_ids[0].startswith("spark_application_info{")


def test_spans_of_checkpoints(live: Live) -> None:
    """Each micro-batch is a span of its own, the failed one with status ERROR."""
    spans = [span for span in live.spans if span["attributes"].get("query_name") == "orders"]
    checkpoints = of_name(live.events, "CheckpointEvent", query_name="orders")

    assert len(spans) == len(checkpoints)
    assert [span["status"]["code"] for span in spans].count("ERROR") == 1
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) for span in spans)
    assert len({span["traceId"] for span in spans}) == len(spans)


@pytest.mark.collector
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_collector_has_the_same_events(
    java: str, collector: Collector, tmp_path: Path, protocol: str
) -> None:
    """What the collector wrote is, id by id, what the file log has; ``attach`` in code, for a change."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "events"),
        "spark.events.reporter.otel.factory.class": "otlp",
        "spark.events.reporter.otel.exporter.endpoint": getattr(collector, protocol),
        "spark.events.reporter.otel.exporter.protocol": protocol,
        "spark.events.reporter.otel.exporter.compression": "gzip",
        "spark.traces.reporter.otel.factory.class": "otlp",
        "spark.traces.reporter.otel.exporter.endpoint": getattr(collector, protocol),
        "spark.traces.reporter.otel.exporter.protocol": protocol,
    }
    command = [sys.executable, str(APPS / "lifecycle.py"), str(tmp_path), "--attach"]
    (tmp_path / "go").touch()
    run = App(command, conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    events = {event["eventId"]: event for event in file_events(tmp_path / "events")}
    app_id = next(iter(events.values()))["attributes"]["app_id"]

    def received() -> dict[str, dict[str, Any]]:
        mine = [r for r in collector.log_records() if r["attributes"]["app_id"] == app_id]
        return {record["attributes"]["event.id"]: record for record in mine}

    wait_until(lambda: len(received()) >= len(events), "all events are in the collector's file")
    records = received()
    assert records.keys() == events.keys()
    for key, event in events.items():
        record = records[key]
        assert record["eventName"] == event["eventName"]
        assert record["timeUnixNano"] == event["timeUnixNano"]
        assert int(record["observedTimeUnixNano"]) >= int(record["timeUnixNano"])
        assert record["severityNumber"] == event["severityNumber"]
        assert record["scope"] == event["scope"]
        assert record["resource"]["service.name"] == "lifecycle"
        assert {**event["attributes"], "event.id": key} == record["attributes"]
    spans = [span for span in collector.spans() if span["attributes"]["app_id"] == app_id]
    assert len(spans) == len(of_name(events.values(), "CheckpointEvent"))
