"""Runs each statement of SQL that it is given, one after the other; one that fails does not end it."""

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("plain").getOrCreate()
for statement in sys.argv[1:]:
    try:
        spark.sql(statement)
    except PySparkException as error:
        print(f"{statement.split()[0]}: {error}", flush=True)
spark.stop()
