"""Tasks that end after their stage, which has failed or was cancelled: what they take counts as Spark counts it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.waiting import free_port, http_get

PROGRAM = """
import json, sys, time
from pathlib import Path
from pyspark import InheritableThread, TaskContext
from pyspark.sql import SparkSession
import spark_events

seen, runs = Path(sys.argv[1]), Path(sys.argv[2])
spark = SparkSession.builder.master("local[3]").appName("late").getOrCreate()
spark_events.attach(spark, strict=True)
context = spark.sparkContext

def failing(rows):
    if TaskContext.get().partitionId():
        time.sleep(2)
    raise ValueError("no")

def endless(rows):
    (runs / str(TaskContext.get().partitionId())).touch()
    time.sleep(100)

def run(function, group):
    context.setJobGroup(group, group, interruptOnCancel=True)
    try:
        context.parallelize(range(3), 3).mapPartitions(function).count()
    except Exception:
        pass

run(failing, "failing")
cancelled = InheritableThread(target=run, args=(endless, "endless"))
cancelled.start()
while len(list(runs.iterdir())) < 3:
    time.sleep(0.05)
time.sleep(1)
context.cancelJobGroup("endless")
cancelled.join()
store = context._jsc.sc().statusStore()
while store.executorList(True).apply(0).activeTasks():
    time.sleep(0.05)
context._jsc.sc().listenerBus().waitUntilEmpty()
stages = store.stageList(None, False, False, context._gateway.new_array(context._jvm.double, 0), None)
stages = [stages.apply(number) for number in range(stages.size())]
told = {
    "failed": sum(stage.numFailedTasks() for stage in stages),
    "killed": sum(stage.numKilledTasks() for stage in stages),
    "run_ms": sum(stage.executorRunTime() for stage in stages),
}
(seen / "spark.tmp").write_text(json.dumps(told))
(seen / "spark.tmp").rename(seen / "spark.json")
while not (seen / "done").exists():
    time.sleep(0.05)
spark.stop()
"""


@pytest.mark.extended
@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_late_tasks(tmp_path: Path) -> None:
    port, seen, runs = free_port(), tmp_path / "seen", tmp_path / "runs"
    seen.mkdir()
    runs.mkdir()
    script = tmp_path / "late.py"
    script.write_text(PROGRAM)
    conf = {
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": str(port),
    }
    app = App([sys.executable, str(script), str(seen), str(runs)], conf, tmp_path)
    app.wait_for(lambda: (seen / "spark.json").exists(), "its jobs have ended")
    by_spark = json.loads((seen / "spark.json").read_text())

    def told() -> dict[str, int]:
        page = http_get(f"http://127.0.0.1:{port}/metrics")
        names = {"failed": "failed_tasks_total", "run_ms": "executor_run_time_seconds_total"}
        found = {
            key: re.search(rf"^spark_application_{name}{{.*}} (\S+)$", page, re.MULTILINE)
            for key, name in names.items()
        }
        failed, run_s = (float(match[1]) if match else -1 for match in found.values())
        return {"failed": int(failed), "run_ms": round(1_000 * run_s)}

    expected = {key: by_spark[key] for key in ("failed", "run_ms")}
    app.wait_for(lambda: told() == expected, f"{expected} is told")
    (seen / "done").touch()
    assert app.end().code == 0
    assert by_spark["killed"] >= 3, "the tasks of the job that was cancelled"
    assert by_spark["failed"] >= 1, "the one that has failed its stage"
    assert by_spark["run_ms"] > 3_000
