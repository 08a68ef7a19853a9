"""Needs three executors, then none, then three again, as often as it is asked to."""

import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

work, rounds = Path(sys.argv[1]), int(sys.argv[2])
spark = SparkSession.builder.appName("scaling").getOrCreate()


def until(condition):
    for _ in range(2_400):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within two minutes")


for number in range(rounds):
    until((work / f"begin-{number}").exists)
    over = work / f"over-{number}"
    spark.sparkContext.parallelize(range(3), 3).foreach(lambda _, over=over: until(over.exists))
    print("round over:", number, flush=True)
until((work / "go").exists)
spark.stop()
