"""Streaming queries that keep state, over files; the argument is a folder."""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.streaming.state import GroupStateTimeout

try:
    from pyspark.sql.streaming import StatefulProcessor
except ImportError:  # before PySpark 4
    StatefulProcessor = object

folder = sys.argv[1]
spark = SparkSession.builder.appName("streams").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")


def at(name: str) -> str:
    return f"{folder}/data/{name}"


spark.range(6).selectExpr(
    "id", "id * 2 AS amount", "timestamp_seconds(id) AS time", "'k' AS kind"
).write.parquet(at("orders"))
spark.range(6).selectExpr("id AS order", "timestamp_seconds(id) AS paid").write.parquet(at("payments"))
spark.range(1).selectExpr("'k' AS kind", "'a kind' AS name").write.parquet(at("kinds"))


def stream(name: str) -> DataFrame:
    return spark.readStream.schema(spark.read.parquet(at(name)).schema).parquet(at(name))


def run(name: str, frame: DataFrame, mode: str = "append") -> None:
    writer = (
        frame.writeStream.queryName(name)
        .outputMode(mode)
        .option("checkpointLocation", at(f"checkpoints/{name}"))
    )
    if mode == "append":
        writer = writer.format("parquet").option("path", at(name))
    else:
        writer = writer.foreachBatch(lambda batch, number: batch.write.mode("append").json(at(name)))
    writer.trigger(availableNow=True).start().awaitTermination()


def sums(key: Any, batches: Iterator[Any], state: Any) -> Iterator[Any]:
    for batch in batches:
        yield batch[["kind"]].assign(total=int(batch["amount"].sum())).head(1)


orders = stream("orders").withWatermark("time", "1 second")
payments = stream("payments").withWatermark("paid", "1 second")
run(
    "windows",
    orders.groupBy(functions.window("time", "2 seconds"), "kind").agg(functions.sum("amount").alias("total")),
)
run(
    "joined",
    orders.join(
        payments, functions.expr("id = order AND paid BETWEEN time AND time + INTERVAL 1 SECOND")
    ).select("id", functions.expr("amount + 1").alias("more"), "paid"),
)
run(
    "sessions",
    orders.groupBy(functions.session_window("time", "2 seconds"), "kind").agg(
        functions.max("amount").alias("most")
    ),
)
run(
    "unpaid",
    orders.join(
        payments,
        functions.expr("id = order AND paid BETWEEN time AND time + INTERVAL 1 SECOND"),
        "leftOuter",
    ).select("id", functions.expr("coalesce(paid, time)").alias("since")),
)
run(
    "named",
    orders.join(spark.read.parquet(at("kinds")), "kind").select(
        "id", functions.concat("name", functions.col("amount").cast("string")).alias("label")
    ),
)
run("distinct", orders.dropDuplicatesWithinWatermark(["id"]).select("id", "amount"))
if spark.version >= "4":  # PySpark 3.5's own code for it fails with this pandas
    run(
        "stateful",
        orders.groupBy("kind").applyInPandasWithState(
            sums, "kind string, total long", "n long", "update", GroupStateTimeout.NoTimeout
        ),
        "update",
    )

if spark.version >= "4.1":

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.count = handle.getValueState("n", "n long")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[Row]:  # noqa: N802
            yield Row(kind=key[0], n=sum(1 for _ in rows))

        def close(self) -> None:
            pass

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    run(
        "processed",
        orders.select("kind", "amount")
        .groupBy("kind")
        .transformWithState(Counting(), "kind string, n long", "append", "none"),
    )
spark.stop()
