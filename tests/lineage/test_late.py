"""A listener that comes when queries run already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spark_events
from tests.support.file_log import whole_lines
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


def test_a_query_that_runs_already_is_told_with_its_lineage(spark: Any, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id LONG").parquet(str(tmp_path / "in"))
    writer = stream.writeStream.format("parquet").option("path", str(tmp_path / "out")).queryName("early")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    listener = "spark.job-status-changed.listener"
    conf = {f"{listener}s": "file_log", f"{listener}.file_log.path": str(tmp_path / "jobs")}
    attachment = spark_events.attach(spark, strict=True, conf=conf)
    try:

        def created() -> dict[str, Any] | None:
            lines = [line for file in (tmp_path / "jobs").iterdir() for line in whole_lines(file)]
            events = [json.loads(line) for line in lines]
            return next((e for e in events if e["jobName"] == "early" and "lineage" in e), None)

        found = wait_until(created, "the query is told")
    finally:
        query.stop()
        attachment.close()
    graph = found["lineage"]
    assert [dataset["name"] for vertex in graph["sources"] for dataset in vertex["datasets"]] == [
        str(tmp_path / "in")
    ]
    assert [dataset["name"] for vertex in graph["sinks"] for dataset in vertex["datasets"]] == [
        str(tmp_path / "out")
    ]
    assert [column for edge in graph["relations"] for column in edge["columns"]] == ["id"]
