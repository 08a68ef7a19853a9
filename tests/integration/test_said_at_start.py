"""What ``spark-events run`` says at the start of an application, and that it can be turned off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.waiting import free_port

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]
APP = """
import sys, threading, spark_events
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for thread in threading.enumerate():
    if thread.name == "spark-events-say":
        thread.join()
print(spark_events.attach(spark, strict=True), sys.executable)
print("rows", spark.range(3).rdd.map(lambda row: row.id).count())
spark.stop()
"""


@pytest.mark.extended
def test_it_says_where_it_reports_to_or_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names each reporter, its destination and its port; a misspelled option is a warning beside it."""
    app, port = tmp_path / "app.py", free_port()
    app.write_text(APP)
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "events"),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
    }
    run = App(cli("run", "--master", "local[1]", str(app)), conf, tmp_path).end()
    said = [line for line in run.err.splitlines() if line.startswith("spark-events: ")]

    assert run.code == 0, run.err[-3000:]
    assert len(said) == 1
    assert "spark-events: " not in run.out  # spark-submit writes the driver's standard error there
    assert re.fullmatch(
        rf"spark-events: INFO: reporting on local-\d+: events to .*{tmp_path.name}.*, "
        rf"metrics to http://.*:{port}\S*",
        said[0],
    )

    (tmp_path / "events").rename(tmp_path / "before")
    monkeypatch.setenv("SPARK_EVENTS_ENABLED", "false")
    run = App(cli("run", "--master", "local[1]", str(app)), conf, tmp_path).end()

    assert run.code == 0, run.err[-3000:]
    assert "no reporter; turned off by SPARK_EVENTS_ENABLED=false in the environment>" in run.out
    assert "rows 3" in run.out
    assert not (tmp_path / "events").exists()
