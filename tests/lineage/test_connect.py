"""Statements and queries of Spark Connect's clients, which the driver that serves them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.lineage.job_logs import read_job_logs
from tests.support.applications import App, cli
from tests.support.file_log import file_events, statuses
from tests.support.lineage_shop import listeners
from tests.support.paths import APPS
from tests.support.waiting import free_port

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
pyspark = pytest.importorskip("pyspark")
if int(pyspark.__version__.split(".")[0]) < 4:
    pytest.skip("PySpark has brought the server's plugin since 4.0", allow_module_level=True)
for needed in ("pandas", "pyarrow", "grpc_status"):
    pytest.importorskip(needed)


@pytest.mark.extended
def test_the_driver_that_serves_them_tells_all_of_them(java: str, tmp_path: Path) -> None:
    """Of streaming queries, how they end, whether they resume, and their lineage."""
    conf = {
        **listeners(tmp_path),
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "events"),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(free_port()),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    app = str(APPS / "connect_statements.py")
    ended = App(cli("run", "--master", "local[2]", app, str(tmp_path)), conf, tmp_path).end(300)
    assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]

    flow = read_job_logs([tmp_path / "jobs"])
    told = {
        (flow.title(source), flow.title(sink)): (each.columns, each.status)
        for source, sink, each in flow.current()
        if source is not None and sink is not None
    }
    assert told == {
        ("default.orders", "default.totals"): ({"rest": ["id"], "total": ["amount"]}, "FINISHED"),
        ("default.totals", f"{tmp_path}/ones"): ({"total": ["total"]}, "FINISHED"),
        ("rate", f"{tmp_path}/ticks"): (
            {"timestamp": ["timestamp"], "value": ["value"]},
            "CANCELED",
        ),
    }

    events = file_events(tmp_path / "events")
    of_name = {
        name: statuses([e for e in events if e["attributes"].get("query_name") == name], "query")
        for name in ("stopped", "continuous", "reached")
    }
    assert of_name == {
        "stopped": ["CREATED", "RUNNING", "CANCELED", "RESTARTING", "RUNNING", "CANCELED"],
        "continuous": ["CREATED", "RUNNING", "CANCELED"],
        "reached": ["CREATED", "RUNNING", "FINISHED"],
    }
