"""A table of the catalog ``hive`` that is renamed by its whole name."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("ddl").getOrCreate()
for statement in (
    "CREATE NAMESPACE hive.shop",
    "CREATE TABLE hive.shop.t (id INT) USING iceberg",
    "INSERT INTO hive.shop.t VALUES (1)",
    "ALTER TABLE hive.shop.t RENAME TO hive.shop.u",
    "INSERT INTO hive.shop.u SELECT * FROM hive.shop.u",
):
    spark.sql(statement)
    spark.range(1).count()  # so that the next one does not overtake the answer of the catalog
spark.stop()
