"""Four stages on a cluster, one of whose hosts is four times as slow, if one is named.

Prints the ms that this has cost: what the slow tasks took more, on as many cores as there are executors.
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

slow_host, executors = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.appName("slow-host").getOrCreate()
sc = spark.sparkContext
slow_tasks = sc.accumulator(0)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def host():
    """Return the host of this executor: its JVM is the parent of the daemon that has forked this worker."""
    command = Path(f"/proc/{parent(os.getppid())}/cmdline").read_text().split("\0")
    return command[command.index("--hostname") + 1]


def work(rows):
    is_slow = host() == slow_host
    if is_slow:
        slow_tasks.add(1)
    until = time.monotonic() + (1.2 if is_slow else 0.3)
    while time.monotonic() < until:
        time.sleep(0.01)
    return rows


# All executors are there, and their Python workers.
while sc._jsc.sc().statusTracker().getExecutorInfos().__len__() <= executors:
    time.sleep(0.1)
sc.parallelize(range(executors * 4), executors * 4).map(lambda row: time.sleep(0.2)).count()
for _ in range(4):
    sc.parallelize(range(36), 36).mapPartitions(work).count()
print(f"injected {slow_tasks.value * 900 // executors}", flush=True)
spark.stop()
