"""Actions and queries that fail, each in a way of its own; a comment at the end of a line names the place."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, udf

work = Path(sys.argv[1])
spark = SparkSession.builder.master("local[2]").appName("failing").getOrCreate()


def until(condition):
    for _ in range(1_200):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within a minute")


def attempt(name, action):
    try:
        action()
    except Exception as error:
        print(name, type(error).__name__, flush=True)


def save(frame):
    frame.write.format("noop").mode("overwrite").save()  # save


def divide():
    save(spark.range(4).select(1 / (col("id") - 1)))  # expression


def cast():
    spark.sql("SELECT cast(concat('a', id) AS int) FROM range(4)").collect()  # collect


@udf("string")
def held(number):
    (work / "holding").touch()
    until((work / "other-failed").exists)
    return f"late {number}"


@udf("long")
def killed(number):
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def save_held():
    spark.range(0, 1, 1, 1).select(held("id").alias("said")).selectExpr("raise_error(said)").write.format(
        "noop"
    ).mode("overwrite").save()  # held


def while_another_waits():
    """Two threads wait for the JVM when the second of these jobs begins."""
    other = threading.Thread(target=lambda: attempt("held", save_held))
    other.start()
    until((work / "holding").exists)
    attempt("beside", lambda: save(spark.range(1).select(expr("raise_error('beside')"))))
    (work / "other-failed").touch()
    other.join()


def run(name, aggregated, sink=None, batches=2):
    """Run a query for some micro-batches, or until it fails."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = aggregated(rows).writeStream.queryName(name).outputMode("update")
    writer = writer.foreachBatch(sink) if sink else writer.format("noop")
    query = writer.option("checkpointLocation", str(work / name)).start()
    while query.isActive and (query.lastProgress or {}).get("batchId", -1) < batches - 1:
        query.awaitTermination(0.05)
    query.stop()
    query.awaitTermination()


def unknown_customer(frame, batch):
    {}["customer"]  # foreachBatch


def slow_write(frame, batch):
    frame.count()
    time.sleep(1)  # what the test is about is time that is spent here


def counted_by(key):
    return lambda rows: rows.groupBy(expr(key).alias("key")).count()


attempt("raised", lambda: save(spark.range(4).select(expr("raise_error('bad row')"))))
attempt("divide", divide)
attempt("cast", cast)
while_another_waits()
attempt("killed", lambda: save(spark.range(0, 1, 1, 1).select(killed("id"))))
spark.conf.set("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
attempt("watched", lambda: save(spark.range(0, 1, 1, 1).select(killed("id"))))
attempt("customers", lambda: run("customers", lambda rows: rows, unknown_customer))
attempt("changed", lambda: run("changed", counted_by("value % 3")))
attempt("changed", lambda: run("changed", counted_by("cast(value % 3 AS string)"), batches=4))
attempt("changed", lambda: run("changed", lambda rows: rows.dropDuplicates(["value"]), batches=4))
attempt("slow", lambda: run("slow", lambda rows: rows, slow_write, batches=3))
spark.stop()
