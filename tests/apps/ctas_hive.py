"""Makes and replaces tables of all kinds in a Hive metastore, and prints what came of it.

ctas_hive.py <folder>
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from spark_events import ctas

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.sql(f"CREATE DATABASE other LOCATION '{folder}/other'")
steps: dict[str, Any] = {}


def make(step: str, table: str, rest: str) -> None:
    done = ctas.sql(spark, f"CREATE OR REPLACE TABLE {table} {rest}")
    assert done.level is not None
    read = spark.newSession().table(table)
    steps[step] = [done.level.value, done.rows if done.rows is not None else read.count(), read.count()]


def raw(table: str) -> list[str]:
    catalog = spark._jsparkSession.sessionState().catalog()
    found = catalog.externalCatalog().unwrapped().client().getTable("default", table)
    own = catalog.getTableMetadata(
        spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(table)
    )
    return [found.tableType().name(), str(found.storage().locationUri().get()), str(own.location())]


def collect() -> None:
    transactions = ctas.transactions_of(spark)
    for left in transactions.journal.unfinished():
        transactions.table_of(left.to_json()).collect()


ids = "SELECT id, id % {} AS p FROM range({})"
make("parquet, partitioned", "t", f"USING parquet PARTITIONED BY (p) AS {ids.format(3, 10)}")
partitions = {"t": spark.sql("SHOW PARTITIONS t").count()}
make(
    "other format, more columns",
    "t",
    f"USING orc PARTITIONED BY (p) AS SELECT id, 'x' AS n, p FROM ({ids.format(2, 8)})",
)
make(
    "other types at the same places",
    "t",
    "USING orc PARTITIONED BY (p) AS SELECT 'x' AS n, id, id AS p FROM range(8)",
)
try:
    ctas.sql(spark, "REPLACE TABLE t USING parquet AS SELECT 1 AS a", require="atomic")
    refused = ""
except ctas.NotAtomicError as error:
    refused = str(error)
make("other partitions", "t", "USING parquet AS SELECT id FROM range(5)")
make("a format that Hive does not know", "t", "USING json AS SELECT id, 'x' AS n FROM range(6)")
make("and another one, other columns", "t", "USING csv AS SELECT 'x' AS n, id FROM range(7)")
make("text of Hive", "h", "STORED AS textfile AS SELECT id, 'x' AS n FROM range(4)")
make("text of Hive, replaced", "h", "USING hive AS SELECT 'x' AS n, id FROM range(9)")
make("Hive's, partitioned", "p", f"USING hive PARTITIONED BY (p) AS {ids.format(2, 4)}")
partitions["p"] = spark.sql("SHOW PARTITIONS p").count()
make("Hive's, partitioned, replaced", "p", f"USING hive PARTITIONED BY (p) AS {ids.format(2, 7)}")
make("Hive's, replaced by files", "p", f"USING parquet AS {ids.format(2, 6)}")
make("a location", "f_location", f"USING parquet LOCATION '{folder}/at/files' AS {ids.format(2, 4)}")
make("Hive's at a location", "h_location", f"USING hive LOCATION '{folder}/at/of_hive' AS {ids.format(2, 4)}")
make(
    "Hive's at a location, partitioned",
    "p_location",
    f"USING hive PARTITIONED BY (p) LOCATION '{folder}/at/partitioned' AS {ids.format(2, 4)}",
)
partitions["p_at_location"] = spark.sql("SHOW PARTITIONS p_location").count()
make("another database", "other.o", f"USING parquet PARTITIONED BY (p) AS {ids.format(2, 3)}")
tables = [
    row.tableName for row in spark.sql("SHOW TABLES").collect() if not row.tableName.startswith("ctas_old")
]
told = {table: raw(table) for table in tables}
collect()
for table in [*tables, "other.o"]:
    spark.sql(f"DROP TABLE {table}")
left = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
left += [name for name in os.listdir(f"{folder}/warehouse") if name != ".ctas"]
left += os.listdir(f"{folder}/other")
at = sorted(name for name in os.listdir(f"{folder}/at") if not name.startswith("."))
print(
    json.dumps(
        {
            "steps": steps,
            "raw": told,
            "refused": refused,
            "left": left,
            "left_at_locations": at,
            "partitions": partitions,
        }
    )
)
