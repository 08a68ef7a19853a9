"""Delta, Iceberg, Kafka and PostgreSQL, read and written in all ways; arguments: folder, Kafka's, PostgreSQL's URL."""

import itertools
import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession, functions

folder, servers, url = sys.argv[1:]
spark = SparkSession.builder.appName("connectors").getOrCreate()
at = f"{folder}/data".__add__

spark.range(10).selectExpr("id", "id * 2 AS v", "'x' AS k").write.parquet(at("/source"))
spark.read.parquet(at("/source")).createOrReplaceTempView("source")

for table, of_format in (("delta_table", "delta"), ("ice.db.iceberg_table", "iceberg")):
    spark.sql(f"CREATE TABLE {table} USING {of_format} AS SELECT id, v, k FROM source")
    spark.sql(f"INSERT INTO {table} SELECT id, v + 1, k FROM source")
    spark.sql(f"INSERT OVERWRITE {table} SELECT id, v, k FROM source WHERE v > 2")
    spark.sql(f"UPDATE {table} SET v = id + 1 WHERE k = 'x'")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    spark.sql(f"DELETE FROM {table} WHERE id = 333")  # which none has: nothing is committed
    spark.sql(
        f"MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED AND s.k = 'y' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.v = s.v WHEN NOT MATCHED THEN INSERT (id, v, k) VALUES (s.id, s.v, upper(s.k))"
    )
    spark.sql(f"CREATE OR REPLACE TABLE {table} USING {of_format} AS SELECT id, v FROM source")
    spark.table(table).write.parquet(at(f"/from_{of_format}"))
spark.table("delta_table").write.format("delta").save(at("/delta_by_path"))
spark.table("source").writeTo("ice.db.made").create()
spark.sql("ALTER TABLE ice.db.made CREATE BRANCH tried")
spark.sql("INSERT INTO ice.db.made.branch_tried SELECT id, v, k FROM source WHERE id > 5")
spark.table("ice.db.made.branch_tried").write.parquet(at("/from_branch"))
snapshots = {
    table: spark.sql(
        f"SELECT snapshot_id, summary FROM ice.db.{table}.snapshots ORDER BY committed_at"
    ).collect()
    for table in ("iceberg_table", "made")
}
Path(at("/snapshots.json")).write_text(
    json.dumps({table: [[row[0], row[1]] for row in rows] for table, rows in snapshots.items()})
)

# While a statement writes to a table, another one does.
numbers = itertools.count()


def held_up(value: int, path: str) -> int:
    Path(f"{path}_begun").touch()
    while not Path(path).exists():
        time.sleep(0.01)
    return value


spark.udf.register("held_up", held_up, "long")


def meanwhile(slow, other) -> None:
    """Run a statement, given the path of the file that its rows wait for, and another one while it waits."""
    go_on = Path(at(f"/go_on_{next(numbers)}"))
    thread = threading.Thread(target=slow, args=[str(go_on)])
    thread.start()
    while thread.is_alive() and not Path(f"{go_on}_begun").exists():
        time.sleep(0.01)
    assert thread.is_alive(), "it has not waited"
    other()
    go_on.touch()
    thread.join()


def waiting(path: str, condition: str = "true"):
    return spark.range(0, 3, 1, 1).selectExpr(f"held_up(id, '{path}') AS id").where(condition)


# What waits is one task, and leaves a core to others.
spark.conf.set("spark.sql.files.minPartitionNum", "1")
spark.range(3).write.format("delta").saveAsTable("contended")
meanwhile(
    lambda path: waiting(path).write.insertInto("contended"),
    lambda: spark.range(4).write.insertInto("contended"),
)

# The statement that waits changes nothing, and commits nothing; the other one does.
spark.range(3).write.format("delta").saveAsTable("unchanged")
meanwhile(
    lambda path: waiting(path, "id < 0").write.insertInto("unchanged"),
    lambda: spark.range(4).write.insertInto("unchanged"),
)
meanwhile(
    lambda path: spark.sql(f"DELETE FROM unchanged WHERE held_up(id, '{path}') < 0"),
    lambda: spark.sql("DELETE FROM unchanged WHERE id = 1"),
)
meanwhile(
    lambda path: spark.sql(f"UPDATE unchanged SET id = 7 WHERE held_up(id, '{path}') < 0"),
    lambda: spark.sql("UPDATE unchanged SET id = 9 WHERE id = 2"),
)
meanwhile(
    lambda path: spark.sql(
        f"MERGE INTO unchanged t USING (SELECT held_up(id, '{path}') + 100 AS id FROM range(0, 3, 1, 1)) s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE"
    ),
    lambda: spark.sql(
        "MERGE INTO unchanged t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ),
)
spark.sql("CREATE TABLE ice.db.unchanged (id BIGINT) USING iceberg")
for other in ("INSERT INTO ice.db.unchanged SELECT 1L", "DELETE FROM ice.db.unchanged"):
    meanwhile(
        lambda path: waiting(path, "id < 0").writeTo("ice.db.unchanged").overwritePartitions(),
        lambda other=other: spark.sql(other),
    )

# Iceberg marks rows as deleted in files of their own.
spark.sql(
    "CREATE TABLE ice.db.marked USING iceberg TBLPROPERTIES "
    "('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read') AS SELECT id, v FROM source"
)
spark.sql("DELETE FROM ice.db.marked WHERE id = 3")
spark.sql("UPDATE ice.db.marked SET v = -1 WHERE id = 4")

# Delta may keep what has changed, and mark rows as deleted.
spark.sql(
    "CREATE TABLE tracked USING delta TBLPROPERTIES "
    "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true') AS SELECT id, v FROM source"
)
spark.sql("DELETE FROM tracked WHERE id = 3")
spark.sql("UPDATE tracked SET v = -1 WHERE id = 4")
spark.sql(
    "MERGE INTO tracked t USING source s ON t.id = s.id WHEN MATCHED AND s.id > 7 THEN DELETE "
    "WHEN MATCHED AND s.id = 5 THEN UPDATE SET t.v = 0 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
)
spark.sql("INSERT OVERWRITE tracked SELECT id, v FROM source")
spark.sql("CREATE TABLE hollow USING delta AS SELECT id FROM source WHERE id < 0")

# What is measured of rows that take the place of all others, and of those that a condition finds.
measured = spark.table("source").observe("measured", functions.count(functions.lit(1)).alias("rows"))
for table, of_format in (("measured", "delta"), ("ice.db.measured", "iceberg")):
    spark.sql(f"CREATE TABLE {table} USING {of_format} AS SELECT * FROM source")
    for condition in (functions.lit(True), functions.col("id") >= 0):
        measured.writeTo(table).overwrite(condition)

# Kafka, in batches and as a stream; the same topic by list, by pattern and as a sink.
lines = spark.table("source").select(
    functions.col("id").cast("string").alias("key"), functions.col("k").alias("value")
)
lines.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "lines").save()
lines.withColumn("topic", functions.lit("by_column")).write.format("kafka").option(
    "kafka.bootstrap.servers", servers
).save()
kafka = {"kafka.bootstrap.servers": servers, "startingOffsets": "earliest"}
spark.read.format("kafka").options(**kafka).option("subscribe", "lines,by_column").load().select(
    "value"
).write.parquet(at("/from_kafka"))

spark.read.format("kafka").options(**kafka).option("subscribe", "lines,by_column").option(
    "endingOffsets", '{"lines": {"0": 7}, "by_column": {"0": 9}}'
).load().write.parquet(at("/up_to"))


def stream(**options: str):
    return spark.readStream.format("kafka").options(**kafka).options(**options).load().select("key", "value")


def run(writer, name: str) -> None:
    checkpointed = writer.queryName(name).option("checkpointLocation", at(f"/checkpoints/{name}"))
    checkpointed.trigger(availableNow=True).start().awaitTermination()


run(
    stream(subscribe="lines")
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", "copied"),
    "to_kafka",
)
run(
    stream(subscribePattern="li.*").writeStream.format("delta").option("path", at("/delta_stream")),
    "to_delta",
)
spark.sql("CREATE TABLE ice.db.stream (key BINARY, value BINARY) USING iceberg")
iceberg = stream(subscribe="lines").writeStream.queryName("to_iceberg").trigger(availableNow=True)
iceberg.option("checkpointLocation", at("/checkpoints/to_iceberg")).toTable(
    "ice.db.stream"
).awaitTermination()
run(
    spark.readStream.format("delta")
    .load(at("/delta_stream"))
    .writeStream.format("parquet")
    .option("path", at("/from_delta_stream")),
    "from_delta",
)

# PostgreSQL, by the writer and by a catalog.
jdbc = {"url": url, "driver": "org.postgresql.Driver", "user": "postgres", "password": "hunter22"}
spark.table("source").write.format("jdbc").options(**jdbc).option("dbtable", "things").save()
spark.read.format("jdbc").options(**jdbc).option("dbtable", "public.things").load().write.parquet(
    at("/from_table")
)
spark.read.format("jdbc").options(**jdbc).option(
    "query", "SELECT id, v FROM things WHERE v > 3"
).load().write.parquet(at("/from_query"))
spark.sql("CREATE TABLE pg.public.by_catalog AS SELECT id, v FROM source")
spark.sql("INSERT INTO pg.public.by_catalog SELECT id + 100, v FROM pg.public.things")
spark.stop()
