"""Statements of DDL, one after the other; the argument is a folder, a format, and the name of a table."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder, of_format, table = sys.argv[1:4]
spark = SparkSession.builder.appName("ddl").getOrCreate()
database, _, name = table.rpartition(".")
renamed = f"{database}.renamed"
of_spark = of_format in ("USING parquet", "STORED AS parquet")

columns = (
    ") PARTITIONED BY (day STRING) STORED AS parquet"
    if "STORED" in of_format
    else f", day STRING) {of_format} PARTITIONED BY (day)"
)


def run(*statements: str) -> None:
    for statement in statements:
        spark.sql(statement)
        spark.range(1).count()  # so that the next one does not overtake the answer of the catalog


run(
    f"CREATE NAMESPACE IF NOT EXISTS {database}",
    f"CREATE TABLE {table} (id INT, day STRING) {of_format}",
    f"CREATE TABLE IF NOT EXISTS {table} (other INT) {of_format}",
    f"INSERT INTO {table} VALUES (1, 'a')",
    f"ALTER TABLE {table} ADD COLUMNS (more DOUBLE)",
    f"ALTER TABLE {table} SET TBLPROPERTIES ('k' = 'v')",
    f"COMMENT ON TABLE {table} IS 'x'",
)
if of_spark:
    run(
        f"CREATE TABLE {database}.parts (id INT{columns}",
        f"ALTER TABLE {database}.parts ADD PARTITION (day = 'a')",
        f"ALTER TABLE {database}.parts DROP PARTITION (day = 'a')",
        f"MSCK REPAIR TABLE {database}.parts",
        f"CREATE TABLE {database}.like_it LIKE {table}",
        f"ANALYZE TABLE {table} COMPUTE STATISTICS",
    )
else:
    run(
        f"ALTER TABLE {table} RENAME COLUMN more TO less",
        f"ALTER TABLE {table} DROP COLUMN less",
    )
if of_format == "USING iceberg":
    run(
        f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)",
        f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(4, id) WITH truncate(2, day)",
        f"ALTER TABLE {table} DROP PARTITION FIELD truncate(2, day)",
        f"ALTER TABLE {table} WRITE ORDERED BY id",
        f"ALTER TABLE {table} CREATE BRANCH tried",
        f"INSERT INTO {table}.branch_tried VALUES (2, 'b')",
        f"ALTER TABLE {table} DROP BRANCH tried",
        f"ALTER TABLE {table} CREATE TAG first",
        f"ALTER TABLE {table} DROP TAG first",
    )
    # What a procedure does is not known, either.
    spark.sql(f"CALL mem.system.rewrite_data_files('{table.removeprefix('mem.')}')").collect()
if of_format == "USING delta":
    run(f"OPTIMIZE {table}")  # a command that is not known
run(
    f"TRUNCATE TABLE {table}",
    f"ALTER TABLE {table} RENAME TO {renamed if database.count('.') == 0 else 'renamed'}",
)
if of_spark:
    (Path(folder) / "elsewhere").mkdir()
    run(f"ALTER TABLE {renamed} SET LOCATION '{folder}/elsewhere'")
else:
    run(f"CREATE OR REPLACE TABLE {renamed} (fresh BIGINT) {of_format}")
run(
    f"DROP TABLE {renamed}",
    f"DROP TABLE IF EXISTS {renamed}",
    f"CREATE TABLE {database}.external (id INT) {of_format} LOCATION '{folder}/external'",
)
for failing in (
    f"ALTER TABLE {database}.external ADD COLUMNS (id INT)",
    "CREATE VIEW v AS SELECT 1 AS one",
    "DROP VIEW v",
):  # neither is told
    try:
        spark.sql(failing)
    except Exception as error:
        print(type(error).__name__, flush=True)
run(f"DROP TABLE {database}.external")
spark.stop()
