"""A streaming query until a file says to go, written to an event log."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

go = Path(sys.argv[1])
spark = SparkSession.builder.master("local[2]").appName("followed").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
query = rows.writeStream.format("noop").queryName("ticks").trigger(processingTime="300 milliseconds").start()
print("id:", spark.sparkContext.applicationId, flush=True)
while not go.exists():
    time.sleep(0.05)
if "--die" in sys.argv:
    import os
    import signal

    os.killpg(0, signal.SIGKILL)
query.stop()
spark.stop()
