"""Statements that change one table of Iceberg, one right after the other; says how many have failed."""

from pyspark.sql import SparkSession

ROUNDS = 25
spark = SparkSession.builder.appName("quick").getOrCreate()
table = "mem.shop.t"
spark.sql("CREATE NAMESPACE mem.shop")
spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING iceberg")
failed = 0
for number in range(ROUNDS):
    for statement in (
        f"ALTER TABLE {table} ADD PARTITION FIELD bucket({number + 2}, id)",
        f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket({number + 2}, id) WITH truncate({number + 2}, day)",
        f"ALTER TABLE {table} DROP PARTITION FIELD truncate({number + 2}, day)",
        f"INSERT INTO {table} (id, day) VALUES (1, 'a')",
        f"ALTER TABLE {table} ADD COLUMNS (more{number} INT)",
        f"ALTER TABLE {table} WRITE ORDERED BY id",
        f"ALTER TABLE {table} DROP COLUMN more{number}",
    ):
        try:
            spark.sql(statement)
        except Exception as error:
            failed += 1
            print(statement, str(error).splitlines()[:2], flush=True)
print(f"failed: {failed}", flush=True)
spark.stop()
