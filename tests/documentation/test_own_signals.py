"""The page docs/own-signals.md, run on a real Spark, and what reporters get of it."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_events
from spark_events.api import LineageGraph, Severity
from spark_events.ctas import CtasError
from spark_events.sources.attaching.attachment import Attachment
from tests.support.file_log import Event, file_events
from tests.support.paths import REPO
from tests.support.spark import local_spark
from tests.support.waiting import free_port, wait_until

pytestmark = pytest.mark.spark
PAGE = REPO / "docs" / "own-signals.md"


@pytest.fixture(scope="module")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with local_spark("own", tmp_path_factory.mktemp("warehouse")) as session:
        yield session


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, str]:
    file, spans = "spark.events.reporter.file", "spark.traces.reporter.file"
    return {
        f"{file}.factory.class": "file_log",
        f"{file}.path": str(tmp_path / "events"),
        f"{spans}.factory.class": "file_log",
        f"{spans}.path": str(tmp_path / "events"),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(free_port()),
        "spark.metrics.reporter.prom.linger.timeout": "0",
    }


def file_spans(folder: Path) -> list[Event]:
    return [
        json.loads(line) for path in folder.glob("*.spans.*.jsonl") for line in path.read_text().splitlines()
    ]


def metrics(conf: dict[str, str]) -> str:
    port = conf["spark.metrics.reporter.prom.port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        return str(page.read().decode())


def test_the_page(spark: Any, conf: dict[str, str], tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert code is not None
    names = {"spark": spark}
    with spark_events.attach(spark, conf=conf) as reporting:
        exec(code[1], names)
        # The reporter's own thread takes them in, in their order: with the last, it has them all.
        wait_until(
            lambda: "spark_driver_download_seconds_sum" in metrics(conf), "its reporter has all metrics"
        )
        text = metrics(conf)
        assert names["reporting"] is reporting

    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("spark_driver_"))
    assert lines['spark_driver_files_read_total{app_name="own",source="ftp"}'] == "3.0"
    assert lines['spark_driver_queue_depth{app_name="own"}'] == "17.0"
    assert lines['spark_driver_download_seconds_sum{app_name="own"}'] == "1.7"
    (event,) = [each for each in file_events(tmp_path / "events") if each["eventName"] == "RatesStale"]
    assert (event["body"], event["severityText"]) == ("using yesterday's rates", "WARN")
    assert event["attributes"]["app_name"] == "own"
    assert event["attributes"]["app_id"] == spark.sparkContext.applicationId
    assert event["attributes"]["currency"] == "EUR"
    spans = {span["name"]: span for span in file_spans(tmp_path / "events")}
    assert spans["load rates"]["parentSpanId"] == spans["Application"]["spanId"]
    assert spans["load rates"]["traceId"] == spans["Application"]["traceId"]
    assert spans["load rates"]["attributes"]["files"] == 3


def test_spans_that_fail_and_nest(spark: Any, conf: dict[str, str], tmp_path: Path) -> None:
    with (
        spark_events.attach(spark, conf=conf) as reporting,
        pytest.raises(KeyError),
        reporting.span("outer"),
        reporting.span("inner"),
    ):
        raise KeyError("of the user")

    spans = {span["name"]: span for span in file_spans(tmp_path / "events")}
    assert spans["inner"]["parentSpanId"] == spans["outer"]["spanId"]
    assert "KeyError" in json.dumps(spans["outer"])


def test_odd_values_and_odd_names(spark: Any, conf: dict[str, str], tmp_path: Path) -> None:
    """Nothing raises; labels may have any name."""
    with spark_events.attach(spark, conf=conf) as reporting:
        same = [reporting.counter("odd", name="x", app_name="mine") for _ in range(2)]
        assert same[0] is same[1]
        same[0].inc()
        same[0].inc(-1)
        reporting.gauge("odd_gauge").set(float("nan"))
        reporting.gauge("broken", lambda: 1 // 0)
        reporting.histogram("odd_histogram").update("x")  # type: ignore[arg-type]
        reporting.event("Odd", name="alice", body=object(), severity="critical")
        reporting.event("Loud", "", "deafening")
        counted = 'spark_driver_odd_total{app_name="own",exported_app_name="mine",name="x"} 1.0'
        wait_until(lambda: counted in metrics(conf), "its reporter has the counter")

    events = {event["eventName"]: event for event in file_events(tmp_path / "events")}
    assert events["Odd"]["attributes"]["name"] == "alice"
    assert events["Odd"]["severityText"] == "FATAL"
    assert events["Loud"]["severityText"] == "INFO"


def test_without_a_reporter(spark: Any) -> None:
    """It does nothing, and says nothing."""
    with spark_events.attach(spark) as reporting:
        assert isinstance(reporting, Attachment)
        reporting.counter("files_read").inc()
        reporting.event("Nothing")
        with reporting.span("nothing"):
            pass


def test_what_people_type(spark: Any) -> None:
    """What autocomplete suggests works, and mistakes are told by a sentence."""
    from spark_events import task

    spark_events.ctas.sql(spark, "CREATE TABLE typed USING parquet AS SELECT 1 AS id, 'a' AS day")
    frame = spark.table("typed")
    spark_events.ctas.create_table_as(frame, "by_day", mode="create_or_replace", partition_by="day")
    assert spark.catalog.listColumns("by_day")[-1].isPartition
    with pytest.raises(CtasError, match="mode='overwrite' is not valid; expected one of create"):
        spark_events.ctas.create_table_as(frame, "by_day", mode="overwrite")

    task.counter("bad", shop="berlin").inc()
    assert task.counter is not None
    assert Severity.of("warning") is Severity.WARN

    statement = "INSERT INTO typed SELECT id + 1, upper(day) FROM by_day WHERE id > 0"
    graph = spark_events.lineage.lineage_of(spark, statement)
    assert isinstance(graph, LineageGraph)
    lines = str(graph).splitlines()
    assert lines[0] == "writes default.typed (INSERT)"
    assert "  id ← default.by_day.id" in lines
    assert lines[-1] == "reads default.by_day"
    assert [str(each) for each in graph.inputs] == ["default.by_day"]
    assert [str(each) for each in graph.outputs] == ["default.typed"]
    assert [source.column for source in graph.columns["day"]] == ["day"]
    as_json = json.loads(json.dumps(graph.to_dict()))
    assert as_json["columns"]["id"][0]["transformations"] == ["TRANSFORMATION"]
    assert as_json["inputs"][0]["name"].endswith("by_day")
