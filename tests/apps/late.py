"""Attaches while a query, a job and its stage are running."""

import sys
import time

from pyspark import InheritableThread
from pyspark.sql import SparkSession

import spark_events

spark = SparkSession.builder.master("local[2]").appName("late").getOrCreate()
rows = spark.readStream.format("rate").load().writeStream.format("noop").queryName("early")
query = rows.option("checkpointLocation", sys.argv[1]).trigger(processingTime="300 milliseconds").start()
while (query.lastProgress or {}).get("batchId", -1) < 1:
    time.sleep(0.05)
thread = InheritableThread(
    target=lambda: spark.sparkContext.parallelize([1], 1).map(lambda _: time.sleep(4)).count()
)
thread.start()
while not spark.sparkContext.statusTracker().getActiveJobsIds():
    time.sleep(0.05)
spark_events.attach(spark)
thread.join()
seen = query.lastProgress["batchId"]
while query.lastProgress["batchId"] < seen + 2:
    time.sleep(0.05)
query.stop()
spark.stop()
