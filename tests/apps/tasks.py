"""Reports from inside tasks, in every way in which PySpark runs a user's Python; prints what a plain loop counts."""

import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf, udf

import spark_events
from spark_events import task

folder = Path(sys.argv[1])
ROWS, PARTS = 1_000, 4
spark = SparkSession.builder.appName("tasks").getOrCreate()
attachment = spark_events.attach(spark, strict=True)
sc = spark.sparkContext
kept = task.metrics.counter("kept", way="rdd")


def in_rdd(number):
    kept.inc()
    task.metrics.gauge("number").set(number)
    if number % 100 == 0:
        task.metrics.histogram("hundreds").update(number)
    return number


@udf("long")
def in_udf(number):
    task.metrics.counter("rows", way="udf").inc()
    return number


@pandas_udf("long")
def in_pandas_udf(numbers):
    task.metrics.counter("rows", way="pandas_udf").inc(len(numbers))
    return numbers


def in_map(frames):
    for frame in frames:
        task.metrics.counter("rows", way="mapInPandas").inc(len(frame))
        yield frame


def in_group(frame):
    task.metrics.counter("rows", way="applyInPandas").inc(len(frame))
    return frame


def failing_once(rows):
    """The first attempt of one partition counts, and fails."""
    for row in rows:
        task.metrics.counter("retried").inc()
        if row == 999 and TaskContext.get().attemptNumber() == 0:
            raise ValueError("once")
        yield row


def of_spans(rows):
    with task.span("outer", part=TaskContext.get().partitionId()) as outer:
        with task.span("inner"):
            time.sleep(0.01)
        outer.set_attribute("rows", sum(1 for _ in rows))
    task.event("PartDone", "a part is done", severity="WARN", part=TaskContext.get().partitionId())
    return iter([])


numbers = sc.parallelize(range(ROWS), PARTS)
numbers.map(in_rdd).count()
rows = spark.range(0, ROWS, 1, PARTS)
rows.select(in_udf("id"), in_pandas_udf("id")).write.format("noop").mode("overwrite").save()
rows.mapInPandas(in_map, "id long").write.format("noop").mode("overwrite").save()
rows.groupBy((rows.id % 3).alias("k")).applyInPandas(in_group, "id long").write.format("noop").mode(
    "overwrite"
).save()
numbers.mapPartitions(failing_once).count()
numbers.foreachPartition(of_spans)
# A name that is another each time.
numbers.foreach(lambda number: task.metrics.counter(f"name-{number}").inc())

(folder / "in").mkdir()
(folder / "in" / "rows.txt").write_text("1\n2\n3\n")
stream = spark.readStream.text(str(folder / "in")).select(
    in_udf(udf(lambda text: int(text), "long")("value"))
)
query = stream.writeStream.format("noop").queryName("orders").trigger(availableNow=True).start()
query.awaitTermination()
(folder / "ready").touch()
while not (folder / "seen").exists():
    time.sleep(0.05)
spark.stop()
attachment.wait_closed()
