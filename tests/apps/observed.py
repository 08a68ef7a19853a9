"""Statements with observed metrics, and tables made of what a program has; the argument is a folder."""

import sys

from pyspark.sql import SparkSession, functions

folder = sys.argv[1]
spark = SparkSession.builder.appName("observed").enableHiveSupport().getOrCreate()
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

# All rows that there are from now on, and rows that take the place of some others.
made.observe("whole", *figures("price")).write.mode("overwrite").parquet(at("whole"))
made.observe("all parts", *figures("price")).write.partitionBy("kind").mode("overwrite").parquet(at("parts"))
made.observe("again", *figures("price")).write.mode("overwrite").saveAsTable("again")
parts = spark.range(100).selectExpr("id", "id * 2 AS price", "'k' AS kind", "id % 2 AS part")
parts.write.partitionBy("part").saveAsTable("parts")
spark.sql(
    "CREATE TABLE hive_parts (id BIGINT, price BIGINT, kind STRING) PARTITIONED BY (part BIGINT) STORED AS TEXTFILE"
)
spark.sql("CREATE TABLE hive_whole (id BIGINT, price BIGINT, kind STRING) STORED AS TEXTFILE")
made.observe("in Hive", *figures("price")).write.insertInto("hive_whole", overwrite=True)
some = parts.where("part = 1")
some.observe("static", *figures("price")).drop("part").createOrReplaceTempView("one_part")
spark.sql("INSERT OVERWRITE parts PARTITION (part = 1) SELECT * FROM one_part")
spark.sql("INSERT OVERWRITE hive_parts PARTITION (part = 1) SELECT * FROM one_part")
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
some.observe("dynamic", *figures("price")).write.insertInto("parts", overwrite=True)
spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

# A limit above stops reading; what is shuffled or broadcast has been read; what is sorted may be read twice.
limited = orders.observe("limited", *figures("amount"))
limited.limit(3).write.parquet(at("limited"))
limited.offset(3).write.parquet(at("offset"))
limited.crossJoin(spark.range(2).withColumnRenamed("id", "number")).limit(3).write.parquet(
    at("joined_and_limited")
)
other = spark.range(5).withColumnRenamed("id", "other")
limited.join(other, functions.expr("id = other")).write.parquet(at("joined"))
limited.repartition(2).limit(3).write.parquet(at("shuffled"))
limited.groupBy("kind").count().write.parquet(at("counted"))
limited.orderBy("id").write.parquet(at("sorted"))
limited.repartitionByRange(2, "id").write.parquet(at("in_ranges"))
spark.stop()
