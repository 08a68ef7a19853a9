"""Registers partitions in a Hive metastore, more than once and after a kill, and prints what readers saw.

    ctas_partitions.py <folder> kill|go

``kill`` ends in the middle of a commit, when the files of a Hive table are at their LOCATION; ``go`` does the rest.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

from spark_events import ctas
from spark_events.ctas import fault_points

ROWS = "SELECT id, id % 4 AS p FROM range(0, 100, 1, 1)"
folder, what = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()


def main() -> None:
    if what == "kill":
        at_partitions(lambda: os.killpg(0, signal.SIGKILL))
        ctas.sql(
            spark, f"CREATE TABLE h USING hive PARTITIONED BY (p) LOCATION '{folder}/location' AS {ROWS}"
        )
    transactions = ctas.transactions_of(spark)
    transactions.recover()
    seen = {"killed": count("h"), **collected_twice(), **finished_twice(), **repaired()}
    print(json.dumps(seen))


def collected_twice() -> dict[str, Any]:
    """Collect as two drivers do that have both read in the journal that it is time."""
    make("t")
    done = make("t")
    first, second = table_of(done), table_of(done)
    during: list[int] = []
    at_partitions(lambda: during.append(count("t")))
    first.collect()
    spark.sql(f"ALTER TABLE t ADD PARTITION (p = 9) LOCATION '{added(9)}'")
    second.collect()
    rows = count("t", "p = 9")
    # A statement of Spark's takes over the partitions of the table before, which have lost their files since.
    replaced = table_of(make("t"))
    spark.sql("MSCK REPAIR TABLE t")
    replaced.collect()
    return {"during": during, "added": rows, "replaced": count("t")}


def finished_twice() -> dict[str, Any]:
    """Finish a commit as the driver does that recovers it."""
    during: list[int] = []
    at_partitions(lambda: during.append(count("u")))

    def fail(point: str) -> None:
        if point == "before_committed":
            raise OSError("the journal is out of reach")

    fault_points.observers.append(fail)
    done = make("u")
    fault_points.observers.remove(fail)
    outcomes = ctas.transactions_of(spark).recover([done.txid], force=True)
    return {"finished": [outcome.done for outcome in outcomes], "during_finish": during}


def repaired() -> dict[str, Any]:
    """Take all partitions from the catalog, as a driver did that was killed while it removed remains."""
    fault_points.observers.clear()
    done = make("v")
    transactions = ctas.transactions_of(spark)
    metastore = spark._jvm.org.apache.hadoop.hive.ql.metadata.Hive.get()
    for partition in spark.sql("SHOW PARTITIONS v").collect():
        metastore.dropPartition("default", "v", [partition[0].split("=")[1]], False)
    before = count("v")
    outcomes = transactions.recover()
    return {
        "torn": before,
        "repaired": [(outcome.transaction.txid == done.txid, outcome.done) for outcome in outcomes],
        "after": count("v"),
        "again": [outcome.done for outcome in transactions.recover()],
    }


def make(name: str) -> Any:
    return ctas.sql(spark, f"CREATE OR REPLACE TABLE {name} USING parquet PARTITIONED BY (p) AS {ROWS}")


def table_of(done: Any) -> Any:
    transactions = ctas.transactions_of(spark)
    return transactions.table_of(transactions.journal.read(done.txid).to_json())


def added(value: int) -> str:
    path = f"{folder}/added-{value}"
    spark.range(7).write.parquet(path)
    return path


def at_partitions(call: Any) -> None:
    fault_points.observers[:] = [lambda point: call() if point == "before_partitions" else None]


def count(name: str, where: str = "true") -> int:
    """Count the rows that a reader in a session of its own sees."""
    reader = spark.newSession()
    reader.catalog.refreshTable(name)
    return int(reader.table(name).where(where).count())


if __name__ == "__main__":
    main()
