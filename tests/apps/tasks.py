"""Reports from inside tasks, in every way in which PySpark runs a user's Python; prints what a plain loop counts."""

import logging
import os
import signal
import sys
import time
from pathlib import Path

from opentelemetry import trace
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit, pandas_udf, udf, udtf
from pyspark.sql.streaming.state import GroupStateTimeout

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


@udf("long")
def plain_udf(number):
    return number + 1 if number != 500 else None


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


@udtf(returnType="number: long")
class InTableFunction:
    def eval(self, number):
        task.metrics.counter("rows", way="udtf").inc()
        yield (number,)


def with_state(key, frames, state):
    counted = sum(len(frame) for frame in frames)
    task.metrics.counter("rows", way="applyInPandasWithState").inc(counted)
    return iter([])


def in_foreach(row):
    task.metrics.counter("rows", way="foreach").inc()


def failing_once(rows):
    """The first attempt of one partition counts, and fails."""
    for row in rows:
        task.metrics.counter("retried", shop="a").inc()
        if row == 999 and TaskContext.get().attemptNumber() == 0:
            secret_token, looked_at = "hush", row
            task.event("AboutToFail", severity="ERROR", row=looked_at, length=len(secret_token))
            with task.span("fails"):
                raise ValueError("once")
        yield row


def cut_short(rows):
    for row in rows:
        task.metrics.counter("cut_short").inc()
        yield row, "x" * 100


def cut_short_frames(frames):
    for frame in frames:
        task.metrics.counter("cut_short").inc()
        yield frame


def killed_once(rows):
    """A worker that is killed sends nothing, and its task is tried again."""
    for row in rows:
        task.metrics.counter("killed").inc()
        if row == 999 and TaskContext.get().attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield row


def of_spans(rows):
    part = TaskContext.get().partitionId()
    with task.span("outer", part=part) as outer:
        with task.span("inner"):
            time.sleep(0.01)
        outer.set_attribute("rows", sum(1 for _ in rows))
        outer.set_attribute("traceparent", task.traceparent())
        # A span of OpenTelemetry's that begins here is below "outer".
        around = trace.get_current_span().get_span_context()
        outer.set_attribute("around", f"{around.trace_id:032x} {around.span_id:016x}")
    task.event("PartDone", "a part is done", severity="WARN", part=part, stage=task.traceparent())
    log = logging.Logger("shop")
    log.addHandler(task.EventHandler())
    log.info("left out")
    log.warning("rates of %s are old", "ecb")
    return iter([])


def to_shop(frame, batch):
    """Runs in the driver: its first batch succeeds, its second fails."""
    rows = frame.count()
    task.metrics.counter("batches", shop="a").inc()
    task.metrics.counter("batches", shop="a").inc()
    task.metrics.gauge("batch_rows").set(rows)
    task.metrics.histogram("rows_of_batch").update(rows)
    with task.span("write", batch=batch) as span:
        span.set_attribute("traceparent", task.traceparent())
        around = trace.get_current_span().get_span_context()
        span.set_attribute("around", f"{around.trace_id:032x} {around.span_id:016x}")
        task.event("Writing", "a batch is written", batch=batch)
        if batch == 1:
            raise ValueError("the shop is closed")


numbers = sc.parallelize(range(ROWS), PARTS)
numbers.map(in_rdd).count()
rows = spark.range(0, ROWS, 1, PARTS)
rows.select(in_udf("id"), in_pandas_udf("id"), plain_udf("id")).write.format("noop").mode("overwrite").save()
rows.mapInPandas(in_map, "id long").write.format("noop").mode("overwrite").save()
rows.groupBy((rows.id % 3).alias("k")).applyInPandas(in_group, "id long").write.format("noop").mode(
    "overwrite"
).save()
rows.createOrReplaceTempView("rows")
spark.udtf.register("in_table_function", InTableFunction)
functions = spark.sql("SELECT t.number FROM rows, LATERAL in_table_function(rows.id) t")
functions.write.format("noop").mode("overwrite").save()
# A LIMIT ends its tasks early: they have not failed.
many = sc.parallelize(range(300_000), 1).mapPartitions(cut_short)
many.toDF("id long, text string").limit(3).collect()
spark.range(0, 20_000_000, 1, 1).mapInPandas(cut_short_frames, "id long").limit(3).collect()
numbers.mapPartitions(failing_once).count()
numbers.mapPartitions(killed_once).count()
if spark.version >= "4":
    import new_functions

    new_functions.read_python_data_source(spark, ROWS, PARTS)
    new_functions.run_stateful_processor(spark, folder)
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
task.metrics.counter("batches", shop="a").inc()  # outside a batch it is nobody's
(folder / "in" / "more.txt").write_text("4\n5\n")
files = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
try:
    writer = files.writeStream.foreachBatch(to_shop).queryName("batches").trigger(availableNow=True)
    writer.start().awaitTermination()
except Exception as error:
    assert "the shop is closed" in str(error)
(folder / "in" / "more.txt").unlink()

# Spark 3.5 cannot write a group's state with pandas 2.
lines = spark.readStream.text(str(folder / "in")).select(lit(1).alias("k"), col("value"))
if spark.version >= "4":
    lines = lines.groupBy("k").applyInPandasWithState(
        with_state, "k int", "n int", "append", GroupStateTimeout.NoTimeout
    )
    writer = lines.writeStream.format("noop")
else:
    writer = lines.writeStream.foreach(in_foreach)
writer.queryName("stateful").outputMode("append").trigger(availableNow=True).start().awaitTermination()
(folder / "ready").touch()
while not (folder / "seen").exists():
    time.sleep(0.05)
spark.stop()
attachment.wait_closed()
