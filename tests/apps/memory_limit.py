"""Uses more memory than the cgroup of its executor has: first in a Python worker, then in the executor's JVM."""

import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

work = Path(sys.argv[1])
spark = SparkSession.builder.appName("limited").getOrCreate()
sc = spark.sparkContext


def until(condition):
    for _ in range(2_400):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within two minutes")


def fill(_):
    """Write to each page of a GiB."""
    pages = []
    while len(pages) < 1 << 10:
        pages.append(bytearray(b"x") * (1 << 20))


def attempt(action):
    try:
        action()
    except Exception as error:
        print("failed:", type(error).__name__, flush=True)


sc.parallelize([1], 1).foreach(lambda _: until((work / "measured").exists))
attempt(lambda: sc.parallelize([1], 1).foreach(fill))
attempt(
    lambda: spark.range(0, 1, 1, 1).selectExpr("length(repeat(cast(id AS string), 600000000)) AS n").collect()
)
print("both done", flush=True)
until((work / "go").exists)
spark.stop()
