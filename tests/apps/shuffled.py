"""Writes for a shuffle, has no executor any more, and reads what was written with others."""

import sys
import threading

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("shuffled").getOrCreate()
sc = spark.sparkContext


def until(condition):
    for _ in range(2_400):
        if condition():
            return
        threading.Event().wait(0.05)
    sys.exit("not within two minutes")


def has_none():
    """Return whether no executor lives; the driver is in the list."""
    return sc._jsc.sc().statusStore().executorList(True).size() == 1


pairs = sc.parallelize(range(100), 2).map(lambda number: (number % 4, number)).groupByKey(2)
print("written:", pairs.count(), flush=True)
until(has_none)
print("read again:", sorted(pairs.mapValues(len).collect()), flush=True)
spark.stop()
