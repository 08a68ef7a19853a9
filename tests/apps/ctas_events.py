"""Makes tables all at once, one of another, and fails with a third.

ctas_events.py
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_events import ctas

spark = SparkSession.builder.appName("tables").getOrCreate()
ctas.sql(spark, "CREATE TABLE src USING parquet AS SELECT id, id * 2 AS v FROM range(100)")
for number in range(2):
    ctas.create_table_as(
        spark.table("src").where(f"id > {number}"),
        "dst",
        mode="create_or_replace",
        format="parquet",
        checks=[ctas.each_row("v >= 0")],
    )
try:
    ctas.sql(spark, "CREATE TABLE bad USING parquet AS SELECT raise_error('too much') AS a FROM src")
except Exception as error:
    print(type(error).__name__)
spark.stop()
