"""Computes a cached RDD, takes it out of the cache, and caches it again."""

import time

from pyspark.sql import SparkSession

context = SparkSession.builder.getOrCreate().sparkContext
pictures = context.parallelize(range(4), 4).map(lambda number: time.sleep(1) or number).setName("pictures")
for _ in range(2):
    pictures.cache().count()
    pictures.unpersist(blocking=True)
context.stop()
