"""Streaming queries whose micro-batches do far more than their rows need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, resting, write_parquet
from tests.support.slow.streams import checkpointed, file_by_file, json_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@case("rewritten-in-batches")
def the_whole_table_for_each_batch(work: Work) -> None:
    """``foreachBatch`` reads a table, puts a few rows into it, and writes all of it again, each time."""
    batches, rows = 5, work.random.randrange(1_000, 4_000)
    table_rows = work.random.randrange(1_000_000, 1_500_000)
    upsert = work.random.choice([_replaced, _coalesced, _newest])
    table = work.folder / "customers"
    write_parquet(table / "v0", {"value": range(table_rows), "name": ["customer"] * table_rows}, files=4)
    json_files(work.folder / "changes", batches, rows)
    work.defect("rewritten-in-batches", None, "customers")
    spark = work.begin()

    def store(batch: DataFrame, number: int) -> None:
        if work.bad:
            old = spark.read.parquet(str(table / f"v{number}"))  # slow
            upsert(old, batch).write.parquet(str(table / f"v{number + 1}"))  # slow
        else:
            batch.write.parquet(str(work.folder / "appended" / f"batch={number}"))

    changes = file_by_file(spark, work.folder / "changes").selectExpr("value", "'changed' AS name")
    query = checkpointed(changes.writeStream.foreachBatch(store), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


def _replaced(old: DataFrame, batch: DataFrame) -> DataFrame:
    return old.join(batch, "value", "left_anti").unionByName(batch)


def _coalesced(old: DataFrame, batch: DataFrame) -> DataFrame:
    both = old.join(batch.withColumnRenamed("name", "new_name"), "value", "full_outer")
    return both.selectExpr("value", "coalesce(new_name, name) AS name")


def _newest(old: DataFrame, batch: DataFrame) -> DataFrame:
    both = old.selectExpr("*", "0 AS version").unionByName(batch.selectExpr("*", "1 AS version"))
    return (
        both.groupBy("value").agg({"name": "max", "version": "max"}).selectExpr("value", "`max(name)` name")
    )


@case("healthy-lookups-in-batches", healthy=True)
def a_lookup_for_each_batch(work: Work) -> None:
    """``foreachBatch`` looks its few rows up in a large table, and makes many rows of a few arrays."""
    batches, table_rows = 5, work.random.randrange(1_000_000, 1_500_000)
    table = work.folder / "customers"
    write_parquet(table, {"value": range(table_rows), "name": ["customer"] * table_rows}, files=4)
    json_files(work.folder / "orders", batches, 1_000)
    spark = work.begin()

    def store(batch: DataFrame, number: int) -> None:
        named = spark.read.parquet(str(table)).join(batch.hint("broadcast"), "value")
        named = named.selectExpr("value", "name", "explode(sequence(1, 200)) AS item")
        named.write.parquet(str(work.folder / "named" / f"batch={number}"))

    spread = f"value % 1000 * {table_rows // 1_000} AS value"
    orders = file_by_file(spark, work.folder / "orders").selectExpr(spread)
    query = checkpointed(orders.writeStream.foreachBatch(store), work)
    query.trigger(availableNow=True).start().awaitTermination()


@case("table-in-batches")
def rates_for_each_batch(work: Work) -> None:
    """``foreachBatch`` computes rates from a table each time; to check a row takes 10 ms. The twin keeps them."""
    batches, rows = work.random.randrange(5, 7), work.cores * work.random.randrange(60, 90)
    write_parquet(work.folder / "rates", {"code": range(rows), "rate": range(rows)}, files=work.cores)
    json_files(work.folder / "trades", batches, 200)
    work.defect("static-side", (batches - 1) * rows * 10 / work.cores, "rates")
    spark = work.begin()

    def rates() -> DataFrame:
        checked = spark.read.parquet(str(work.folder / "rates")).selectExpr(
            "code", "rate", f"{resting('10')} AS checked"
        )
        return checked.groupBy("code").agg({"rate": "max", "checked": "max"})

    kept = rates()
    if not work.bad:
        kept.cache().count()

    def store(batch: DataFrame, number: int) -> None:
        priced = batch.selectExpr("value % 50 AS code", "at").join(
            rates() if work.bad else kept, "code"
        )  # slow
        priced.write.parquet(str(work.folder / "priced" / f"batch={number}"))  # slow

    query = checkpointed(file_by_file(spark, work.folder / "trades").writeStream.foreachBatch(store), work)
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("small-batches")
def a_file_in_each_batch(work: Work) -> None:
    """A limit of one or two files makes dozens of micro-batches of what was there when the query began."""
    each, rows = work.random.randrange(1, 3), work.random.randrange(500, 3_000)
    batches = work.random.randrange(30, 50)
    json_files(work.folder / "clicks", batches * each, rows)
    work.defect("small-batches", None, "clicks")
    spark = work.begin()
    limit = each if work.bad else 10_000
    clicks = spark.readStream.schema("value long").option("maxFilesPerTrigger", limit)
    counted = clicks.json(str(work.folder / "clicks")).selectExpr("value % 50 AS page")
    if work.random.random() < 0.5:
        counted = counted.groupBy("page").count()
    query = checkpointed(counted.writeStream.outputMode("update").format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("static-side")
def sums_of_a_table_for_each_batch(work: Work) -> None:
    """A stream is joined with sums of a table, which each micro-batch computes; a row of it takes 10 ms."""
    batches, rows = 5, work.cores * work.random.randrange(120, 180)
    clients = {"client": [row % 50 for row in range(rows)], "amount": range(rows)}
    write_parquet(work.folder / "invoices", clients, files=2 * work.cores)
    json_files(work.folder / "calls", batches, 100)
    work.defect("static-side", (batches - 1) * rows * 10 / work.cores, "invoices", "amount")
    spark = work.begin()
    invoices = spark.read.parquet(str(work.folder / "invoices"))
    checked = invoices.selectExpr("client", "amount", f"{resting('10')} AS checked")
    sums = checked.groupBy("client").agg({"amount": "sum", "checked": "max"})  # slow
    if not work.bad:
        sums.cache().count()
    calls = file_by_file(spark, work.folder / "calls").selectExpr("value % 50 AS client", "at")
    query = checkpointed(calls.join(sums, "client").writeStream.format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("text-in-batches")
def lines_parsed_for_each_batch(work: Work) -> None:
    """A stream is joined with a table of JSON, which each micro-batch parses; the twin's is cached."""
    batches, rows = 6, work.random.randrange(700_000, 900_000)
    json_files(work.folder / "calls", batches, 100)
    work.defect("static-side", None, "clients", costed=False)
    spark = work.begin()
    made = spark.range(0, rows, 1, work.cores).selectExpr(
        "id AS client", "sha2(cast(id AS string), 512) AS note"
    )
    made.write.json(str(work.folder / "clients"))
    clients = spark.read.schema("client long, note string").json(str(work.folder / "clients"))
    if not work.bad:
        clients.cache().count()
    calls = file_by_file(spark, work.folder / "calls").selectExpr("value AS client", "at")
    query = checkpointed(calls.join(clients, "client").writeStream.format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("complete-mode", conf={"spark.sql.shuffle.partitions": "8"})
def the_whole_result_for_each_batch(work: Work) -> None:
    """Complete mode puts out all rows of a result, of which a few have changed; to send a row takes 4 ms."""
    batches, keys = 5, work.cores * work.random.randrange(250, 350)
    changed, row_ms = keys // work.random.randrange(15, 40), 4
    mode = "complete" if work.bad else "update"
    json_files(work.folder / "payments", 1, keys)
    for batch in range(1, batches + 1):
        json_files(work.folder / f"of-{batch}", 1, changed, batch)
        (work.folder / f"of-{batch}" / "000.json").rename(work.folder / "payments" / f"{batch:03}.json")
    work.defect("complete-mode", None, work.case.name)
    spark = work.begin()
    sums = file_by_file(spark, work.folder / "payments").groupBy("value").count()
    sent = sums.selectExpr("*", resting(str(row_ms)))  # slow
    query = checkpointed(sent.writeStream.outputMode(mode).format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("folders-in-batches")
def a_folder_for_each_meter(work: Work) -> None:
    """A query writes a table that is partitioned by the number of a meter, of which there are hundreds."""
    meters = work.random.randrange(700, 1_000)
    json_files(work.folder / "readings", 4, 3_000)
    work.defect("folders-in-batches", None, work.case.name)
    spark = work.begin()
    readings = file_by_file(spark, work.folder / "readings").selectExpr(f"value % {meters} AS meter", "at")
    writer = readings.writeStream.format("parquet").option("path", str(work.folder / "written"))
    if work.bad:
        writer = writer.partitionBy("meter")  # slow
    checkpointed(writer, work).trigger(availableNow=True).start().awaitTermination()  # slow


@case("many-state-parts", bad={"spark.sql.shuffle.partitions": "200"})
def a_state_in_two_hundred_parts(work: Work) -> None:
    """A query keeps its state in as many parts as Spark has by default; its sink gets files, or nothing."""
    batches, keys = 4, work.random.randrange(300, 900)
    json_files(work.folder / "payments", batches, work.random.randrange(2_000, 5_000))
    work.defect("many-state-parts", None, "spark.sql.shuffle.partitions")
    spark = work.begin()
    payments = file_by_file(spark, work.folder / "payments").withWatermark("at", "1 second")
    sums = payments.selectExpr("at", f"value % {keys} AS shop").groupBy("shop", "at").count()
    if work.random.random() < 0.5:
        writer = sums.writeStream.format("parquet").option("path", str(work.folder / "written"))
    else:
        writer = sums.writeStream.outputMode("update").format("noop")
    checkpointed(writer, work).trigger(availableNow=True).start().awaitTermination()  # slow
