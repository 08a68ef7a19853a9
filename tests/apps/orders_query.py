"""A streaming query over the files of a folder, until a file says to go."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import spark_events

orders, checkpoints, go = (Path(argument) for argument in sys.argv[1:4])
spark = SparkSession.builder.master("local[2]").appName("shop").getOrCreate()
spark_events.attach(spark, strict=True)
writer = spark.readStream.schema("id LONG").json(str(orders)).writeStream.format("noop").queryName("orders")
query = writer.option("checkpointLocation", str(checkpoints)).start()
while not go.exists():
    time.sleep(0.05)
query.stop()
spark.stop()
