"""A job that collects so many texts into two lists: small objects, all of which live until its end."""

import sys

from pyspark.sql import SparkSession

rows = int(sys.argv[1])
spark = SparkSession.builder.appName("garbage").getOrCreate()
texts = spark.range(0, rows, 1, 2).selectExpr("id % 2 AS half", "CAST(id AS STRING) AS text")
lists = texts.groupBy("half").agg({"text": "collect_list"}).toDF("half", "texts")
lists.selectExpr("size(texts)").collect()
spark.stop()
