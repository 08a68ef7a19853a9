"""An application that has worked, and now waits with its executors until Spark is stopped."""

import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("idle").getOrCreate()
spark.sparkContext.range(10).count()
while not spark.sparkContext._jsc.sc().isStopped():
    time.sleep(0.1)
