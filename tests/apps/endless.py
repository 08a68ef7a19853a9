"""A streaming query and batch jobs without end: python endless.py CHECKPOINT_FOLDER."""

import sys

from pyspark.sql import SparkSession

import spark_events

spark = SparkSession.builder.master("local[2]").appName("endless").getOrCreate()
spark_events.attach(spark)
source = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
writer = source.writeStream.queryName("rates").option("checkpointLocation", sys.argv[1])
writer.trigger(processingTime="100 milliseconds").format("noop").start()
print("running", flush=True)
while True:
    spark.range(10).count()
