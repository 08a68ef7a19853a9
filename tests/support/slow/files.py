"""Files: too many and small, one that cannot be split, and partitions that nobody needs but all read."""

from __future__ import annotations

import datetime
import gzip
import time
from pathlib import Path

from tests.support.slow.case import Work, case, resting, write_parquet

_SPLIT = {"spark.sql.files.maxPartitionBytes": "64k", "spark.sql.files.openCostInBytes": "1k"}


@case("unsplittable-file", conf=_SPLIT)
def one_gzip(work: Work) -> None:
    """A CSV file is compressed by gzip, so one task reads it and does all that follows; a row takes 50 ms."""
    rows, row_ms = work.random.randrange(180, 240), 50
    name = f"orders-{work.random.randrange(100, 999)}.csv" + (".gz" if work.bad else "")
    text = "".join(f"{row},{work.random.randbytes(1_250).hex()}\n" for row in range(rows))
    path = work.folder / name
    path.write_bytes(gzip.compress(text.encode()) if work.bad else text.encode())
    total_ms = rows * row_ms
    work.defect("unsplittable-file", total_ms - total_ms / work.cores, name)
    spark = work.begin()
    orders = spark.read.schema("id long, text string").csv(str(path))  # slow
    orders.selectExpr("id", resting(str(row_ms))).write.format("noop").mode("overwrite").save()  # slow


@case("small-files-read")
def thousands_of_small_files(work: Work) -> None:
    """A table consists of more than a thousand files of a few rows."""
    files = work.random.randrange(1_200, 1_700)
    folder = work.folder / "sensor_readings"
    numbers = list(range(60_000))
    columns = {"id": numbers, "value": [float(number) for number in numbers]}
    write_parquet(folder, columns, files if work.bad else work.cores)
    work.defect("small-files-read", None, "sensor_readings")
    spark = work.begin()
    readings = spark.read.schema("id long, value double").parquet(str(folder))  # slow
    readings.selectExpr("sum(value)").write.format("noop").mode("overwrite").save()  # slow


@case("small-files-written")
def partitioned_by_too_much(work: Work) -> None:
    """A table is partitioned by a column of hundreds of values, and each task writes a file into each."""
    stores = work.random.randrange(90, 120)
    work.defect("small-files-written", None, "receipts", "store_code")
    spark = work.begin()
    receipts = spark.range(0, 40_000, 1, work.cores).selectExpr("id", f"id % {stores} AS store_code")
    if work.bad:
        receipts.write.partitionBy("store_code").parquet(str(work.folder / "receipts"))  # slow
    else:
        receipts.write.parquet(str(work.folder / "receipts"))


@case("full-scan-of-partitions")
def filtered_by_another_column(work: Work) -> None:
    """A table is partitioned by day, and a query for one day filters by the time of the rows."""
    days, wanted = 40, work.random.randrange(40)
    folder = work.folder / "measurements"
    for day in range(days):
        _write_days(folder, day, 120_000)
    work.defect("full-scan-of-partitions", None, "measurements", "measured_at")
    spark = work.begin()
    schema = "measured_at timestamp, value double, note binary, day int"
    measurements = spark.read.schema(schema).parquet(str(folder))
    date = (datetime.date(2026, 1, 1) + datetime.timedelta(wanted)).isoformat()
    # A text, so that the times within files do not help to skip parts of them, either.
    condition = f"date_format(measured_at, 'yyyy-MM-dd') = '{date}'" if work.bad else f"day = {wanted}"
    one_day = measurements.where(condition)  # slow
    one_day.selectExpr("sum(value)", "max(note)").write.format("noop").mode("overwrite").save()  # slow


@case("partitions-chosen-in-python", conf={"spark.driver.memory": "2g"})
def filtered_by_a_function(work: Work) -> None:
    """A function in Python says which days are asked for, so Spark reads all of them to find out."""
    days, wanted = 30, work.random.randrange(30)
    folder = work.folder / "measurements"
    for day in range(days):
        _write_days(folder, day, 40_000)
    work.defect("partitions-chosen-in-python", None, "measurements", "is_asked_for")
    spark = work.begin(pandas=True)

    def is_asked_for(day: int) -> bool:
        return day == wanted

    measurements = spark.read.schema("value double, day int").parquet(str(folder))
    asked_for = spark.udf.register("is_asked_for", is_asked_for, "boolean")
    one_day = measurements.where(asked_for("day") if work.bad else f"day = {wanted}")  # slow
    one_day.selectExpr("sum(value)").write.format("noop").mode("overwrite").save()  # slow


@case(
    "compressed-hard",
    conf={"spark.sql.parquet.compression.codec": "zstd"},
    bad={"spark.hadoop.parquet.compression.codec.zstd.level": "19"},
)
def an_archive_of_letters(work: Work) -> None:
    """Files are compressed by zstd at a level that takes many times as long as the usual one."""
    rows = work.random.randrange(700_000, 900_000)
    work.defect("compressed-hard", None, "parquet.compression.codec.zstd.level", costed=False)
    spark = work.begin()
    letter = "concat_ws(' ', transform(sequence(1, 9), n -> concat('word', hash(id, n) % 2000))) AS letter"
    letters = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", letter)
    letters.write.parquet(str(work.folder / "archive"))  # slow


@case("schema-inference", conf={"spark.driver.memory": "2g"})
def read_twice_to_find_the_types(work: Work) -> None:
    """Nobody says what columns a CSV or a JSON file has, so Spark reads all of it before it reads it."""
    form, rows = work.random.choice(["csv", "json"]), work.random.randrange(1_000_000, 1_400_000)
    path = work.folder / f"deliveries.{form}"
    with path.open("w") as file:
        if form == "csv":
            file.write("parcel,weight,note\n")
        for row in range(rows):
            weight, note = row * 7 % 1_009 / 8, f"left at door {row * 31 % 997} of house {row % 89}"
            file.write(
                f"{row},{weight},{note}\n"
                if form == "csv"
                else f'{{"parcel": {row}, "weight": {weight}, "note": "{note}"}}\n'
            )
    spark = work.begin()
    read = spark.read.option("header", form == "csv")
    if not work.bad:
        read = read.schema("parcel long, weight double, note string")
    begun = time.monotonic()
    deliveries = read.csv(str(path), inferSchema=work.bad) if form == "csv" else read.json(str(path))  # slow
    # What the twin takes longer for, because nothing has read the files before, is not a cost of the defect.
    work.defect("schema-inference", 1_000 * (time.monotonic() - begun), "deliveries")
    deliveries.groupBy("weight").count().write.format("noop").mode("overwrite").save()  # slow


@case("read-in-a-loop")
def a_read_for_each_day(work: Work) -> None:
    """A loop in the driver filters the same JSON files by one day after the other, instead of reading once."""
    days, rows = work.random.randrange(9, 13), 50_000
    folder = work.folder / "page_views"
    folder.mkdir()
    pad = work.random.randbytes(200).hex()
    for file in range(work.cores):
        lines = (f'{{"day": {row % days}, "page": "{pad}{row}"}}\n' for row in range(rows))
        (folder / f"part-{file}.json").write_text("".join(lines))
    work.defect("recomputed-not-cached", None, "page_views")
    spark = work.begin()
    views = spark.read.schema("day int, page string").json(str(folder))
    if work.bad:
        for day in range(days):
            views.where(f"day = {day}").selectExpr("max(page)").collect()  # slow
    else:
        views.groupBy("day").agg({"page": "max"}).collect()


@case("listed-again")
def listed_in_each_turn(work: Work) -> None:
    """A loop reads one day of a table in each turn, and lists all of its folders before; a schema is known."""
    days, shops, turns = work.random.randrange(20, 26), work.random.randrange(50, 70), 4
    folder = work.folder / "sales"
    for day in range(days):
        for shop in range(shops):
            write_parquet(folder / f"day={day}" / f"shop={shop}", {"amount": [day + shop]})
    spark = work.begin()
    read, again_s = spark.read.schema("amount long, day int, shop int"), 0.0
    sales = None
    for day in range(turns):
        begun = time.monotonic()
        if work.bad or sales is None:
            sales = read.parquet(str(folder))  # slow
        again_s += (time.monotonic() - begun) * bool(day)
        sales.where(f"day = {day}").agg({"amount": "sum"}).collect()
    work.defect("listed-again", 1_000 * again_s, "sales")


@case("upsert-by-union")
def a_table_written_again_each_night(work: Work) -> None:
    """A few rows of one day are replaced, and all days are written; the twin writes the partition of that day."""
    rows, new, days = work.random.randrange(900_000, 1_300_000), work.random.randrange(3_000, 6_000), 20
    work.defect("upsert-by-union", None, "accounts", "account", costed=False)
    spark = work.begin()
    made = ("id AS account", f"id % {days} AS day", "sha2(cast(id AS string), 256) AS owner")
    table = str(work.folder / "accounts-0")
    spark.range(0, rows, 1, work.cores).selectExpr(*made).write.partitionBy("day").parquet(table)
    for night in range(1, 4):
        changes = spark.range(0, new).selectExpr(
            f"id * {days} AS account", "0L AS day", f"'owner of night {night}' AS owner"
        )
        changes.write.parquet(str(work.folder / f"changes-{night}"))
        changes = spark.read.parquet(str(work.folder / f"changes-{night}"))
        old = spark.read.parquet(table) if work.bad else spark.read.parquet(table).where("day = 0")
        kept = old.join(changes.select("account"), "account", "left_anti").selectExpr(
            "account", "day", "owner"
        )
        table = str(work.folder / f"accounts-{night if work.bad else 0}")
        both = kept.selectExpr("account", "cast(day AS bigint) AS day", "owner").unionByName(changes)
        if work.bad:
            both.write.partitionBy("day").parquet(table)  # slow
        else:
            both.write.parquet(str(work.folder / f"day-0-of-{night}"))
            spark.read.parquet(str(work.folder / f"day-0-of-{night}")).drop("day").write.mode(
                "overwrite"
            ).parquet(f"{table}/day=0")


def _write_days(folder: Path, day: int, rows: int) -> None:
    """Write what was measured on one day, in no order."""
    import numpy

    chance = numpy.random.default_rng(day)
    midnight = numpy.datetime64("2026-01-01", "us") + numpy.timedelta64(day, "D")
    columns = {
        "measured_at": midnight + chance.integers(0, 86_400, rows).astype("timedelta64[s]"),
        "value": chance.random(rows),
        "note": chance.integers(0, 1 << 60, rows).astype("S"),
    }
    write_parquet(folder / f"day={day}", columns)
