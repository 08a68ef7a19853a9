"""An application whose Python worker takes a gigabyte, and keeps it until somebody ends it: at most two minutes."""

import threading

from pyspark.sql import SparkSession


def fill(_):
    pages = [bytearray(b"x") * (1 << 20) for _ in range(1 << 10)]
    threading.Event().wait(120)
    return len(pages)


spark = SparkSession.builder.appName("over-limit").getOrCreate()
try:
    spark.sparkContext.parallelize(range(1), 1).map(fill).sum()
except Exception as error:
    print("failed:", type(error).__name__)
spark.stop()
