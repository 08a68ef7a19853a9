"""Runs each statement of SQL that it is given, even after one that fails; then reads and writes relative paths."""

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("plain").getOrCreate()
for statement in sys.argv[1:]:
    try:
        spark.sql(statement)
    except PySparkException as error:
        print(f"{statement.split()[0]}: {error}", flush=True)
rows = spark.readStream.schema("k LONG").parquet("out/rows").writeStream.queryName("relative")
rows.option("checkpointLocation", "out/checkpoint").trigger(availableNow=True).start(
    "out/streamed"
).awaitTermination()
spark.conf.set("spark.sql.sources.useV1SourceList", "")  # files are read by Spark's second interface
spark.read.parquet("out/rows").write.mode("append").json("out/second")
spark.stop()
