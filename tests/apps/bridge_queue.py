"""Fills a small driver bridge without draining it. Prints what is left."""

import json

from pyspark.sql import SparkSession

from spark_events.sources.driver.bridge import DriverBridge
from tests.support.spark import stop_between_batches

spark = SparkSession.builder.master("local[1]").appName("bridge").getOrCreate()
bridge = DriverBridge(spark.sparkContext, 65_536, 1_000)
bridge.subscribe()
query = spark.readStream.format("rate").load().writeStream.format("noop").start()
for _ in range(40):
    spark.range(1).count()
stop_between_batches(query)
bridge.await_bus(10_000)
held = []
while records := bridge.drain(10, 0):
    held += records
starts = [record for _, record in held if record["Event"] == "SparkListenerJobStart"]
print(
    json.dumps(
        {
            "names": [record["Event"].split("$")[-1] for _, record in held],
            "jobs": [start["Job ID"] for start in starts],
            # The query's thread may take a number and start its job after the next of the main thread.
            "own_jobs": [
                start["Job ID"] for start in starts if "sql.streaming.queryId" not in start["Properties"]
            ],
            "times": [received_ms for received_ms, _ in held],
            "dropped": bridge.dropped,
            "bytes": sum(len(json.dumps(record)) for _, record in held),
        }
    )
)
spark.stop()
