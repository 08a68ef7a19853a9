"""Makes a table, slowly, or stops before it commits.

ctas_slow.py sleep|stop
"""

from __future__ import annotations

import os
import signal
import sys

from pyspark.sql import SparkSession

from spark_events import ctas
from spark_events.ctas import fault_points

SLOW = "CASE WHEN id = 9 THEN reflect('java.lang.Thread', 'sleep', 600000L) END"


def stop(point: str) -> None:
    if point == "after_prepared":
        print("prepared", flush=True)
        os.killpg(0, signal.SIGSTOP)


spark = SparkSession.builder.getOrCreate()
slow = sys.argv[1] == "sleep"
if not slow:
    fault_points.observers.append(stop)
print("begins", flush=True)
try:
    more = f", {SLOW} AS a" if slow else ""
    ctas.sql(spark, f"CREATE TABLE t USING parquet AS SELECT id{more} FROM range(0, 10, 1, 2)")
except BaseException as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])
print("there" if spark.catalog.tableExists("t") else "not there")
