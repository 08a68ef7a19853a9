"""Loses executors of a cluster, one after the other: some by faults of its jobs, some by those of who runs it."""

import os
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

work, executors_wanted = Path(sys.argv[1]), int(sys.argv[2])
spark = SparkSession.builder.appName("faults").getOrCreate()
sc = spark.sparkContext


def until(condition):
    for _ in range(2_400):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within two minutes")


def executors():
    return len(sc._jsc.sc().statusTracker().getExecutorInfos()) - 1  # without the driver


def hold(number):
    """Run until somebody has killed one of the executors; a worker gives each a folder that is named as it is."""
    (work / f"runs-{number}-{Path(os.getcwd()).name}").touch()
    until((work / "killed").exists)
    return number


def attempt(action):
    try:
        action()
    except Exception as error:
        print("failed:", type(error).__name__, flush=True)


until(lambda: executors() == executors_wanted)
slots = 2 * executors_wanted
written = sc.parallelize(range(slots), slots).map(lambda number: (number, number)).partitionBy(slots)
attempt(lambda: written.keys().map(hold).count())
for fault in (
    "reflect('java.lang.System', 'exit', 3)",
    "length(repeat(cast(id AS string), 800000000))",
):
    attempt(lambda fault=fault: spark.range(0, 1, 1, 1).selectExpr(f"{fault} AS fault").collect())
until((work / "faults-seen").exists)
until(lambda: executors() == executors_wanted)
print("all there", flush=True)
until((work / "go").exists)
spark.stop()
