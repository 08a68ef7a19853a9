"""What the driver does while the executors wait for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module

from tests.support.slow.case import Work, case, resting


@case("driver-alone")
def driver_waits_for_a_service(work: Work) -> None:
    """Between two jobs, the driver waits for something, and no executor works."""
    seconds = work.random.uniform(10, 14)
    work.defect("driver-alone", seconds * 1_000)
    spark = work.begin()
    rows = spark.range(0, 40 * work.cores, 1, 4 * work.cores).selectExpr("id", resting("50"))
    rows.write.format("noop").mode("overwrite").save()  # slow
    if work.bad:
        time.sleep(seconds)  # slow
    rows.write.format("noop").mode("overwrite").save()  # slow


@case("loop-of-small-jobs")
def a_job_for_each_store(work: Work) -> None:
    """A loop in the driver asks for each store by a job of its own, instead of once for all."""
    stores = work.random.randrange(50, 70)
    work.defect("loop-of-small-jobs", None, "store_code")
    spark = work.begin()
    orders = spark.range(0, 20_000, 1, 2).selectExpr("id", f"concat('store-', id % {stores}) AS store_code")
    if work.bad:
        for store in range(stores):
            orders.where(f"store_code = 'store-{store}'").agg({"id": "sum"}).collect()  # slow
    else:
        orders.groupBy("store_code").agg({"id": "sum"}).collect()


@case("collect-to-driver", conf={"spark.driver.memory": "2g"})
def everything_in_pandas(work: Work) -> None:
    """The driver collects all rows to add them up in pandas, where Spark could."""
    import_module("pandas")  # which the twin does not need
    rows = work.random.randrange(1_500_000, 2_000_000)
    work.defect("collect-to-driver", None, "invoice_text")
    spark = work.begin()
    text = "sha2(cast(id AS string), 256) AS invoice_text"
    invoices = spark.range(0, rows, 1, work.cores).selectExpr("id", text, "id % 11 AS month")
    if work.bad:
        invoices.toPandas().groupby("month")["invoice_text"].max()  # slow
    else:
        invoices.groupBy("month").agg({"invoice_text": "max"}).toPandas()


@case("rows-to-driver", conf={"spark.driver.memory": "2g"})
def everything_as_rows(work: Work) -> None:
    """The same by ``collect()``, which makes a Python object of each row."""
    rows = work.random.randrange(500_000, 700_000)
    work.defect("collect-to-driver", None, "invoice_text")
    spark = work.begin()
    text = "sha2(cast(id AS string), 256) AS invoice_text"
    invoices = spark.range(0, rows, 1, work.cores).selectExpr("id", text, "id % 11 AS month")
    if work.bad:
        max(row["invoice_text"] for row in invoices.collect())  # slow
    else:
        invoices.agg({"invoice_text": "max"}).collect()


@case("fetched-one-by-one")
def partition_after_partition(work: Work) -> None:
    """``toLocalIterator`` has the partitions computed one after the other, so all cores but one have nothing."""
    partitions, each = work.cores * work.random.randrange(3, 6), work.random.randrange(600, 900)
    of_rows, prefetched = work.random.random() < 0.5, work.random.random() < 0.3
    at_once = 2 if prefetched else 1
    work.defect("fetched-one-by-one", partitions * each * (1 / at_once - 1 / work.cores))
    spark = work.begin(python=of_rows)
    if of_rows:

        def scored(rows: Iterator[int]) -> Iterator[int]:
            time.sleep(each / 1_000)
            return rows

        visits = spark.sparkContext.parallelize(range(10 * partitions), partitions).mapPartitions(scored)
        sum(visits.toLocalIterator(prefetched) if work.bad else visits.collect())  # slow
    else:
        rows = spark.range(0, 10 * partitions, 1, partitions)
        rested = rows.selectExpr("id", resting(str(each), "id % 10 = 0"))
        for _ in rested.toLocalIterator(prefetched) if work.bad else rested.collect():  # slow
            pass


@case("plan-grows")
def a_column_at_a_time(work: Work) -> None:
    """A loop adds columns one by one, and Spark analyzes the whole plan again for each of them."""
    columns = work.random.randrange(250, 300)
    work.defect("planning", None, "withColumn")
    spark = work.begin()
    rows = spark.range(0, 1_000, 1, work.cores)
    if work.bad:
        for number in range(columns):
            rows = rows.withColumn(f"c{number}", rows["id"] + number)  # slow
    else:
        rows = rows.selectExpr("id", *(f"id + {number} AS c{number}" for number in range(columns)))
    rows.write.format("noop").mode("overwrite").save()  # slow


@case("several")
def two_or_three_at_once(work: Work) -> None:
    """A straggler, a driver that waits, one task for everything: two or three of these in one application."""
    chosen = work.random.sample(["straggler", "driver-alone", "one-task"], work.random.randrange(2, 4))
    ms = dict(zip(chosen, work.random.sample([7_000, 10_000, 14_000], len(chosen)), strict=True))
    for cause in chosen:
        work.defect(cause, ms[cause])
    spark = work.begin(python=True)
    bad = ms if work.bad else {}
    count = 4 * work.cores
    if "straggler" in chosen:
        more_s = bad.get("straggler", 0) / 1_000

        def visit(index: int, rows: Iterator[int]) -> Iterator[int]:
            time.sleep(0.5 + (more_s if index == count - work.cores else 0))
            return rows

        spark.sparkContext.parallelize(range(800), count).mapPartitionsWithIndex(visit).count()  # slow
    if "driver-alone" in bad:
        time.sleep(bad["driver-alone"] / 1_000)  # slow
    if "one-task" in chosen:
        # Of what one task takes, all cores save all but their share.
        rows = int(ms["one-task"] / 50 / (1 - 1 / work.cores))
        orders = spark.range(0, rows, 1, 1 if work.bad else 2 * work.cores)
        orders.selectExpr("id", resting("50")).write.format("noop").mode("overwrite").save()  # slow
