"""Queries whose trigger has an end: FINISHED if they reach it, CANCELED if they are stopped before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.file_log import file_events, of_name

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.extended]
PROGRAM = """
import functools, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
import spark_events
from spark_events.sources.driver.state import DriverState

base = Path(sys.argv[1])
files = base / "files"
files.mkdir()
for number in range(6):
    (files / f"{number}.json").write_text('{"n": 1}')
complete, gone = DriverState.complete_query, threading.Event()
gone.set()

def late(state, record):
    gone.wait(60)
    return complete(state, record)

DriverState.complete_query = late
spark = SparkSession.builder.master("local[1]").appName("bounded").getOrCreate()
attachment = spark_events.attach(spark, strict=True)
held, goes_on = threading.Event(), threading.Event()

def hold(data, batch):
    data.count()
    if batch == 1:
        held.set()
        goes_on.wait(60)

def start(name, function, **trigger):
    rows = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(files))
    writer = rows.writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoints" / name))
    return writer.trigger(**trigger).foreachBatch(function).start()

count = lambda data, batch: data.count()
for name, trigger in (("all", {"availableNow": True}), ("one", {"once": True})):
    reached = start(name, count, **trigger)
    reached.awaitTermination()
    reached.stop()
for name in ("stopped", "stopped in Java"):
    held.clear(), goes_on.clear()
    query = start(name, hold, availableNow=True)
    held.wait(60)
    stopping = threading.Thread(target=query.stop if name == "stopped" else query._jsq.stop)
    stopping.start()
    while query.isActive:
        time.sleep(0.05)
    goes_on.set()
    stopping.join()
for name, stops in (("gone", False), ("stopped and gone", True)):
    held.clear(), goes_on.clear(), gone.clear()
    query = start(name, hold, availableNow=True)
    held.wait(60)
    stopping = threading.Thread(target=query.stop if stops else query.awaitTermination)
    stopping.start()
    while stops and query.isActive:
        time.sleep(0.05)
    goes_on.set()
    stopping.join()
    gone.set()
    while spark.streams.active:
        time.sleep(0.05)

# As those of a Spark Connect server may, it shares no state with the other one, and so has queries of its own.
java = functools.reduce(getattr, spark._jsparkSession.getClass().getName().split("."), spark._jvm)
other = SparkSession(spark.sparkContext, java(spark._jsc.sc(), spark._jvm.java.util.HashMap()))
for name, trigger in (("of another", {"processingTime": "1 hour"}), ("continuous", {"continuous": "1 second"})):
    rate = other.readStream.format("rate").option("numPartitions", 1).load()
    query = rate.writeStream.queryName(name).format("noop").trigger(**trigger).start()
    while "Waiting for next trigger" not in query.status["message"] and "epoch 2" not in query.status["message"]:
        time.sleep(0.05)
    query._jsq.stop()
spark.stop()
attachment.wait_closed()
"""


@pytest.mark.extended
def test_how_they_end(tmp_path: Path) -> None:
    """Programs stop what has ended, too: it stays FINISHED. So does what ends before anybody looks at it."""
    script = tmp_path / "bounded.py"
    script.write_text(PROGRAM)
    log = tmp_path / "log"
    conf = {"spark.events.reporter.f.factory.class": "file_log", "spark.events.reporter.f.path": str(log)}
    run = App([sys.executable, str(script), str(tmp_path)], conf, tmp_path).end()

    assert run.code == 0, run.err[-3000:]
    changes = of_name(file_events(log), "JobStatusChangeEvent", job_kind="query")
    last = {each["attributes"]["query_name"]: each["attributes"]["newJobStatus"] for each in changes}
    # Spark 3.5 lets the micro-batch commit: then nothing tells that Java has stopped the query.
    has_committed = (tmp_path / "checkpoints/stopped in Java/commits/1").exists()
    assert last == {
        "all": "FINISHED",
        "one": "FINISHED",
        "stopped": "CANCELED",
        "gone": "FINISHED",
        "stopped and gone": "CANCELED",
        "stopped in Java": "FINISHED" if has_committed else "CANCELED",
        "of another": "CANCELED",
        "continuous": "CANCELED",
    }
