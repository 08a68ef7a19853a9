"""Loses an executor whose shuffle data a stage is reading, which therefore begins again."""

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
    """Return the ids of those that live."""
    living = sc._jsc.sc().statusStore().executorList(True)
    return {living.apply(index).id() for index in range(living.size())} - {"driver"}


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


def held(partition, rows):
    """Keep the first two tasks, one on each executor, until one of these is gone: others have data to fetch then."""
    (work / f"runs-{partition}").touch()
    if partition < 2:
        until((work / "gone").exists)
    return rows


def lose_executor():
    until(lambda: all((work / f"runs-{partition}").exists() for partition in range(2)))
    os.kill(process_of(0), signal.SIGKILL)
    until(lambda: "0" not in executors())
    (work / "gone").touch()


until(lambda: executors() == {"0", "1"})
pairs = sc.parallelize(range(100), 4).map(lambda number: (number % 4, number)).groupByKey(4)
print("written:", pairs.count(), flush=True)
killer = threading.Thread(target=lose_executor)
killer.start()
print("read again:", sorted(pairs.mapValues(len).mapPartitionsWithIndex(held).collect()), flush=True)
killer.join()
spark.stop()
