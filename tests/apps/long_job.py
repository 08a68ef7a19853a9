"""An application with a job that takes longer than anybody waits."""

import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("long-job").getOrCreate()
spark.sparkContext.parallelize(range(1), 1).map(lambda _: time.sleep(600)).count()
