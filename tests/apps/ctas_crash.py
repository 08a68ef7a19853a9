"""Runs the same statements at each point of a commit at which something can happen, and lets it happen.

    ctas_crash.py <catalog> <folder> raise|kill|recover

With ``raise`` each point raises. With ``kill`` each statement waits at its point, in a thread of its own,
until all have come to theirs; then the process kills itself. ``recover`` ends what was left. ``raise`` and
``recover`` print what is there in the end, as one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from pyspark.sql import SparkSession

from spark_events import ctas
from spark_events.ctas import fault_points

OLD, NEW = 3, 10
DURING_WRITE = "during_write"
HEADS = {
    "create": "CREATE TABLE",
    "absent": "CREATE TABLE IF NOT EXISTS",
    "replace": "CREATE OR REPLACE TABLE",
}
PARTITIONED = {"memory": "USING parquet PARTITIONED BY (p)", "hive": "USING orc PARTITIONED BY (p)"}
FORMATS = {**PARTITIONED, "delta": "USING delta"}
PREFIXES = {"postgresql": "db.public."}


class BrokenError(Exception):
    """Raised at a point."""


def main() -> None:
    catalog, folder, what = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    if what == "recover":
        transactions = ctas.transactions_of(spark)
        done = {one.transaction.txid: one.done for one in transactions.recover()}
        transactions.recover([one.txid for one in transactions.journal.unfinished()], force=True)
        report(spark, catalog, folder, list(done.values()))
        return
    cases = Cases(spark, catalog)
    cases.prepare()
    fault_points.observers.append(cases.reached)
    cases.kill() if what == "kill" else cases.break_each()
    fault_points.observers.clear()
    transactions = ctas.transactions_of(spark)
    transactions.recover([one.txid for one in transactions.journal.unfinished()], force=True)
    report(spark, catalog, folder, cases.outcomes)


class Cases:
    """One statement for each point and each purpose."""

    def __init__(self, spark: Any, catalog: str) -> None:
        self.spark = spark
        self.catalog = catalog
        self.outcomes: list[str] = []
        self.local = threading.local()
        self.kills = False
        self.here = threading.Semaphore(0)

    @property
    def points(self) -> list[str]:
        return [*fault_points.POINTS, *([DURING_WRITE] if self.kills else [])]

    def prepare(self) -> None:
        for point in [*fault_points.POINTS, DURING_WRITE]:
            name = table(self.catalog, "replace", point)
            ctas.sql(self.spark, f"CREATE TABLE {name} {FORMATS.get(self.catalog, '')} AS {query(OLD)}")

    def reached(self, point: str) -> None:
        if point != getattr(self.local, "point", None):
            return
        if not self.kills:
            raise BrokenError(point)
        self.here.release()
        threading.Event().wait()

    def run(self, purpose: str, point: str) -> None:
        self.local.point = point
        rows = query(NEW, point == DURING_WRITE)
        text = f"{HEADS[purpose]} {table(self.catalog, purpose, point)} {FORMATS.get(self.catalog, '')} AS {rows}"
        try:
            done = ctas.sql(self.spark, text)
            if point == "before_collect":
                ctas.transactions_of(self.spark).recover([done.txid], force=True)
            if self.kills:  # it has no such point, or is over
                self.here.release()
            self.outcomes.append("done")
        except BrokenError:
            self.outcomes.append("broken")

    def break_each(self) -> None:
        for point in self.points:
            for purpose in HEADS:
                self.run(purpose, point)

    def kill(self) -> None:
        self.kills = True
        threads = [
            threading.Thread(target=self.run, args=(purpose, point), daemon=True)
            for point in self.points
            for purpose in HEADS
        ]
        for thread in threads:
            thread.start()
        for _ in range(len(threads) - len(HEADS)):
            if not self.here.acquire(timeout=200):
                sys.exit("not all statements have come to their points")
        running = self.spark.sparkContext.statusTracker()
        while len(running.getActiveStageIds()) < len(HEADS):  # those in the middle of their writes
            time.sleep(0.1)
        os.killpg(0, signal.SIGKILL)


def table(catalog: str, purpose: str, point: str) -> str:
    return f"{PREFIXES.get(catalog, '')}{purpose}_{point}"


def query(rows: int, never_ends: bool = False) -> str:
    """Return a query of some rows; with ``never_ends``, some are written, and one is not."""
    slow = "CASE WHEN id = 9 THEN reflect('java.lang.Thread', 'sleep', 600000L) END"
    more = f", {slow} AS slow" if never_ends else ""
    return f"SELECT id, id % 2 AS p{more} FROM range(0, {rows}, 1, 2)"


def report(spark: Any, catalog: str, folder: str, outcomes: list[str]) -> None:
    """Print how many rows each table has, and which folders and tables are there besides."""
    found: dict[str, int | None] = {}
    for point in [*fault_points.POINTS, DURING_WRITE]:
        for purpose in HEADS:
            name = table(catalog, purpose, point)
            there = spark.catalog.tableExists(name)
            found[f"{purpose}_{point}"] = spark.table(name).count() if there else None
    where = PREFIXES.get(catalog, "default.").rstrip(".")
    names = [row.tableName for row in spark.sql(f"SHOW TABLES IN {where}").collect()]
    used = {os.path.basename(location) for name in names if (location := location_of(spark, catalog, name))}
    folders = set(os.listdir(f"{folder}/warehouse")) - {".ctas"}
    print(
        json.dumps(
            {
                "rows": found,
                "other_tables": sorted(set(names) - set(found)),
                "orphans": sorted(folders - used),
                "outcomes": outcomes,
            }
        )
    )


def location_of(spark: Any, catalog: str, name: str) -> str:
    if catalog in PREFIXES:
        return ""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED default.{name}").where("col_name = 'Location'").collect()
    return str(rows[0].data_type).rstrip("/") if rows else ""


if __name__ == "__main__":
    main()
