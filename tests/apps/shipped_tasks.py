"""Counts in tasks on executors whose Python has neither spark-events nor anything else but PySpark."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import spark_events
from spark_events import task

os.environ["PYSPARK_PYTHON"] = sys.argv[2]
spark = SparkSession.builder.appName("shipped").getOrCreate()
attachment = spark_events.attach(spark, strict=True)
counter = task.metrics.counter("rows")


def where(number):
    import spark_events.task as there

    counter.inc()
    with task.span("row"):
        installed = []
        for name in ("opentelemetry", "orjson"):
            try:
                __import__(name)
            except ImportError:
                continue
            installed.append(name)
    return there.__file__, installed


places = spark.sparkContext.parallelize(range(10), 2).map(where).collect()
Path(sys.argv[1]).write_text("\n".join(f"{file} {installed}" for file, installed in places))
spark.stop()
attachment.wait_closed()
