"""A batch job, a query that fails and is restarted, a failing, a cancelled job, and a bounded query."""

import sys
import threading
import time
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from tests.support.spark import stop_between_batches

work = Path(sys.argv[1])
spark = SparkSession.builder.master("local[2]").appName("lifecycle").getOrCreate()
if "--attach" in sys.argv:
    import spark_events

    attachment = spark_events.attach(spark, strict=True)
    assert spark_events.attach(spark) is attachment
    assert spark_events.attach(spark.sparkContext) is attachment
sc = spark.sparkContext

spark.range(0, 100, 1, 4).write.format("noop").mode("overwrite").save()


def start(poisoned):
    def sink(frame, batch):
        frame.collect()
        if poisoned and batch == 2:
            raise ValueError("order 4711 has no customer")

    rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    timed = rows.withWatermark("timestamp", "1 second").selectExpr("value % 3 AS customer", "timestamp")
    counts = timed.groupBy("customer").count()
    writer = counts.writeStream.queryName("orders").outputMode("update").foreachBatch(sink)
    return (
        writer.option("checkpointLocation", str(work / "orders"))
        .trigger(processingTime="500 milliseconds")
        .start()
    )


def run_past(query, batch):
    while query.isActive and (query.lastProgress or {}).get("batchId", -1) < batch:
        query.awaitTermination(0.1)


query = start(poisoned=True)
try:
    query.awaitTermination()
except PySparkException as error:
    assert "4711" in str(error)
query = start(poisoned=False)
run_past(query, 4)
stop_between_batches(query)

try:
    spark.range(2).select(expr("raise_error('bad row')")).write.format("noop").mode("overwrite").save()
except (PySparkException, Py4JJavaError) as error:  # the latter from Spark 3.5
    print("failed:", type(error).__name__)


def slow():
    sc.setJobGroup("slow", "a job that is cancelled", interruptOnCancel=True)
    try:
        sc.parallelize(range(6), 6).map(lambda _: time.sleep(60)).count()
    except Exception as error:
        print("cancelled:", type(error).__name__)


thread = InheritableThread(target=slow)
thread.start()
tracker = sc.statusTracker()
while not any(tracker.getStageInfo(stage).numActiveTasks == 2 for stage in tracker.getActiveStageIds()):
    threading.Event().wait(0.05)
sc.cancelJobGroup("slow")
thread.join()

(work / "input").mkdir()
spark.range(5).write.mode("append").parquet(str(work / "input"))
bounded = spark.readStream.schema("id LONG").parquet(str(work / "input")).writeStream.format("noop")
bounded = bounded.queryName("bounded").option("checkpointLocation", str(work / "bounded"))
bounded.trigger(availableNow=True).start().awaitTermination()

while "--hold" in sys.argv and not (work / "go").exists():
    time.sleep(0.05)
spark.stop()
