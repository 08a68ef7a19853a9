"""``attach`` to a session of a real Spark Connect server, which PySpark starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import file_events, of_name, statuses
from tests.support.paths import APPS

# PySpark starts a Connect server on one port for all.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("connect"), pytest.mark.extended]
pyspark = pytest.importorskip("pyspark")
if int(pyspark.__version__.split(".")[0]) < 4:
    pytest.skip("Spark Connect has client-side listeners from 4.0 on", allow_module_level=True)
for needed in ("pandas", "pyarrow", "grpc_status"):
    pytest.importorskip(needed)


def run(folder: Path, how: str) -> list[dict[str, Any]]:
    (folder / "logs").mkdir()
    done = App([sys.executable, str(APPS / "connect.py"), str(folder), how], {}, folder).end()
    assert done.code == 0, done.err[-3000:]
    assert "end of main" in done.out
    return file_events(folder / "events")


def without_heartbeats(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert of_name(events, "HeartbeatEvent")
    return [event for event in events if event["eventName"] != "HeartbeatEvent"]


def of_query(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["attributes"].get("query_name") == name]


def test_queries_of_a_session(tmp_path: Path, java: str) -> None:
    """Those that ran at attach as well; neither the server's application nor its jobs are this client's."""
    events = without_heartbeats(run(tmp_path, "stop"))

    assert {event["attributes"]["job_kind"] for event in events} == {"query"}
    assert statuses(of_query(events, "early"), "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert statuses(of_query(events, "stopped"), "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert statuses(of_query(events, "bad"), "query")[-1] == "FAILED"
    (failure,) = of_name(events, "JobFailureEvent")
    assert "is not true" in failure["attributes"]["exception.message"]
    completed = [
        e["attributes"]["checkpointId"] for e in of_name(of_query(events, "stopped"), "CheckpointEvent")
    ]
    assert completed[:4] == [0, 1, 2, 3]

    # The server's own log tells the same of these queries, under the same ids.
    target = ("--conf", f"spark.events.reporter.f.path={tmp_path / 'replayed'}")
    options = ("--conf", "spark.events.reporter.f.factory.class=file_log", *target)
    subprocess.run(
        cli("replay", str(tmp_path / "logs"), *options), check=True, capture_output=True, timeout=280
    )
    replayed = file_events(tmp_path / "replayed")
    theirs = {event["eventId"] for event in replayed if event["attributes"]["job_kind"] == "query"}
    mine = {event["eventId"] for event in events}
    assert len(mine) > 12
    # The batch that failed is known by its SQL execution, and batches before attach were nobody's.
    unknown = {e["eventId"] for e in replayed if e["attributes"].get("checkpointStatus") == "FAILED"}
    before = {e["eventId"] for e in of_name(of_query(replayed, "early"), "CheckpointEvent")}
    assert mine <= theirs
    assert theirs - mine <= unknown | before


@pytest.mark.thorough
def test_a_client_that_ends_without_stop(tmp_path: Path, java: str) -> None:
    """Nothing keeps its process from ending; what had happened by then is delivered."""
    events = run(tmp_path, "leave")
    assert "FAILED" in statuses(of_query(events, "bad"), "query")
    assert statuses(of_query(events, "early"), "query") == ["CREATED", "RUNNING"]


OWN_SERVER = """
import sys
from pyspark.sql import SparkSession
import spark_events
spark = SparkSession.builder.getOrCreate()
print(type(spark).__module__, spark_events.attach(spark))
rate = spark.readStream.format("rate").load()
query = rate.writeStream.queryName("orders").format("noop").trigger(availableNow=True).start()
query.awaitTermination()
spark.stop()
"""


def test_a_session_of_the_driver_that_is_attached(tmp_path: Path, java: str) -> None:
    """PySpark can start a server in the program's own driver, which ``run`` attaches to: it is not told twice."""
    script = tmp_path / "own_server.py"
    script.write_text(OWN_SERVER)
    conf = {
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(tmp_path / "events"),
    }
    more = {"SPARK_API_MODE": "connect"}
    app = App(cli("run", "--master", "local[2]", str(script)), conf, tmp_path, more=more).end(120)

    assert "pyspark.sql.connect" in app.out
    assert "<Attachment to session" not in app.out
    assert len(list((tmp_path / "events").glob("*.jsonl"))) == 1
    assert statuses(of_query(file_events(tmp_path / "events"), "orders"), "query")[-1] == "FINISHED"
