"""The 22 queries of TPC-H at a size at which they are healthy: no issue is told of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS
from tests.support.tpc import load

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_tpch_is_silent(java: str, tmp_path: Path) -> None:
    """A query takes a few seconds here, so an issue counts from one second on, not from 30."""
    pytest.importorskip("duckdb")
    (tmp_path / "data").mkdir()
    suite = load("tpch", 1, tmp_path / "data")
    (tmp_path / "data" / "queries.json").write_text(json.dumps(suite.queries))
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "live"),
        "spark.events.issue.min-duration": "1s",
        "spark.driver.memory": "2g",
        # A heap that begins small collects garbage three times as often, which is no fault of a query.
        "spark.driver.extraJavaOptions": "-Xms2g -XX:+AlwaysPreTouch",
    }
    command = cli("run", "--master", "local[2]", str(APPS / "tpch.py"), str(tmp_path / "data"))
    run = App(command, conf, tmp_path).end(500)
    assert run.code == 0, run.err[-3000:]
    assert run.out.split() == [str(number) for number in range(1, 23)]
    events = file_events(tmp_path / "live")
    assert len(of_name(events, "JobStatusChangeEvent", newJobStatus="FINISHED")) > 22
    assert [event["body"] for event in of_name(events, "PerformanceIssueEvent")] == []
