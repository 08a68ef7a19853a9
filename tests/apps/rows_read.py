"""Statements that sort and partition what they read, in several ways; the argument is a folder."""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("rows").getOrCreate()
at = f"{folder}/data/".__add__

spark.range(0, 1000, 1, 4).selectExpr("id", "id % 7 AS k").write.parquet(at("in"))
rows = spark.read.parquet(at("in"))
rows.write.parquet(at("plain"))
rows.sortWithinPartitions("k").write.parquet(at("sorted_within"))
for adaptive in ("true", "false"):
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    rows.where("k < 5").orderBy("id").write.parquet(at(f"sorted_{adaptive}"))
    rows.repartitionByRange(3, "k").write.parquet(at(f"ranges_{adaptive}"))
    rows.groupBy("k").count().orderBy("count").write.parquet(at(f"sorted_groups_{adaptive}"))
    rows.repartitionByRange(1, "k").write.parquet(at(f"one_range_{adaptive}"))
spark.stop()
