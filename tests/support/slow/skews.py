"""Data that is unevenly distributed among tasks, in the ways of DataFrames."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, makespan_ms, resting

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyspark.sql import SparkSession

_PARTITIONS = {
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@case("skew-join", conf=_PARTITIONS)
def one_key_of_a_join(work: Work) -> None:
    """Half of the orders are of one customer, so one task of the join has them all; an order takes 2 ms."""
    rows, customers, hot = 10_000, 2_000, work.random.randrange(2_000)
    share = work.random.uniform(0.5, 0.7)
    total_ms = rows * 2
    spark = work.begin()
    hot_key = f"C-{hot}"
    work.defect("skew", _cost_ms(work, spark, hot_key, share, total_ms), "customer_id", hot_key)
    customer = f"IF(id < {int(rows * share)}, {hot}, id % {customers})" if work.bad else f"id % {customers}"
    text = "repeat(sha2(cast(id AS string), 256), 8) AS remarks"
    orders = spark.range(0, rows, 1, 2 * work.cores).selectExpr(
        "id", f"concat('C-', {customer}) AS customer_id", text
    )
    names = spark.range(0, customers, 1, 2).selectExpr("concat('C-', id) AS customer_id", "id AS name")
    joined = orders.join(names, "customer_id")  # slow
    rest = resting("50", "(id + id DIV 2000) % 25 = 0")
    joined.selectExpr("*", rest).write.format("noop").mode("overwrite").save()  # slow


@case("skew-window", conf=_PARTITIONS)
def one_key_of_a_window(work: Work) -> None:
    """A window's partition has most of the rows, and so has one task; a row takes 2 ms."""
    from pyspark.sql import Window
    from pyspark.sql.functions import row_number

    rows, sensors, hot = 8_000, 2_000, work.random.randrange(2_000)
    share = work.random.uniform(0.5, 0.7)
    total_ms = rows * 2
    spark = work.begin()
    hot_key = f"S-{hot}"
    work.defect("skew", _cost_ms(work, spark, hot_key, share, total_ms), "sensor_id", hot_key)
    sensor = f"IF(id < {int(rows * share)}, {hot}, id % {sensors})" if work.bad else f"id % {sensors}"
    raw = "repeat(sha2(cast(id AS string), 256), 8) AS raw"
    readings = spark.range(0, rows, 1, 2 * work.cores).selectExpr(
        "id", f"concat('S-', {sensor}) AS sensor_id", raw
    )
    numbered = readings.withColumn(
        "n", row_number().over(Window.partitionBy("sensor_id").orderBy("id"))
    )  # slow
    rest = resting("50", "(id + id DIV 2000) % 25 = 0")
    numbered.selectExpr("*", rest).write.format("noop").mode("overwrite").save()  # slow


@case("skew-of-two", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
def two_tasks_of_a_window(work: Work) -> None:
    """Of two tasks, one has most of the rows, in which no task can have three times as many as is fair."""
    from pyspark.sql import Window
    from pyspark.sql.functions import row_number

    rows, meters, share = 4_000, 400, work.random.uniform(0.6, 0.7)
    spark = work.begin()
    meter = f"IF(id < {int(rows * share)}, 7, id % {meters})" if work.bad else f"id % {meters}"
    text = "repeat(sha2(cast(id AS string), 256), 8) AS reading"
    readings = spark.range(0, rows, 1, work.cores).selectExpr(
        "id", f"concat('M-', {meter}) AS meter_id", text
    )
    # With even shares, each task of two has half of all rows.
    work.defect("skew", (share + (1 - share) / 2 - 0.5) * rows * 5, "meter_id")
    in_order = row_number().over(Window.partitionBy("meter_id").orderBy("id"))
    ranked = readings.withColumn("rank", in_order)  # slow
    ranked.selectExpr("*", resting("5") + " AS rested").write.format("noop").mode("overwrite").save()  # slow


@case("skew-pandas", conf=_PARTITIONS)
def one_group_in_pandas(work: Work) -> None:
    """One group of ``applyInPandas`` has most of the rows; a row takes 2 ms."""
    rows, shops, hot = 8_000, 160, work.random.randrange(160)
    share = work.random.uniform(0.5, 0.7)
    total_ms = rows * 2
    spark = work.begin(pandas=True)
    hot_key = f"R-{hot}"
    work.defect("skew", _cost_ms(work, spark, hot_key, share, total_ms), "shop_id", hot_key)
    shop = f"IF(id < {int(rows * share)}, {hot}, id % {shops})" if work.bad else f"id % {shops}"
    text = "repeat(sha2(cast(id AS string), 256), 8) AS receipt"
    sales = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", f"concat('R-', {shop}) AS shop_id", text)

    def fitted(group: DataFrame) -> DataFrame:
        time.sleep(len(group) * 0.002)
        return group[["id"]]

    models = sales.groupBy("shop_id").applyInPandas(fitted, "id long")  # slow
    models.write.format("noop").mode("overwrite").save()  # slow


@case("straggler-beside", conf={"spark.sql.adaptive.coalescePartitions.enabled": "false"})
def a_straggler_beside_another_job(work: Work) -> None:
    """While a task is late, a second job keeps the other cores busy: only what comes after costs time."""
    from threading import Thread

    late_ms, beside_ms = work.random.randrange(9_000, 11_000), work.random.randrange(3_000, 4_000)
    spark = work.begin(python=True)
    others = work.cores - 1
    usual = [300.0] * work.cores
    late = [300.0 + late_ms, *usual[1:]]
    work.defect("straggler", makespan_ms(late, work.cores) - beside_ms - 300)
    times = late if work.bad else usual

    def visit(index: int, rows: object) -> object:
        time.sleep(times[index] / 1_000)
        return rows

    def beside() -> None:
        time.sleep(0.2)
        busy = spark.range(0, others, 1, others).selectExpr(resting(str(beside_ms)))
        busy.write.format("noop").mode("overwrite").save()

    second = Thread(target=beside)
    second.start()
    rows = spark.sparkContext.parallelize(range(400), work.cores)
    rows.mapPartitionsWithIndex(visit).count()  # slow
    second.join()


def _cost_ms(work: Work, spark: SparkSession, hot_key: str, share: float, total_ms: float) -> float:
    """Return what a hot key costs, wherever its task is among the 16: all others evenly, and even tasks."""
    place = spark.sql(f"SELECT pmod(hash('{hot_key}'), 16) AS place").collect()[0]["place"]
    tasks_ms = [total_ms * (1 - share) / 16] * 16
    tasks_ms[place] += total_ms * share
    return makespan_ms(tasks_ms, work.cores) - total_ms / work.cores
