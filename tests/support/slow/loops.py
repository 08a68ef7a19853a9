"""Loops in the driver that run the same query for each part of a table, or whose plans grow in each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@case("folder-after-folder", conf={"spark.sql.shuffle.partitions": "2"})
def stays_of_one_month_after_the_other(work: Work) -> None:
    """A loop reads one folder of a table, sums it up and writes that; the twin does so for all folders at once."""
    months, rows = work.random.randrange(50, 70), work.random.randrange(2_000, 6_000)
    numbers = list(range(rows))
    for month in range(months):
        columns = {"hotel": [number % 31 for number in numbers], "nights": numbers}
        write_parquet(work.folder / "stays" / f"month={month}", columns)
    work.defect("folder-after-folder", None, "stays")
    spark = work.begin()
    if work.bad:
        for month in range(months):
            stays = spark.read.schema("hotel long, nights long").parquet(
                str(work.folder / "stays" / f"month={month}")
            )
            sums = stays.groupBy("hotel").agg({"nights": "sum"}).withColumnRenamed("sum(nights)", "nights")
            sums.write.parquet(str(work.folder / "sums" / f"month={month}"))  # slow
    else:
        stays = spark.read.parquet(str(work.folder / "stays"))
        sums = stays.groupBy("month", "hotel").agg({"nights": "sum"})
        sums.withColumnRenamed("sum(nights)", "nights").repartition("month").write.partitionBy(
            "month"
        ).parquet(str(work.folder / "sums"))


@case("plan-of-all-passes", conf={"spark.sql.shuffle.partitions": "2"})
def reached_step_by_step(work: Work) -> None:
    """Each pass of a loop adds what is reached by one more step, and its plan has all passes before it."""
    passes, stations = work.random.randrange(8, 10), work.random.randrange(60, 90)
    lines = {"start": list(range(stations)), "next": [(number + 1) % stations for number in range(stations)]}
    write_parquet(work.folder / "lines", lines)
    work.defect("plan-of-all-passes", None, "lines")
    spark = work.begin()
    lines_of_city = spark.read.parquet(str(work.folder / "lines"))
    reached = lines_of_city.where("start = 0").selectExpr("next AS station")
    for _ in range(passes):
        following = reached.join(
            lines_of_city.hint("broadcast"), reached["station"] == lines_of_city["start"]
        )
        reached = reached.union(following.selectExpr("next AS station")).distinct()
        if not work.bad:
            reached = reached.localCheckpoint()
        reached.count()  # slow


@case("own-sink-read", conf={"spark.sql.files.openCostInBytes": "128m"})
def known_before_they_are_written(work: Work) -> None:
    """Each micro-batch looks up in all of its table what it has already; the twin does so in the day's part."""
    import numpy

    days, batches, rows = 12, work.random.randrange(5, 8), work.random.randrange(400_000, 500_000)
    table = work.folder / "parcels"
    for day in range(days):
        numbers = numpy.arange(day * rows, (day + 1) * rows)
        write_parquet(table / f"day={day}", {"parcel": numbers, "weight": numbers * 7919 % 10007})
    work.defect("own-sink-read", None, "parcels", "day")
    _write_scans(work, batches, days * rows)
    spark = work.begin()

    def store(batch: DataFrame, _: int) -> None:
        known = spark.read.schema("parcel long, weight long, day int").parquet(str(table))
        if not work.bad:
            known = known.where(f"day = {days - 1}")
        new = batch.join(known.hint("merge"), ["parcel", "weight"], "left_anti")
        new.write.mode("append").partitionBy("day").parquet(str(table))  # slow

    scans = spark.readStream.schema("parcel long").option("maxFilesPerTrigger", 1)
    of_day = scans.json(str(work.folder / "scans")).selectExpr(
        "parcel", "parcel % 9 AS weight", f"{days - 1} AS day"
    )
    query = of_day.writeStream.foreachBatch(store).queryName(work.case.name)
    query = query.option("checkpointLocation", str(work.folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def _write_scans(work: Work, batches: int, first: int) -> None:
    """Write a file of a few hundred parcels for each micro-batch."""
    folder = work.folder / "scans"
    folder.mkdir()
    for batch in range(batches):
        numbers = range(first + batch * 300, first + (batch + 1) * 300)
        (folder / f"{batch:03}.json").write_text("\n".join(f'{{"parcel": {number}}}' for number in numbers))
