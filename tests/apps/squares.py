"""A batch application that knows nothing of who watches it: a job with Python on its executors; it may fail."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("squares").getOrCreate()
total = spark.sparkContext.parallelize(range(8), 2).map(lambda number: number * number).sum()
if "fail" in sys.argv:
    raise ValueError(f"{total} is not enough")
spark.stop()
