"""A batch application that knows nothing of who watches it: its Python workers want more memory than they may have."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("hungry").getOrCreate()
numbers = spark.sparkContext.parallelize(range(2), 1)
try:
    numbers.map(lambda number: len([bytearray(b"x" * (20 << 20)) for _ in range(80)])).sum()
except Exception as error:
    print("it goes on after", type(error).__name__)
numbers.count()
spark.stop()
