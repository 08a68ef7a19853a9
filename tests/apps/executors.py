"""Loses executors: one is killed in the middle of a task, which fails the job; one runs out of heap."""

import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

work = Path(sys.argv[1])
spark = SparkSession.builder.appName("executors").getOrCreate()
sc = spark.sparkContext


def until(condition):
    for _ in range(1_200):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within a minute")


def executors():
    return len(sc._jsc.sc().statusTracker().getExecutorInfos()) - 1  # without the driver


def kill_own_executor(number):
    """SIGKILL for the JVM above this worker's daemon, once its memory has been measured."""
    threading.Event().wait(2.5)
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
    threading.Event().wait(60)
    return number


until(lambda: executors() == 2)
print("count:", sc.parallelize(range(8), 8).count(), flush=True)


def wait_until_seen(number):
    until((work / "seen").exists)
    return number


for lose in (
    lambda: sc.parallelize([1], 1).map(kill_own_executor).count(),
    lambda: spark.range(1).selectExpr("length(repeat(cast(id AS string), 800000000)) AS n").collect(),
):
    try:
        lose()
    except Exception as error:
        print("failed:", type(error).__name__, flush=True)
    until(lambda: executors() == 2)
until((work / "go").exists)
sc.parallelize([1, 2], 2).map(wait_until_seen).count()
spark.stop()
