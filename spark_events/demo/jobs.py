"""The jobs of the demo: a batch job, a skewed join, and a streaming query, of which a task fails once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from spark_events import task

QUERY = "orders_per_customer"
_FIRST_ORDER, _POISONED_ORDER = 4_540, 4_711
_RUNS_TO = 7
_DOWN_S = 6.5
_WITHOUT_ADDRESS = 7
_ORDERS, _ONE_IN = 3_000_000, 20


class PoisonedOrderError(ValueError):
    """The error that the demo's query fails with, once."""


def run_batch_job(spark: Any) -> None:
    """Count rows over a shuffle."""
    frame = spark.range(0, 200_000, 1, 4).selectExpr("id % 10 AS customer")
    frame.groupBy("customer").count().write.format("noop").mode("overwrite").save()


def run_skewed_join(spark: Any) -> None:
    """Join orders with customers, of whom one has nearly all the orders, with Spark's own remedies off."""
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "8")
    customers = session.range(0, 1_000, 1, 2).withColumnRenamed("id", "customer")
    orders = session.range(0, _ORDERS, 1, 4).selectExpr(
        "id", f"CASE WHEN id % {_ONE_IN} = 0 THEN id % 1000 ELSE 7 END AS customer"
    )
    receipts = orders.join(customers, "customer").selectExpr("sha2(cast(id AS string), 512) AS receipt")
    spark.sparkContext.setJobDescription("join orders with customers")
    receipts.write.format("noop").mode("overwrite").save()
    spark.sparkContext.setJobDescription(None)


def run_streaming_query(spark: Any, checkpoint: Path) -> None:
    """Run the query until it fails, leave it down, restart it from its checkpoint, and stop it."""
    from pyspark.errors import StreamingQueryException

    query = _start(spark, checkpoint, poisoned=True)
    try:
        query.awaitTermination()
    except StreamingQueryException:
        time.sleep(_DOWN_S)  # the person at 3 a.m. needs a moment, too
    query = _start(spark, checkpoint, poisoned=False)
    while query.isActive and (query.lastProgress or {}).get("batchId", -1) < _RUNS_TO:
        time.sleep(0.1)
    query.stop()


def _start(spark: Any, checkpoint: Path, poisoned: bool) -> Any:
    from pyspark.sql.functions import udf

    bad_orders = task.metrics.counter("bad_orders", reason="no_address")

    def customer_of(order: int) -> int:
        if poisoned and order == _POISONED_ORDER:
            raise PoisonedOrderError(f"order {order} has no customer")
        customer = order % 10
        if customer == _WITHOUT_ADDRESS:
            bad_orders.inc()
        return customer

    customer = udf(customer_of, "long", useArrow=False)

    def sink(frame: Any, batch: int) -> None:
        frame.collect()

    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    orders = rows.selectExpr(f"value + {_FIRST_ORDER} AS order")
    counts = orders.select(customer("order").alias("customer")).groupBy("customer").count()
    return (
        counts.writeStream.queryName(QUERY)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="1 second")
        .foreachBatch(sink)
        .start()
    )
