"""Applications without a defect, in which there is a little of all that cases have too much of."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, resting

if TYPE_CHECKING:
    from pandas import DataFrame


@case("healthy-night", healthy=True)
def a_usual_night(work: Work) -> None:
    """Reads, joins, aggregates, numbers, caches, collects a little and writes."""
    from pyspark.sql import Window
    from pyspark.sql.functions import rank

    rows = 40_000 + work.random.randrange(20_000)
    spark = work.begin(python=True)
    amount = "id % 997 AS amount"
    made = spark.range(0, rows, 1, work.cores).selectExpr("id", "id % 300 AS customer_id", amount)
    made.write.parquet(str(work.folder / "orders"))
    orders = spark.read.parquet(str(work.folder / "orders"))
    customers = spark.range(0, 300, 1, 1).selectExpr("id AS customer_id", "id % 9 AS region")
    totals = orders.join(customers, "customer_id").groupBy("region", "customer_id").agg({"amount": "sum"})
    totals = totals.withColumnRenamed("sum(amount)", "total").cache()
    ranked = totals.withColumn("place", rank().over(Window.partitionBy("region").orderBy("total")))
    best = ranked.where("place <= 3").collect()
    checked = totals.selectExpr("*", resting("20")).where("total >= 0")
    checked.write.parquet(str(work.folder / "totals"))
    totals.unpersist()
    assert best


@case("healthy-python-groups", healthy=True)
def even_groups_in_pandas(work: Work) -> None:
    """Groups of the same size, each of which takes some time in pandas, in more tasks than cores."""
    groups, seconds = 96, work.random.uniform(0.15, 0.25)
    spark = work.begin(pandas=True)

    def fitted(group: DataFrame) -> DataFrame:
        time.sleep(seconds)
        return group

    rows = spark.range(0, 9_600, 1, work.cores).selectExpr("id", f"id % {groups} AS shop_id")
    rows = rows.repartitionByRange(24, "shop_id")
    fits = rows.groupBy("shop_id").applyInPandas(fitted, "id long, shop_id long")
    fits.write.format("noop").mode("overwrite").save()
