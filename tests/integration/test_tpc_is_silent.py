"""The queries of TPC-H and TPC-DS at a size at which they are healthy: no issue is told of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name
from tests.support.paths import APPS
from tests.support.tpc import load

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize("name", ["tpch", "tpcds"])
def test_no_issue_is_told(name: str, java: str, tmp_path: Path) -> None:
    """A query takes a few seconds here, so an issue counts from one second on, not from 30."""
    pytest.importorskip("duckdb")
    data, logs = tmp_path / name, tmp_path / "logs"
    for folder in (data, logs):
        folder.mkdir()
    suite = load(name, 1, data)
    (data / "queries.json").write_text(json.dumps(suite.queries))
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "live"),
        "spark.events.issue.min-duration": "1s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.driver.memory": "2g",
        # A heap that begins small collects garbage three times as often, which is not a fault of a query.
        "spark.driver.extraJavaOptions": "-Xms2g -XX:+AlwaysPreTouch",
    }
    run = App(cli("run", "--master", "local[2]", str(APPS / "tpc.py"), str(data)), conf, tmp_path).end(1_200)
    assert run.code == 0, run.err[-3000:]
    assert run.out.split() == [str(number) for number in suite.queries]
    events = file_events(tmp_path / "live")
    assert len(of_name(events, "JobStatusChangeEvent", newJobStatus="FINISHED")) > len(suite.queries)
    assert [event["body"] for event in of_name(events, "PerformanceIssueEvent")] == []
    why = App(cli("why", str(logs), "--json", str(tmp_path / "why.json")), {}, tmp_path).end(120)
    assert why.code == 0, why.err
    (application,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert application["issues"] == []
