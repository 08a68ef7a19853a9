"""Runs many small jobs, and prints the size of the Python process in memory after each tenth of them."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

jobs = int(sys.argv[1])
spark = SparkSession.builder.appName("many-jobs").getOrCreate()
# One task without Python workers: what is measured is the driver.
rdd = spark.sparkContext._jsc.parallelize([1], 1)
for number in range(1, jobs + 1):
    rdd.count()
    if number % (jobs // 10) == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(number, pages * 4 // 1024, flush=True)
spark.stop()
