"""Statements with observed metrics, and tables made of what a program has; the argument is a folder."""

import sys

from pyspark.sql import SparkSession, functions

folder = sys.argv[1]
spark = SparkSession.builder.appName("observed").getOrCreate()
at = f"{folder}/data/".__add__

rows = "CASE WHEN id < 2 THEN NULL ELSE id * 2 END AS amount"
spark.range(10).selectExpr("id", rows, "'k' AS kind").write.parquet(at("orders"))
orders = spark.read.parquet(at("orders"))


def figures(column: str) -> list:
    return [
        functions.count(functions.lit(1)).alias("n"),
        functions.min(column),
        functions.max(column).alias("most"),
        functions.sum(column).alias("total"),
        functions.count(column).alias("known"),
        functions.count_if(functions.col(column).isNull()).alias("unknown"),
        functions.max("kind").alias("no number"),
        functions.sum(functions.col(column) + 1).alias("no column"),
    ]


# All rows of a source, before a filter; and rows that are neither all of a source's nor all of a sink's.
read = orders.observe("read", *figures("amount")).filter("id > 3")
read.observe("some", *figures("id")).selectExpr("id", "kind").write.parquet(at("filtered"))

# All rows that a table has from now on, and rows that are added to others.
made = orders.filter("id > 3").selectExpr("id", "amount + 1 AS price", "kind")
made.observe("made", *figures("price")).write.saveAsTable("prices")
made.observe("added", *figures("price")).write.mode("append").saveAsTable("prices")
spark.stop()
