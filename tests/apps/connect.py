"""Streaming queries over Spark Connect: one before attach, one that is stopped, one that fails."""

import sys
import time

from pyspark.sql import SparkSession

import spark_events

folder, how = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]").appName("connected")
conf = {
    "spark.events.reporter.file.factory.class": "file_log",
    "spark.events.reporter.file.path": f"{folder}/events",
    "spark.events.checkpoint.sla": "1h",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": f"{folder}/logs",
    "spark.ui.enabled": "false",
}
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()


def start(name, expression="value"):
    rows = spark.readStream.format("rate").load().selectExpr(expression)
    return rows.writeStream.format("noop").queryName(name).trigger(processingTime="500 milliseconds").start()


early = start("early")
attachment = spark_events.attach(spark, strict=True)
assert spark_events.attach(spark) is attachment
stopped, bad = start("stopped"), start("bad", "assert_true(value < 1)")
while bad.isActive or (stopped.lastProgress or {}).get("batchId", -1) < 3:
    time.sleep(0.1)
stopped.stop()
print("end of main")
if how == "stop":
    spark.stop()
    attachment.wait_closed()
    assert not attachment.active
