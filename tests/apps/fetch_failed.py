"""Loses an executor between the stage that writes shuffle data and the one that reads it, which begins again."""

import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

work = Path(sys.argv[1])
spark = SparkSession.builder.appName("fetch").getOrCreate()
sc = spark.sparkContext


def until(condition):
    for _ in range(1_200):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within a minute")


def executors():
    return len(sc._jsc.sc().statusTracker().getExecutorInfos()) - 1  # without the driver


def process_of(executor):
    """Return the process of an executor of this application, of all on this machine."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().replace(b"\0", b" ")
        except OSError:  # it has just ended
            continue
        if b"--executor-id %d " % executor in words and sc.applicationId.encode() in words:
            return int(command.parent.name)
    raise AssertionError(f"no executor {executor}")


until(lambda: executors() == 2)
pairs = sc.parallelize(range(100), 4).map(lambda number: (number % 4, number)).groupByKey(4)
print("written:", pairs.count(), flush=True)
os.kill(process_of(0), signal.SIGKILL)
print("read again:", sorted(pairs.mapValues(len).collect()), flush=True)
spark.stop()
