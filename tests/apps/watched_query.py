"""A streaming query that commits its first batch once a file is there, and is stopped once another one is."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

work, go, stop = map(Path, sys.argv[1:])
spark = SparkSession.builder.master("local[2]").appName("watched").getOrCreate()


def sink(frame, batch):
    while not go.exists():
        time.sleep(0.05)


rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
writer = rows.writeStream.foreachBatch(sink).queryName("ticks").trigger(processingTime="500 milliseconds")
query = writer.option("checkpointLocation", str(work / "ticks")).start()
while not stop.exists():
    time.sleep(0.05)
query.stop()
spark.stop()
