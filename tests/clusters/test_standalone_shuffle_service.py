"""Executors that go, while a worker of a standalone cluster serves what they have written for shuffles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.executors import losses
from tests.support.file_log import events_and_spans, file_events, of_name, statuses
from tests.support.paths import APPS
from tests.support.spark_cluster import running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]


def test_what_they_have_written_outlives_them(java: str, tmp_path: Path) -> None:
    """Dynamic allocation: nobody calls them lost, and no stage begins again."""
    with running_spark_cluster(keeps_shuffles=True) as cluster:
        conf = {
            **events_and_spans(tmp_path / "events"),
            **cluster.shuffle_conf,
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "false",
            "spark.dynamicAllocation.executorIdleTimeout": "1s",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
        }
        command = cli("run", "--master", cluster.master, str(APPS / "shuffled.py"))
        run = App(command, conf, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    assert "read again: [(0, 25), (1, 25), (2, 25), (3, 25)]" in run.out

    events = file_events(tmp_path / "events")
    idle = [lost for lost in losses(events).values() if lost["reason"] == "killed_by_driver"]
    assert idle
    assert sum(lost["shuffleBytesWritten"] for lost in idle) > 0
    assert {event["severityText"] for event in of_name(events, "ExecutorLostEvent")} == {"INFO"}
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    stages = [
        (event["attributes"]["stage_id"], event["attributes"]["stage_attempt"])
        for event in of_name(events, "AllSubtasksStatusChangeEvent", status="ALL_RUNNING_OR_FINISHED")
    ]
    # Stage 2 would write for the shuffle again.
    assert sorted(stages) == [("0", "0"), ("1", "0"), ("3", "0")]
