"""Streams into Delta and Iceberg, while others write to the same tables; the argument is a folder."""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("versions").getOrCreate()
at = f"{folder}/data/".__add__


def add_rows(count: int) -> None:
    spark.range(0, count, 1, 1).write.mode("append").parquet(at("in"))


def start(name: str, of_format: str, **trigger: Any) -> Any:
    orders = spark.readStream.schema("id BIGINT").parquet(at("in"))
    writer = orders.writeStream.format(of_format).queryName(name).trigger(**trigger)
    writer = writer.option("checkpointLocation", at(f"checkpoints/{name}"))
    table = {"to_iceberg": "ice.db.stream", "to_table": "streamed"}.get(name)
    return writer.toTable(table) if table else writer.start(at(name))


spark.sql("CREATE TABLE ice.db.stream (id BIGINT) USING iceberg")
add_rows(3)
tables = {"to_delta": ("delta", f"delta.`{at('to_delta')}`"), "to_iceberg": ("iceberg", "ice.db.stream")}
for name, (of_format, table) in tables.items():
    query = start(name, of_format, processingTime="10 milliseconds")
    query.processAllAvailable()
    for _ in range(2):
        spark.sql(f"INSERT INTO {table} SELECT 7L")
        add_rows(2)
        query.processAllAvailable()
    spark.sql(f"INSERT INTO {table} SELECT 8L")
    query.stop()
    add_rows(1)
    start(name, of_format, availableNow=True).awaitTermination()
start("to_files", "parquet", availableNow=True).awaitTermination()
spark.sql("CREATE TABLE streamed (id BIGINT) USING delta")
start("to_table", "delta", availableNow=True).awaitTermination()

rows = spark.sql("SELECT snapshot_id, summary FROM ice.db.stream.snapshots").collect()
Path(at("snapshots.json")).write_text(json.dumps([[row[0], row[1]] for row in rows]))
spark.range(3).write.format("delta").save(at("before_the_end"))
spark.range(4).write.format("delta").mode("append").save(at("before_the_end"))
spark.stop()
