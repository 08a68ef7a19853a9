"""Python functions: where Spark has one of its own, where it has none; workers that start slowly."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import combinations
from subprocess import Popen
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, write_parquet

if TYPE_CHECKING:
    from pandas import DataFrame


@case("python-row-by-row")
def udf_for_each_row(work: Work) -> None:
    """A UDF does for each row what an expression of Spark's could; a row takes 20 ms."""
    from pyspark.sql.functions import udf

    rows = work.cores * work.random.randrange(250, 400)
    work.defect("python-row-by-row", rows * 20 / work.cores, "price_with_tax")
    spark = work.begin(pandas=True)  # Arrow carries the rows

    @udf("double")  # type: ignore[untyped-decorator]
    def price_with_tax(price: int) -> float:
        time.sleep(0.02)
        return price * 1.19

    prices = spark.range(0, rows, 1, 2 * work.cores)
    taxed = prices.select(price_with_tax("id") if work.bad else prices["id"] * 1.19)  # slow
    taxed.write.format("noop").mode("overwrite").save()  # slow


@case("few-rows-for-python")
def a_few_rows_in_each_batch(work: Work) -> None:
    """Somebody has set how many rows a batch for Python has to a handful, where memory was short."""
    from pyspark.sql.functions import udf

    rows, in_batch = work.cores * work.random.randrange(300_000, 500_000), work.random.randrange(4, 12)
    work.defect("few-rows-for-python", None, f"maxRecordsPerBatch={in_batch}", costed=False)
    spark = work.begin(pandas=True)
    if work.bad:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", in_batch)

    @udf("double", useArrow=True)  # type: ignore[untyped-decorator]
    def felt(celsius: int) -> float:
        return celsius * 1.1 - 2.0

    measured = spark.range(0, rows, 1, 2 * work.cores)
    measured.select(felt("id").alias("felt")).groupBy().max("felt").collect()  # slow


@case("frames-joined")
def columns_of_three_frames(work: Work) -> None:
    """Code for pandas reads the same table three times, and computes with columns of all three."""
    import numpy

    rows = work.random.randrange(2_000_000, 3_000_000)
    folder = work.folder / "measurements"
    write_parquet(folder, {"load": numpy.arange(rows) % 97, "heat": numpy.arange(rows) % 89}, files=4)
    work.defect("frames-joined", None, "measurements")
    work.begin(pandas=True)
    os.environ["PYARROW_IGNORE_TIMEZONE"] = "1"
    from pyspark import pandas

    pandas.set_option("compute.ops_on_diff_frames", True)
    first = pandas.read_parquet(str(folder))
    second, third = (pandas.read_parquet(str(folder)) if work.bad else first for _ in range(2))  # slow
    first["doubled"] = second["heat"] * 2  # slow
    first["ratio"] = third["load"] / third["heat"]  # slow
    first.to_spark().selectExpr("max(doubled)", "max(ratio)").write.format("noop").mode(
        "overwrite"
    ).save()  # slow


@case("udf-in-rdd")
def map_in_rdd(work: Work) -> None:
    """The same in an RDD, instead of a DataFrame."""
    rows = work.cores * work.random.randrange(250, 400)
    work.defect("udf-in-rdd", rows * 20 / work.cores)
    spark = work.begin(python=True)

    def price_with_tax(price: int) -> float:
        time.sleep(0.02)
        return price * 1.19

    if work.bad:
        prices = spark.sparkContext.parallelize(range(rows), 2 * work.cores)
        prices.map(price_with_tax).sum()  # slow
    else:
        spark.range(0, rows, 1, 2 * work.cores).selectExpr("sum(id * 1.19)").collect()


@case("cartesian-of-rdds", needed=frozenset({"python"}))
def shops_near_each_rider(work: Work) -> None:
    """Each rider is paired with each shop, to keep the pairs of one cell; the twin joins them by the cell."""
    riders, shops = work.random.randrange(9_000, 11_000), work.random.randrange(500, 600)
    cells = 50
    work.defect("cartesian-of-rdds", None, "cartesian()", costed=False)
    spark = work.begin(python=True)
    of_riders = spark.sparkContext.parallelize(range(riders), work.cores).map(lambda n: (n % cells, n))
    of_shops = spark.sparkContext.parallelize(range(shops), 2).map(lambda n: (n % cells, n))
    if work.bad:
        pairs = of_riders.cartesian(of_shops).filter(lambda pair: pair[0][0] == pair[1][0])
    else:
        pairs = of_riders.join(of_shops, 2 * work.cores)
    pairs.count()  # slow


@case("pairs-of-groups", needed=frozenset({"python"}))
def similar_baskets(work: Work) -> None:
    """All pairs are made of the members of each group, and half of the groups have most of the members."""
    groups, members = 8 * work.cores, work.random.randrange(600, 800)
    work.defect("pairs-of-groups", None)
    spark = work.begin(python=True)

    def near(group: tuple[int, Iterable[int]]) -> list[tuple[int, int]]:
        first, *others = group[1]
        return list(combinations((first, *others), 2)) if work.bad else [(first, each) for each in others]

    numbers = spark.sparkContext.parallelize(range(groups * members), 2 * work.cores)
    grouped = numbers.map(lambda number: (number % groups, number)).filter(
        lambda each: each[0] % 2 == 0 or each[1] < 20 * groups
    )
    of_groups = grouped.groupByKey(groups, lambda group: group)
    of_groups.flatMap(near).map(lambda pair: (pair, 1)).reduceByKey(max, groups).count()  # slow


@case(
    "python-cold-start", healthy=True, conf={"spark.python.daemon.module": "tests.support.slow.slow_daemon"}
)
def workers_start_slowly(work: Work) -> None:
    """Python takes seconds to start, so the first tasks on all cores wait; no code can mend that."""
    tasks_ms = work.random.randrange(300, 600)
    spark = work.begin()

    def scored(rows: Iterator[int]) -> Iterator[int]:
        time.sleep(tasks_ms / 1_000)
        return rows

    spark.sparkContext.parallelize(range(1_000), 4 * work.cores).mapPartitions(scored).count()


@case("cold-start-under-load", healthy=True)
def workers_start_beside_other_work(work: Work) -> None:
    """Python workers start while two other processes keep the machine busy."""
    tasks_ms = work.random.randrange(300, 600)
    busy = [Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]

    def scored(rows: Iterator[int]) -> Iterator[int]:
        time.sleep(tasks_ms / 1_000)
        return rows

    try:
        spark = work.begin()
        spark.sparkContext.parallelize(range(1_000), 4 * work.cores).mapPartitions(scored).count()
    finally:
        for process in busy:
            process.kill()
            process.wait()


@case("model-in-python", healthy=True)
def model_of_all_rows(work: Work) -> None:
    """Python takes nearly all of the time, evenly and in batches, for what only Python can do."""
    seconds = work.random.uniform(1.5, 2.5)
    spark = work.begin(pandas=True)

    def predicted(batches: Iterator[DataFrame]) -> Iterator[DataFrame]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    rows = spark.range(0, 1_000, 1, 2 * work.cores)
    rows.mapInPandas(predicted, "id long").write.format("noop").mode("overwrite").save()
