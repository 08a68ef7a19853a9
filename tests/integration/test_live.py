"""One real application, and what each reporter made of it: file log, collector, Prometheus."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyspark
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from docs.metrics_table import rows_of, rows_of_page
from tests.support.applications import App
from tests.support.collector import Collector, attributes_of
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.live_application import Live
from tests.support.paths import APPS, REPO
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


def test_the_job_ends_as_it_would_have(live: Live) -> None:
    """Reporting changes neither output nor exit code."""
    assert live.run.code == 0, live.run.err[-3000:]
    assert [line.split(":")[0] for line in live.run.out.splitlines()] == ["failed", "cancelled"]


def test_application_status(live: Live) -> None:
    """An application is created, runs, and finishes."""
    assert statuses(live.events, "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_query_status_across_a_restart(live: Live) -> None:
    """A query that failed and is started again from its checkpoint is RESTARTING, under its old id."""
    changes = of_name(live.events, "JobStatusChangeEvent", job_kind="query", query_name="orders")

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
    changes = of_name(live.events, "JobStatusChangeEvent", job_kind="query", query_name="bounded")

    assert [event["attributes"]["newJobStatus"] for event in changes] == ["CREATED", "RUNNING", "FINISHED"]


def test_jobs_end_as_they_did(live: Live) -> None:
    """Of all Spark jobs one failed and one was cancelled."""
    # Stopping a query may cancel a job of its, where a batch has just begun.
    ended = Counter(statuses((e for e in live.events if "query_name" not in e["attributes"]), "job"))

    assert ended["FAILED"] == 1
    assert ended["CANCELED"] == 1
    assert ended["RUNNING"] == ended["FINISHED"] + ended["FAILED"] + ended["CANCELED"]


def test_failure_of_the_query(live: Live) -> None:
    """A failure says which Python exception was raised, under all that Spark wraps around it."""
    (failure,) = of_name(live.events, "JobFailureEvent", job_kind="query")
    attributes = failure["attributes"]

    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "order 4711 has no customer"
    assert "Traceback (most recent call last)" in attributes["exception.stacktrace"]
    assert attributes["failureLabel.type"] == "USER"
    assert attributes["isGlobalFailure"] == "true"
    assert failure["severityText"] == "ERROR"


def test_failure_of_the_job(live: Live) -> None:
    """A failed job says the error class and the message; its tasks' failure is not a global one."""
    (failure,) = of_name(live.events, "JobFailureEvent", job_kind="job")
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
    timed = {"commitOffsetsMs", "stateCommitMs", "inputRows"}
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


def test_each_metric_of_the_docs_is_there(live: Live) -> None:
    """A real run has all metrics of applications and queries that docs/metrics.md lists."""
    page = "".join((REPO / "docs" / name).read_text() for name in ("metrics.md", "executor-metrics.md"))
    named = set(re.findall(r"spark_(?:query|application|executor|job|stage|bridge)_[a-z_]+[a-z]", page))
    # Local mode has no container, and no executor goes away; tests/integration/test_executors.py sees one go.
    elsewhere = {
        "spark_application_executor_container_limit_bytes",
        # Under the names of the collector's receiver, which this application does not report.
        "spark_application_id",
        "spark_executor_time_milliseconds_total",
    }
    pages = live.metrics_while_running + live.metrics
    served = set(re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?[{ ]", pages, re.MULTILINE))

    assert named - served - elsewhere == set()
    assert len(named) > 80


ROCKSDB = "spark_query_rocksdb_"
"""Those of RocksDB depend on the version of Spark; the page has those of Spark 4."""
SPARK_4 = not pyspark.__version__.startswith("3.")


def test_each_metric_is_in_the_reference(live: Live, tmp_path: Path) -> None:
    """The page has each metric that is served, with the type, the labels and the meaning of its declaration."""
    listed = rows_of_page()
    for number, text in enumerate((live.metrics_while_running, live.metrics)):
        served = {name: row for name, row in rows_of(text).items() if SPARK_4 or ROCKSDB not in name}
        file = tmp_path / f"{number}.txt"
        file.write_text(text)
        assert served.keys() - listed.keys() == set(), f"python -m docs.metrics_table {file}"
        differs = [
            row for row in served.values() if row._replace(labels="") != listed[row.name]._replace(labels="")
        ]
        assert differs == [], f"python -m docs.metrics_table {file}"
        for row in served.values():
            assert set(row.labels.split(", ")) <= {*listed[row.name].labels.split(", "), ""}, row
            assert row.meaning, row.name


@pytest.mark.prometheus
def test_promtool_finds_nothing_to_say(live: Live) -> None:
    """Names, units, types and help are as Prometheus' own linter wants them."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on the PATH: apt-get install prometheus")
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=live.metrics, capture_output=True, text=True, check=False)

    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_openmetrics_says_the_same(live: Live) -> None:
    """prometheus-client's strict parser takes all of it, and finds the same series."""
    series = {
        (sample.name, tuple(sorted(sample.labels.items())))
        for parser, text in ((parse, live.metrics), (parse_openmetrics, live.openmetrics))
        for family in parser(text)
        for sample in family.samples
    }
    lines = [line for line in live.metrics.splitlines() if line and not line.startswith("#")]

    assert len(series) == len(lines) > 500


def test_series_know_no_run(live: Live) -> None:
    """Application and run ids are labels of the info metric alone: series outlive a restart."""
    runs = {event["attributes"]["run_id"] for event in live.events if "run_id" in event["attributes"]}
    with_ids = [line for line in live.metrics.splitlines() if any(i in line for i in ("local-", *runs))]

    assert {line.split("{")[0] for line in with_ids} == {"spark_application_info", "spark_query_info"}


def test_spans_of_checkpoints(live: Live) -> None:
    """Each micro-batch is a trace of its own, the failed one with status ERROR."""
    statuses = [
        (span, span["attributes"].get("checkpointStatus")) for span in live.spans if _is_of_orders(span)
    ]
    spans = [span for span, status in statuses if status in ("COMPLETED", "FAILED")]
    checkpoints = of_name(live.events, "CheckpointEvent", query_name="orders")

    assert len(spans) == len(checkpoints)
    assert [span["status"]["code"] for span in spans].count("ERROR") == 1
    assert len({span["traceId"] for span in spans}) == len(spans)


def _is_of_orders(span: dict[str, Any]) -> bool:
    return span["name"] == "Checkpoint" and span["attributes"]["query_name"] == "orders"


PROTOCOLS = ("grpc", "http")
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(scope="module")
def sent(java: str, collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Event]:
    """An application that sends all to the collector by both protocols, and its events; ``attach`` in code."""
    folder = tmp_path_factory.mktemp("sent")
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "events"),
        # Often enough that there is a heartbeat, whose attributes are lists, on any machine.
        "spark.events.heartbeat.interval": "2s",
        "spark.traces.checkpoint.span-detail-level": "CHILDREN_SPANS_PER_SUBTASK",
        "spark.traces.parent": f"00-{TRACE_ID}-00f067aa0ba902b7-01",
    }
    for protocol, kind in product(PROTOCOLS, ("events", "traces", "metrics")):
        reporter = f"spark.{kind}.reporter.{protocol}"
        conf |= {
            f"{reporter}.factory.class": "otlp",
            f"{reporter}.exporter.endpoint": getattr(collector, protocol),
            f"{reporter}.exporter.protocol": protocol,
            f"{reporter}.scope.variables.additional": f"sent_by:{protocol}",
        }
        conf |= {f"{reporter}.exporter.compression": "gzip"} if kind == "events" else {}
        conf |= {f"{reporter}.interval": "1s"} if kind == "metrics" else {}
    command = [sys.executable, str(APPS / "lifecycle.py"), str(folder), "--attach"]
    run = App(command, conf, folder).end()
    assert run.code == 0, run.err[-3000:]
    return {event["eventId"]: event for event in file_events(folder / "events")}


@pytest.mark.collector
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_collector_has_the_same_events(sent: dict[str, Event], collector: Collector, protocol: str) -> None:
    """What the collector wrote is, id by id, what the file log has."""
    events = sent
    own = {"app_id": next(iter(events.values()))["attributes"]["app_id"], "sent_by": protocol}

    def received() -> dict[str, dict[str, Any]]:
        mine = [r for r in collector.log_records() if own.items() <= r["attributes"].items()]
        return {record["attributes"]["event.id"]: record for record in mine}

    wait_until(lambda: len(received()) >= len(events), "all events are in the collector's file")
    records = received()
    assert records.keys() == events.keys()
    assert any(isinstance(value, list) for event in events.values() for value in event["attributes"].values())
    for key, event in events.items():
        record = records[key]
        assert record["eventName"] == event["eventName"]
        assert record["timeUnixNano"] == event["timeUnixNano"]
        assert int(record["observedTimeUnixNano"]) >= int(record["timeUnixNano"])
        assert record["severityNumber"] == event["severityNumber"]
        assert record["scope"] == event["scope"]
        assert record["resource"]["service.name"] == "lifecycle"
        assert {**event["attributes"], "event.id": key, "sent_by": protocol} == record["attributes"]
    spans = [span for span in collector.spans() if own.items() <= span["attributes"].items()]
    _check_tree(spans, TRACE_ID)
    # The query was stopped in the middle of a batch, perhaps; that is not an event.
    ended = [s for s in spans if s["attributes"].get("checkpointStatus") in ("COMPLETED", "FAILED")]
    assert len(ended) == len(of_name(events.values(), "CheckpointEvent"))
    _check_metrics(collector, own)


def _check_tree(spans: list[dict[str, Any]], trace_id: str) -> None:
    """Parents, times within those of the parent, status: as the collector wrote them."""
    by_id = {span["spanId"]: span for span in spans}
    (application,) = [span for span in spans if span["name"] == "Application"]
    assert len(by_id) == len(spans)
    assert (application["traceId"], application["parentSpanId"]) == (trace_id, "00f067aa0ba902b7")
    edges: Counter[tuple[str, str]] = Counter()
    for span in spans:
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert start <= end
        parent = by_id.get(span.get("parentSpanId", ""))
        if parent is not None:
            assert parent["traceId"] == span["traceId"]
            assert int(parent["startTimeUnixNano"]) <= start, (parent, span)
            assert end <= int(parent["endTimeUnixNano"]), (parent, span)
            edges[parent["name"], span["name"]] += 1
        elif span is not application:
            assert (span["name"], span.get("parentSpanId")) == ("Checkpoint", None)
            assert by_id[span["links"][0]["spanId"]]["name"] == "JobInitialization"
    assert edges.keys() >= {
        ("Application", "SQL execution"),
        ("Application", "Query"),
        ("Application", "Job"),
        ("SQL execution", "Job"),
        ("Query", "JobInitialization"),
        ("Checkpoint", "addBatch"),
        ("Checkpoint", "Job"),
        ("Job", "Stage"),
    }
    failed = [span for span in spans if span["status"].get("code") == 2]
    assert {"Query", "Checkpoint", "SQL execution", "Job", "Stage"} <= {span["name"] for span in failed}
    assert all(span["events"][0]["name"] == "exception" for span in failed)
    (query,) = [span for span in failed if span["name"] == "Query"]
    told = attributes_of(query["events"][0])
    assert (told["exception.type"], told["exception.message"]) == ("ValueError", "order 4711 has no customer")


def _check_metrics(collector: Collector, own: dict[str, str]) -> None:
    """The last values of the run are in the collector's file."""
    mine = [m for m in collector.metrics() if m["resource"].get("service.instance.id") == own["app_id"]]
    last = {metric["name"]: metric for metric in mine if _sent_by(metric) == {own["sent_by"]}}
    restarts = last["spark.query.num_restarts"]["gauge"]["dataPoints"]
    assert {attributes_of(p)["query_name"]: p["asInt"] for p in restarts} == {"orders": "1", "bounded": "0"}
    assert last["spark.query.checkpoint_duration"]["unit"] == "s"
    assert last["spark.query.input_rows"]["sum"]["isMonotonic"]
    assert last["spark.application.finished_tasks"]["sum"]["aggregationTemporality"] == 2


def _sent_by(metric: dict[str, Any]) -> set[str | None]:
    (data,) = (value for value in metric.values() if isinstance(value, dict) and "dataPoints" in value)
    return {attributes_of(point).get("sent_by") for point in data["dataPoints"]}
