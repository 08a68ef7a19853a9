"""Statements and streaming queries of all kinds, one after the other; the first argument is a folder."""

import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions

from spark_events.api import LineageDataset, LineageVertex, LineageVertexProvider, TableLineageEdge
from spark_events.lineage import add_lineage_edges, provide

folder = Path(sys.argv[1])
spark = SparkSession.builder.appName("shop").enableHiveSupport().getOrCreate()


def at(name: str) -> str:
    return str(folder / "data" / name)


spark.range(100).selectExpr("id", "id % 7 AS customer", "id * 1.5D AS amount").write.parquet(at("orders"))
spark.sql(
    f"CREATE TABLE sums USING parquet AS SELECT customer, sum(amount) AS total FROM parquet.`{at('orders')}` GROUP BY customer"
)
spark.sql("CREATE TABLE in_hive (customer BIGINT, total DOUBLE) STORED AS parquet")
spark.sql("INSERT INTO in_hive SELECT customer, total FROM sums")
spark.table("sums").write.parquet(at("to_load"))
spark.sql(f"LOAD DATA INPATH '{at('to_load')}' INTO TABLE in_hive")
spark.sql("CREATE TABLE hive_made STORED AS orc AS SELECT total FROM in_hive")
spark.table("sums").write.mode("append").saveAsTable("saved")
spark.table("sums").count()

# Looks for the columns of files of which there is another one each day.
(folder / "data" / "days").mkdir()
for day in ("2026-11-28", "2026-11-29"):
    (folder / "data" / "days" / f"{day}.csv").write_text("a,b\n1,2\n")
spark.read.csv(at("days"), header=True)

# What is written is not what made its views, nor one of two queries that are joined.
spark.sql(f"CREATE TEMPORARY VIEW viewed USING parquet OPTIONS (path '{at('orders')}')")
spark.table("viewed").write.parquet(at("of_view"))
spark.sql("SELECT id FROM viewed").createOrReplaceTempView("viewed_again")
spark.table("viewed_again").write.parquet(at("of_temporary"))
spark.sql("SELECT id FROM viewed").crossJoin(spark.sql("SELECT 1 AS one")).write.parquet(at("of_two"))
spark.sql("SELECT id FROM viewed WHERE id > 1").write.parquet(at("of_query"))

# A checkpoint cuts the plan.
cut = spark.table("sums").localCheckpoint()
cut.select((functions.col("total") + 1).alias("more")).write.csv(at("after_checkpoint"))
by_customer = functions.col("a.customer") == functions.col("b.customer")
cut.alias("a").join(cut.alias("b"), by_customer).select("b.total").write.csv(at("cut_twice"))

# Fails in a task, then in the driver, before any task.
for name, statement in {
    "in_task": "SELECT CAST(raise_error('too much') AS STRING) AS x FROM range(3)",
    "in_driver": "SELECT 1 AS x",
}.items():
    if name == "in_driver":
        (folder / "data" / name).mkdir()
    try:
        spark.sql(statement).write.parquet(at(name))
    except Exception as error:
        print(f"{name}: {type(error).__name__}", flush=True)


def slow() -> None:
    spark.sparkContext.setJobGroup("slow", "a slow write", interruptOnCancel=True)
    try:
        spark.range(4).selectExpr("java_method('java.lang.Thread', 'sleep', 60000L) AS x").write.parquet(
            at("slow")
        )
    except Exception as error:
        print(f"slow: {type(error).__name__}", flush=True)


writer = threading.Thread(target=slow)
writer.start()
tracker = spark.sparkContext.statusTracker()
while not any(tracker.getStageInfo(stage).numActiveTasks for stage in tracker.getActiveStageIds()):
    time.sleep(0.05)
spark.sparkContext.cancelJobGroup("slow")
writer.join()

# What the program says is in place of what the plan says, once.
said = TableLineageEdge(
    LineageVertex((LineageDataset("told", "by-hand"),)), LineageVertex((LineageDataset("heard", "by-hand"),))
)
add_lineage_edges(spark, said)
spark.table("sums").count()
spark.table("sums").write.parquet(at("told"))
spark.table("sums").write.parquet(at("not_told"))


class OfJson(LineageVertexProvider):
    def lineage_vertex(self, options: dict[str, str], is_sink: bool) -> LineageVertex:
        return LineageVertex((LineageDataset("mine", "spaceship"),))


provide("rate", OfJson())


def stream(name: str) -> DataFrame:
    schema = "id LONG, customer LONG, amount DOUBLE"
    return spark.readStream.schema(schema).parquet(at(name))


orders = stream("orders")
orders.withColumn("double", functions.col("amount") * 2).writeStream.format("parquet").option(
    "path", at("streamed")
).option("checkpointLocation", at("checkpoint")).trigger(availableNow=True).queryName(
    "doubled"
).start().awaitTermination()


add_lineage_edges(spark, said, replace=False)
orders.writeStream.format("noop").trigger(availableNow=True).queryName("told_too").start().awaitTermination()


def each_batch(batch: DataFrame, number: int) -> None:
    batch.groupBy("customer").agg(functions.max("amount").alias("most")).write.mode("append").parquet(
        at("most")
    )
    batch.write.mode("append").json(at("copy"))


for _ in range(2):  # the second run is a restart
    query = orders.writeStream.foreachBatch(each_batch).option("checkpointLocation", at("checkpoint2"))
    query.trigger(availableNow=True).queryName("batches").start().awaitTermination()
    spark.range(3).selectExpr("id", "id AS customer", "id * 1.5D AS amount").write.mode("append").parquet(
        at("orders")
    )

spark.readStream.format("rate").load().writeStream.queryName("into_table").option(
    "checkpointLocation", at("checkpoint3")
).toTable("ticks")
running = spark.streams.active[0]
while not running.recentProgress:
    time.sleep(0.05)
running.stop()

failing = orders.select(functions.expr("raise_error('no more')")).writeStream.format("noop")
query = failing.queryName("failing").start()
try:
    query.awaitTermination()
except Exception as error:
    print(f"failing: {type(error).__name__}", flush=True)
spark.stop()
