"""Functions of foreachBatch that write in all ways; the argument is a folder."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas
from pyspark.sql import DataFrame, SparkSession, functions

from spark_events import ctas

folder = sys.argv[1]
spark = SparkSession.builder.appName("batches").getOrCreate()
at = f"{folder}/data/".__add__
WITH_DELTA_AND_ICEBERG = spark.conf.get("spark.sql.catalog.ice", "") != ""
MERGE = """
    MERGE INTO {table} t USING (SELECT id, amount + 1 AS more FROM updates) u ON t.id = u.id
    WHEN MATCHED THEN UPDATE SET amount = u.more
    WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (u.id, u.more)"""


def add_orders() -> None:
    orders = spark.range(6).selectExpr("id", "id % 2 AS kind", "id * 1.5D AS amount")
    orders.write.mode("append").parquet(at("orders"))


add_orders()
spark.sql("CREATE TABLE kinds USING parquet AS SELECT id AS kind, concat('k', id) AS name FROM range(2)")


def two_writes(batch: DataFrame, number: int) -> None:
    most = batch.groupBy("kind").agg(functions.max("amount").alias("most"))
    most.write.mode("append").parquet(at("most"))
    named = batch.join(spark.table("kinds"), "kind").select("name", "amount")
    named.write.mode("append").saveAsTable("named")


def with_itself(batch: DataFrame, number: int) -> None:
    other = batch.select("id", functions.col("amount").alias("again"))
    batch.alias("a").join(other.alias("b"), "id").select("id", "again").write.mode("append").json(at("twice"))


def cached(batch: DataFrame, number: int) -> None:
    batch.persist()
    if not batch.isEmpty():
        batch.selectExpr("amount * 2 AS double").write.mode("append").parquet(at("double"))
        batch.select("id").distinct().write.mode("append").parquet(at("ids"))
    batch.unpersist()


def checkpointed(batch: DataFrame, number: int) -> None:
    cut = batch.where("kind = 1").selectExpr("id", "amount + 1 AS more").localCheckpoint()
    cut.select("more").write.mode("append").parquet(at("cut"))


def by_rdd(batch: DataFrame, number: int) -> None:
    batch.rdd.map(lambda row: (row.id, row.amount + 1)).toDF(["a", "b"]).write.mode("append").parquet(
        at("pairs")
    )


def by_pandas(batch: DataFrame, number: int) -> None:
    frame = batch.toPandas()
    frame["amount"] = frame["kind"] + 1.0
    batch.sparkSession.createDataFrame(frame).write.mode("append").parquet(at("of_pandas"))


def by_itself(batch: DataFrame, number: int) -> None:
    pandas.DataFrame(batch.collect()).to_csv(f"{folder}/by_itself.csv")


def in_threads(batch: DataFrame, number: int) -> None:
    """Whose executions do not know that they belong to a batch."""
    with ThreadPoolExecutor(2) as threads:
        write = batch.select("id").write.mode("append").parquet
        written = [threads.submit(write, at(f"of_thread{number}")) for number in range(2)]
    for each in written:
        each.result()


def made_anew(batch: DataFrame, number: int) -> None:
    """Into a folder with the transaction's id, each time."""
    batch.createOrReplaceGlobalTempView("of_batch")
    ctas.sql(
        batch.sparkSession,
        "CREATE OR REPLACE TABLE anew USING parquet AS SELECT id FROM global_temp.of_batch",
    )


def later(batch: DataFrame, number: int) -> None:
    if number > 0:
        batch.write.mode("append").parquet(at("later"))


def merged(batch: DataFrame, number: int) -> None:
    batch.createOrReplaceTempView("updates")
    for table in ("merged", "ice.db.merged"):
        batch.sparkSession.sql(MERGE.format(table=table))


def replaced(batch: DataFrame, number: int) -> None:
    batch.writeTo("ice.db.replaced").createOrReplace()
    batch.write.format("delta").mode("overwrite").saveAsTable("replaced")


for table, of_format in (("merged", "delta"), ("ice.db.merged", "iceberg")) if WITH_DELTA_AND_ICEBERG else ():
    spark.sql(f"CREATE TABLE {table} (id BIGINT, amount DOUBLE) USING {of_format}")
of_lakehouses = (merged, replaced) if WITH_DELTA_AND_ICEBERG else ()
for function in (
    *(
        two_writes,
        with_itself,
        cached,
        checkpointed,
        by_rdd,
        by_pandas,
        by_itself,
        in_threads,
        made_anew,
        later,
    ),
    *of_lakehouses,
):
    if function is by_pandas and spark.version < "4":  # PySpark 3.5 fails in its own code with this pandas
        continue
    orders = spark.readStream.schema("id LONG, kind LONG, amount DOUBLE").parquet(at("orders"))
    name = function.__name__
    writer = orders.where("amount > 1").writeStream.foreachBatch(function).queryName(name)
    query = writer.option("checkpointLocation", at(f"checkpoints/{name}")).start()
    query.processAllAvailable()
    add_orders()
    query.processAllAvailable()
    query.stop()


def often(batch: DataFrame, number: int) -> None:
    """Each batch commits another version; one that is late writes something else, too."""
    batch.select("value").writeTo("ice.db.often").append()
    if number == 110:
        batch.write.mode("append").parquet(at("seldom"))
    if number > 110:
        enough.set()


if WITH_DELTA_AND_ICEBERG:
    enough = threading.Event()
    spark.sql("CREATE TABLE ice.db.often (value BIGINT) USING iceberg")
    numbers = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=1, numPartitions=1).load()
    query = numbers.writeStream.foreachBatch(often).queryName("often").start()
    enough.wait()
    query.stop()
spark.stop()
