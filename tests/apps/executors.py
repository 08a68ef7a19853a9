"""Loses an executor: kills the process of one, and goes on with the other."""

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
    return sc._jsc.sc().statusTracker().getExecutorInfos()


def child_pids():
    """The processes of this driver's executors: below its JVM, by their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and sc.applicationId.encode() in command:
            found.append(int(entry.name))
    return found


until(lambda: len(executors()) == 3)  # the driver, and two executors
print("count:", sc.parallelize(range(8), 8).count(), flush=True)
os.kill(child_pids()[0], signal.SIGKILL)
until(lambda: (work / "go").exists())
spark.stop()
