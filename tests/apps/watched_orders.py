"""A streaming query that knows nothing of who watches it: until a file says to go, from a checkpoint."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

checkpoint, go = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.appName("watched-orders").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 20).option("numPartitions", 2).load()
query = (
    rows.writeStream.format("noop")
    .queryName("orders")
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime="500 milliseconds")
    .start()
)
while not go.exists():
    if query.exception() is not None:
        raise query.exception()
    time.sleep(0.1)
query.stop()
spark.stop()
