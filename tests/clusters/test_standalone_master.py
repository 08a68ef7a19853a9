"""A standalone cluster whose master dies, and comes back with what it has kept on its disk."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.executors import losses, lost_before_the_end
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.paths import APPS
from tests.support.spark_cluster import running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(600)]


def test_a_query_outlives_the_master(java: str, tmp_path: Path) -> None:
    """Without a word of it: nothing is down. The master that comes back replaces an executor as before."""
    events_in, go = tmp_path / "events", tmp_path / "go"
    words = (str(APPS / "watched_orders.py"), str(tmp_path / "state"), str(go))

    def events() -> list[Event]:
        return file_events(events_in)

    def batches() -> int:
        return len(of_name(events(), "CheckpointEvent"))

    with running_spark_cluster(recovers=True) as cluster:
        conf = {
            **events_and_spans(events_in),
            "spark.master": cluster.master,
            "spark.executor.memory": "512m",
        }
        app = App(cli("run", *words), conf, tmp_path)
        app.wait_for(lambda: batches() > 1, "the query runs")
        cluster.kill_master()
        known = batches()
        app.wait_for(lambda: batches() > known + 2, "it runs without a master")
        cluster.start_master()
        assert lost_before_the_end(events()) == []

        os.kill(cluster.executors()["0"], signal.SIGKILL)
        app.wait_for(lambda: losses(events()), "the executor is lost")
        known = batches()
        app.wait_for(lambda: batches() > known + 2, "the query goes on with another")
        go.touch()
        run = app.end()
    assert run.code == 0, run.err[-3000:]
    assert statuses(events(), "application") == ["CREATED", "RUNNING", "FINISHED"]
    assert statuses(events(), "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert {number: loss["reason"] for number, loss in losses(events()).items()} == {"0": "killed"}
    assert of_name(events(), "JobFailureEvent", job_kind="application") == []
