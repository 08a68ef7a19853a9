"""Metrics, events and spans from inside tasks of a real application: each counts once, at its place."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App
from tests.support.file_log import events_and_spans, file_events, of_name
from tests.support.paths import APPS
from tests.support.spark_cluster import running_spark_cluster
from tests.support.waiting import free_port, http_get

pytestmark = pytest.mark.spark
ROWS = 1_000
SPARK_4 = pytest.mark.skipif(
    version("pyspark") < "4", reason="Spark has Python data sources and stateful processors since version 4"
)
WAYS = [
    "udf",
    "pandas_udf",
    "mapInPandas",
    "applyInPandas",
    "udtf",
    pytest.param("data_source", marks=SPARK_4),
]
HOSTS = ("127.0.0.1", "127.0.0.2")


class Tasks:
    """The application; what Prometheus saw of it at its end, and what was logged."""

    def __init__(self, folder: Path, conf: dict[str, str]) -> None:
        port = free_port()
        conf = {
            **conf,
            "spark.metrics.reporter.prom.factory.class": "prometheus",
            "spark.metrics.reporter.prom.port": str(port),
            "spark.metrics.reporter.prom.max-series": "5000",
            "spark.events.task.failures.include-locals": "true",
            "spark.events.task.measure-udfs": "true",
            **events_and_spans(folder / "live"),
        }
        app = App([sys.executable, str(APPS / "tasks.py"), str(folder)], conf, folder)
        app.wait_for(lambda: (folder / "ready").exists(), "its jobs are done")
        url = f"http://127.0.0.1:{port}/metrics"
        self.metrics = ""

        def has_counted() -> bool:
            self.metrics = http_get(url)
            return self.value("spark_task_rows_total", query_name="stateful") == 3

        app.wait_for(has_counted, "the last report has arrived")
        (folder / "seen").touch()
        self.run = app.end()
        assert self.run.code == 0, self.run.err[-3000:]
        self.events = file_events(folder / "live")
        self.spans = lines(folder / "live", "spans")

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of the one series with these labels; None without one."""
        wanted = {f'{key}="{text}"' for key, text in labels.items()}
        found = []
        for series, value in re.findall(rf"^{name}{{([^}}]*)}} (\S+)$", self.metrics, re.MULTILINE):
            if wanted <= set(series.split(",")):
                found.append(float(value))
        assert len(found) < 2, found
        return found[0] if found else None


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    import json

    return [
        json.loads(line)
        for path in sorted(folder.glob(f"*.{kind}.*.jsonl"))
        for line in path.read_text().splitlines()
    ]


@pytest.fixture(
    scope="module",
    params=[
        {"spark.master": "local[2,3]"},
        pytest.param({"spark.master": "local-cluster[2,1,1024]"}, marks=pytest.mark.thorough),
        pytest.param({"spark.master": "standalone"}, marks=pytest.mark.thorough),
        pytest.param(
            {"spark.master": "local[2,3]", "spark.python.worker.reuse": "false"}, marks=pytest.mark.thorough
        ),
        pytest.param(
            {"spark.master": "local[2,3]", "spark.python.use.daemon": "false"}, marks=pytest.mark.thorough
        ),
    ],
    ids=lambda conf: "-".join(conf.values()),
)
def tasks(
    request: pytest.FixtureRequest, java: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tasks]:
    folder, conf = tmp_path_factory.mktemp("tasks"), request.param
    if conf["spark.master"] != "standalone":
        yield Tasks(folder, conf)
        return
    with running_spark_cluster(HOSTS) as cluster:
        yield Tasks(folder, {"spark.master": cluster.master})


@pytest.mark.parametrize("way", WAYS)
def test_each_way_counts_what_a_loop_counts(tasks: Tasks, way: str) -> None:
    app = {
        "way": way,
        "app_name": "tasks",
    }  # one stage has functions of two kinds, so its tasks have two workers
    series = [
        float(value)
        for labels, value in re.findall(
            r"^spark_task_rows_total{([^}]*)} (\S+)$", tasks.metrics, re.MULTILINE
        )
        if {f'{key}="{text}"' for key, text in app.items()} <= set(labels.split(","))
        and "query_name" not in labels
    ]
    assert series == [ROWS]


def test_a_metric_that_was_kept(tasks: Tasks) -> None:
    """It went to the workers with the function that uses it."""
    assert tasks.value("spark_task_kept_total", way="rdd") == ROWS


def test_what_is_tried_again_counts_once(tasks: Tasks) -> None:
    """The attempt that failed had counted, too, and counts apart."""
    assert tasks.value("spark_task_retried_total", shop="a") == ROWS
    assert tasks.value("spark_task_retried_failed_attempts_total", shop="a") == ROWS / 4
    of_failed = set(re.findall(r"^spark_task_\w+_failed_attempts_total", tasks.metrics, re.MULTILINE))
    assert of_failed == {
        "spark_task_retried_failed_attempts_total",
        "spark_task_batches_failed_attempts_total",
    }
    assert "skipped a" not in tasks.run.err


def test_a_worker_that_is_killed(tasks: Tasks) -> None:
    assert tasks.value("spark_task_killed_total") == ROWS
    assert tasks.value("spark_task_killed_failed_attempts_total") is None


def test_a_failed_task_has_a_span(tasks: Tasks) -> None:
    """With what its code raised and where, its variables, and what it had reported before."""
    (failed,) = [span for span in tasks.spans if span["name"] == "Task"]
    (stage,) = [span for span in tasks.spans if span["spanId"] == failed["parentSpanId"]]
    (inner,) = [span for span in tasks.spans if span["name"] == "fails"]
    attributes, (raised,) = failed["attributes"], failed["events"]
    assert (failed["status"]["code"], stage["name"]) == ("ERROR", "Stage")
    assert raised["attributes"] == {"exception.type": "ValueError", "exception.message": "once"}
    assert attributes["code.function.name"] == "failing_once"
    assert attributes["code.file.path"].endswith("tasks.py")
    source = (APPS / "tasks.py").read_text().splitlines()
    assert source[int(attributes["code.line.number"]) - 1].strip() == 'raise ValueError("once")'
    assert (attributes["local.looked_at"], attributes["local.row"]) == ("999", "999")
    assert attributes["local.secret_token"] == "******"
    assert (inner["parentSpanId"], inner["status"]["code"]) == (failed["spanId"], "ERROR")
    (told,) = of_name(tasks.events, "AboutToFail")
    assert told["attributes"]["row"] == 999


def test_each_udf_is_measured(tasks: Tasks) -> None:
    """Without a word of theirs; one that PySpark calls for batches, by the batch."""
    assert tasks.value("spark_task_udf_calls_total", udf="plain_udf", app_name="tasks") == ROWS
    assert (tasks.value("spark_task_udf_processing_time_count", udf="plain_udf") or 0) >= 4
    assert 4 <= (tasks.value("spark_task_udf_calls_total", udf="in_pandas_udf") or 0) < ROWS
    assert tasks.value("spark_task_udf_exceptions_total", udf="plain_udf") is None


def test_gauges_and_histograms_of_all_tasks(tasks: Tasks) -> None:
    assert tasks.value("spark_task_number_min") == 0
    assert tasks.value("spark_task_number_max") == ROWS - 1
    assert tasks.value("spark_task_hundreds_count") == 10
    assert tasks.value("spark_task_hundreds_sum") == 4_500


def test_a_query_has_its_own(tasks: Tasks) -> None:
    assert tasks.value("spark_task_rows_total", query_name="orders", way="udf") == 3
    assert tasks.value("spark_task_rows_total", query_name="stateful") == 3


def test_a_foreach_batch_function(tasks: Tasks) -> None:
    """It runs in the driver, and reports as a task does: below its micro-batch; what fails counts apart."""
    labels = {"query_name": "batches", "shop": "a"}
    assert tasks.value("spark_task_batches_total", **labels) == 2
    assert tasks.value("spark_task_batches_failed_attempts_total", **labels) == 2
    assert tasks.value("spark_task_batches_total", shop="a", app_name="tasks") == 2
    assert tasks.value("spark_task_batch_rows", query_name="batches") in (2, 3)
    assert tasks.value("spark_task_rows_of_batch_count", query_name="batches") == 1
    spans = {span["spanId"]: span for span in tasks.spans}
    first, second = [span for span in spans.values() if span["name"] == "write"]
    for number, (span, status) in enumerate(((first, "UNSET"), (second, "ERROR"))):
        checkpoint = spans[span["parentSpanId"]]
        assert (checkpoint["name"], span["status"]["code"]) == ("Checkpoint", status)
        assert (checkpoint["attributes"]["checkpointId"], span["attributes"]["batch"]) == (number, number)
        assert span["attributes"]["traceparent"] == f"00-{span['traceId']}-{span['spanId']}-01"
        assert span["attributes"]["around"] == f"{span['traceId']} {span['spanId']}"
    told = of_name(tasks.events, "Writing", query_name="batches", job_kind="query")
    assert [event["attributes"]["batch"] for event in told] == [0, 1]


@SPARK_4
def test_a_stateful_processor(tasks: Tasks) -> None:
    assert tasks.value("spark_task_rows_total", query_name="processor", way="processor") == 3


def test_log_records_are_events(tasks: Tasks) -> None:
    told = of_name(tasks.events, "LogRecord")
    assert {event["body"] for event in told} == {"rates of ecb are old"}
    assert len(told) == 4
    assert {(event["severityText"], event["attributes"]["logger"]) for event in told} == {("WARN", "shop")}
    assert {event["attributes"]["code.function.name"] for event in told} == {"of_spans"}


def test_events(tasks: Tasks) -> None:
    """One of each part, with its place, and an id of its own."""
    told = of_name(tasks.events, "PartDone")
    assert sorted(event["attributes"]["part"] for event in told) == [0, 1, 2, 3]
    assert len({event["eventId"] for event in told}) == 4
    for event in told:
        assert (event["severityText"], event["body"]) == ("WARN", "a part is done")
        assert event["attributes"]["partition"] == str(event["attributes"]["part"])
        assert event["attributes"]["app_name"] == "tasks"


def test_spans_are_below_their_stage(tasks: Tasks) -> None:
    stages = {span["spanId"]: span for span in tasks.spans if span["name"] == "Stage"}
    outer = {span["spanId"]: span for span in tasks.spans if span["name"] == "outer"}
    inner = [span for span in tasks.spans if span["name"] == "inner"]
    assert (len(outer), len(inner)) == (4, 4)
    assert {span["parentSpanId"] for span in inner} == set(outer)
    assert len({span["parentSpanId"] for span in outer.values()}) == 1
    of_stage = {event["attributes"]["stage"] for event in of_name(tasks.events, "PartDone")}
    for span in outer.values():
        stage = stages[span["parentSpanId"]]
        assert span["traceId"] == stage["traceId"]
        assert span["attributes"]["rows"] == ROWS / 4
        assert span["attributes"]["traceparent"] == f"00-{span['traceId']}-{span['spanId']}-01"
        assert span["attributes"]["around"] == f"{span['traceId']} {span['spanId']}"
        assert of_stage == {f"00-{span['traceId']}-{span['parentSpanId']}-01"}
        assert int(stage["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(stage["endTimeUnixNano"]) + 1_000_000_000


def test_endless_names_are_bounded_and_said(tasks: Tasks) -> None:
    """A task may have 500 series, so that a name for each row does no harm."""
    assert "too many" not in tasks.run.out
    names = set(re.findall(r"^spark_task_name_\d+_total", tasks.metrics, re.MULTILINE))
    assert 0 < len(names) <= ROWS
