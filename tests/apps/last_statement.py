"""An application that stops right after a statement; the arguments are a table, its format, and the statement."""

import sys

from pyspark.sql import SparkSession

table, of_format, statement = sys.argv[1:4]
spark = SparkSession.builder.appName("last").getOrCreate()
spark.range(3).selectExpr("id", "id * 2 AS twice").write.parquet("rows")
if not statement.startswith("CREATE"):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, twice BIGINT) USING {of_format}")
spark.sql(statement.format(table=table, of_format=of_format))
spark.stop()
