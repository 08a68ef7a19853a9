"""Streaming queries that cannot start, each in another way; the program handles what they raise, and goes on."""

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_events

work, how = Path(sys.argv[1]), sys.argv[2]
builder = SparkSession.builder.appName("failing")
conf = {
    "spark.events.reporter.file.factory.class": "file_log",
    "spark.events.reporter.file.path": f"{work}/events",
    "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": f"{work}/warehouse",
}
for key, value in conf.items():
    builder = builder.config(key, value)
spark = (builder.remote("local[2]") if how == "connect" else builder.master("local[2]")).getOrCreate()
attachment = spark_events.attach(spark, strict=True)
rows = spark.readStream.format("rate").load()
counts = rows.groupBy("value").count()
(work / "a_file").touch()


def start_named():
    counts.writeStream.format("parquet").queryName("no_watermark").start(f"{work}/out")


def start_with_option():
    counts.writeStream.format("noop").option("queryname", "by_option").outputMode("append").start()


def start_by_argument():
    counts.writeStream.start(format="noop", queryName="by_argument", outputMode="append")


def start_unnamed():
    counts.writeStream.format("noop").outputMode("append").start()


def start_into_table():
    location = f"{work}/a_file/checkpoints"
    rows.writeStream.queryName("no_folder").option("checkpointLocation", location).toTable("t")


def start_again():
    rows.writeStream.format("noop").queryName("running").start()


running = rows.writeStream.format("noop").queryName("running").start()
ways = (start_named, start_with_option, start_by_argument, start_unnamed, start_into_table, start_again)
for way in ways:
    try:
        way()
    except Exception as error:
        print(way.__name__, type(error).__name__, isinstance(error, PySparkException), flush=True)
running.stop()
if how == "connect":
    spark.stop()
    attachment.wait_closed()
else:
    attachment.close()
    from pyspark.sql.streaming import DataStreamWriter

    assert not hasattr(DataStreamWriter.start, "__wrapped__")
    assert not hasattr(DataStreamWriter.toTable, "__wrapped__")
    spark.stop()
