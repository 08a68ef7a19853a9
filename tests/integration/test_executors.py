"""Executors that come and go, in a cluster of two of them on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark
import pytest

from tests.support.applications import App, cli
from tests.support.paths import APPS
from tests.support.waiting import free_port, http_get

pytestmark = pytest.mark.spark


def value(metrics: str, name: str) -> float:
    """Return the sum of all series of a name."""
    return sum(float(number) for number in re.findall(rf"^{name}\{{.*\}} (\S+)$", metrics, re.MULTILINE))


def test_executors_that_are_lost(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is killed is counted with the reason, and the one that takes its place as added."""
    # Where a cluster on this machine finds the scripts to start executors with.
    monkeypatch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
    port = free_port()
    conf = {
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
        "spark.executor.memory": "512m",
    }
    app = App(
        cli("run", "--master", "local-cluster[2,2,512]", str(APPS / "executors.py"), str(tmp_path)),
        conf,
        tmp_path,
    )
    url = f"http://127.0.0.1:{port}/metrics"
    removed = "spark_application_executors_removed_total"
    app.wait_for(lambda: value(http_get(url), removed) == 1, "the loss of an executor is seen")
    app.wait_for(lambda: value(http_get(url), "spark_application_executors") == 2, "another has come")
    metrics = http_get(url)
    (tmp_path / "go").touch()
    run = app.end()

    assert run.code == 0, run.err[-3000:]
    assert run.out == "count: 8\n"
    assert (
        f'{removed}{{app_name="executors",reason="out_of_memory"}} 1.0' in metrics
    )  # exit code 137: a SIGKILL
    assert value(metrics, "spark_application_executors_added_total") == 3
    assert value(metrics, "spark_application_executor_cores") == 4
    assert value(metrics, "spark_application_finished_tasks_total") == 8
