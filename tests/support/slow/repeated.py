"""Work that is done again although its result was there: to sort, to filter, in a loop; and loading functions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, resting, write_parquet

if TYPE_CHECKING:
    from pandas import DataFrame

_CALLED = frozenset({"python"})
"""Their functions in Python are needed, and take most of the time in the twins, too."""


@case("sorted-again")
def documents_by_rating(work: Work) -> None:
    """PySpark counts and samples an RDD before it sorts it, and computes it for each."""
    rows, row_ms = work.cores * work.random.randrange(400, 550), 10
    work.defect("sorted-again", 2 * rows * row_ms / work.cores)
    spark = work.begin(python=True)

    def rated(document: int) -> tuple[int, int]:
        time.sleep(row_ms / 1_000)
        return document * 7919 % 10007, document

    ratings = spark.sparkContext.parallelize(range(rows), 4 * work.cores).map(rated)
    if not work.bad:
        ratings = ratings.cache()
    ratings.sortByKey().saveAsTextFile(str(work.folder / "ranked"))  # slow


@case("called-for-filter", needed=_CALLED)
def urgent_tickets(work: Work) -> None:
    """Spark moves a filter on the result of a UDF below it, so that the UDF is called for both."""
    from pyspark.sql.functions import udf

    rows, kept = work.cores * work.random.randrange(500, 700), work.random.randrange(5, 10)
    row_ms = 20
    work.defect("called-for-filter", rows * row_ms * kept / 10 / work.cores, "urgency")
    spark = work.begin(pandas=True)

    @udf("int")  # type: ignore[untyped-decorator]
    def urgency(ticket: int) -> int:
        time.sleep(row_ms / 1_000)
        return ticket % 10

    called = urgency if work.bad else urgency.asNondeterministic()
    tickets = spark.range(0, rows, 1, 4 * work.cores)
    urgent = tickets.withColumn("urgency", called("id")).where(f"urgency < {kept}")  # slow
    urgent.write.parquet(str(work.folder / "urgent"))  # slow


@case("called-in-parts", needed=_CALLED)
def reviews_by_language(work: Work) -> None:
    """A report counts all rows that a UDF makes, and then those of each language: it is called for each twice."""
    import numpy
    from pyspark.sql.functions import udf

    rows, row_ms = work.cores * work.random.randrange(500, 700), 10
    languages = work.random.randrange(2, 5)
    folder = work.folder / "reviews"
    text = numpy.arange(rows) * 7919
    write_parquet(folder, {"language": numpy.arange(rows) % languages, "text": text}, files=2 * work.cores)
    work.defect("called-in-parts", rows * row_ms / work.cores, "tone")
    spark = work.begin(pandas=True)

    @udf("int")  # type: ignore[untyped-decorator]
    def tone(text: int) -> int:
        time.sleep(row_ms / 1_000)
        return text % 10

    reviews = spark.read.parquet(str(folder)).withColumn("tone", tone("text"))
    if not work.bad:
        reviews = reviews.cache()
    reviews.groupBy("tone").count().collect()  # slow
    for language in range(languages):
        of_one = reviews.where(f"language = {language}")
        of_one.write.parquet(str(work.folder / f"of-{language}"))  # slow


@case("called-to-sort", needed=_CALLED)
def offers_by_price(work: Work) -> None:
    """To sort rows, Spark samples them first; the function that makes them runs for both."""
    rows, row_ms = work.cores * work.random.randrange(400, 550), 15
    work.defect("called-to-sort", rows * row_ms / work.cores, "priced", "price")
    spark = work.begin(pandas=True)

    def priced(batches: Iterator[DataFrame]) -> Iterator[DataFrame]:
        for batch in batches:
            time.sleep(len(batch) * row_ms / 1_000)
            yield batch.assign(price=batch["id"] * 7919 % 10007)

    offers = spark.range(0, rows, 1, 4 * work.cores).mapInPandas(priced, "id long, price long")
    if not work.bad:
        offers = offers.cache()
    offers.orderBy("price").write.parquet(str(work.folder / "offers"))  # slow


@case("computed-to-sort")
def parcels_by_weight(work: Work) -> None:
    """The same with an expression of Spark's own that takes long."""
    rows, row_ms = work.cores * work.random.randrange(400, 550), 15
    work.defect("computed-to-sort", rows * row_ms / work.cores, "parcel_weight")
    spark = work.begin()
    weight = f"IF({resting(str(row_ms))} IS NULL, 0, id * 7919 % 10007) AS parcel_weight"
    parcels = spark.range(0, rows, 1, 4 * work.cores).selectExpr("id", weight)
    if not work.bad:
        parcels = parcels.cache()
    parcels.orderBy("parcel_weight").write.parquet(str(work.folder / "parcels"))  # slow


@case("pivot-values")
def visits_of_channels(work: Work) -> None:
    """``pivot()`` runs a query of its own to find the values, and computes the rows for it."""
    from pyspark.sql.functions import count

    rows, row_ms = work.cores * work.random.randrange(400, 550), 15
    work.defect("pivot-values", rows * row_ms / work.cores, "channel")
    spark = work.begin()
    channel = f"IF({resting(str(row_ms))} IS NULL, 0, id % 5) AS channel"
    visits = spark.range(0, rows, 1, 4 * work.cores).selectExpr("id % 50 AS shop", channel)
    values = None if work.bad else list(range(5))
    by_channel = visits.groupBy("shop").pivot("channel", values).agg(count("channel"))  # slow
    by_channel.write.parquet(str(work.folder / "visits"))


@case("text-parsed-again")
def measures_of_wide_lines(work: Work) -> None:
    """Several queries read a few columns of the same wide lines; the twin keeps what they need of them."""
    rows, width, queries = work.random.randrange(100_000, 130_000), 100, work.random.randrange(4, 7)
    lines = work.folder / "measures"
    lines.mkdir()
    for file in range(work.cores):
        texts = (",".join(str(row * 31 + n) for n in range(width)) for row in range(rows // work.cores))
        (lines / f"{file}.csv").write_text("\n".join(texts))
    work.defect("text-parsed-again", None, "measures")
    spark = work.begin()
    names = [f"measure_{number}" for number in range(width)]
    measures = spark.read.schema(", ".join(f"{name} bigint" for name in names)).csv(str(lines))
    if not work.bad:
        measures = measures.select(names[:queries]).cache()
    for name in names[:queries]:
        measures.agg({name: "sum"}).collect()  # slow


@case("read-in-branches")
def invoices_of_zones(work: Work) -> None:
    """A loop unites what it sums of each zone, and each branch parses the same lines; the twin groups by zone."""
    rows, zones = work.random.randrange(300_000, 400_000), work.random.randrange(8, 14)
    lines = work.folder / "meters"
    lines.mkdir()
    for file in range(work.cores):
        texts = (f"{row},{row % zones},{row % 97},{'x' * 60}" for row in range(rows // work.cores))
        (lines / f"{file}.csv").write_text("\n".join(texts))
    work.defect("read-in-branches", None, "meters")
    spark = work.begin()
    meters = spark.read.schema("meter bigint, zone int, used int, note string").csv(str(lines))
    sums = meters.groupBy("zone").agg({"used": "sum"})
    if work.bad:
        each = [meters.where(f"zone = {zone}").groupBy("zone").agg({"used": "sum"}) for zone in range(zones)]
        sums = reduce(type(sums).unionAll, each)
    sums.write.csv(str(work.folder / "invoices"))  # slow


@case("checkpoint-not-kept", needed=_CALLED)
def matches_with_a_checkpoint(work: Work) -> None:
    """An action computes an RDD, and its checkpoint, which is written then, computes it once more."""
    rows, row_ms = work.cores * work.random.randrange(400, 550), 10
    work.defect("checkpoint-not-kept", rows * row_ms / work.cores)
    spark = work.begin(python=True)
    spark.sparkContext.setCheckpointDir(str(work.folder / "checkpoints"))

    def matched(ticket: int) -> tuple[int, int]:
        time.sleep(row_ms / 1_000)
        return ticket % 97, ticket

    matches = spark.sparkContext.parallelize(range(rows), 4 * work.cores).map(matched)
    if not work.bad:
        matches = matches.cache()
    matches.checkpoint()
    matches.count()  # slow
    matches.reduceByKey(max).collect()


@case("computed-in-a-loop")
def labels_of_neighbors(work: Work) -> None:
    """Each turn of a loop begins with the rows of the one before, which are computed again from the start."""
    turns, row_ms = work.random.randrange(4, 6), work.random.randrange(20, 30)
    rows = work.cores * 100
    passes = turns * (turns + 1) // 2 - turns
    work.defect("computed-in-a-loop", passes * rows * row_ms / work.cores, "label")
    spark = work.begin(pandas=True)

    def moved(batches: Iterator[DataFrame]) -> Iterator[DataFrame]:
        for batch in batches:
            time.sleep(len(batch) * row_ms / 1_000)
            yield batch.assign(label=batch["label"] + 1)

    labels = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", "id AS label")
    for _ in range(turns):
        labels = labels.mapInPandas(moved, "id long, label long")
        if not work.bad:
            labels = labels.localCheckpoint()
        labels.agg({"label": "max"}).collect()  # slow


@case("cached-anew", needed=_CALLED)
def segments_of_customers(work: Work) -> None:
    """A function that is defined again for each report makes another plan, whose cache Spark does not find."""
    from pyspark.sql.functions import udf

    reports, rows, row_ms = work.random.randrange(3, 5), work.cores * work.random.randrange(300, 400), 20
    work.defect("cached-anew", (reports - 1) * rows * row_ms / work.cores, "segment")
    spark = work.begin(pandas=True)

    def segmented(report: int) -> DataFrame:
        @udf("int")  # type: ignore[untyped-decorator]
        def segment(customer: int) -> int:
            time.sleep(row_ms / 1_000)
            return (customer + (report if work.bad else 0)) % 7

        return spark.range(0, rows, 1, 4 * work.cores).withColumn("segment", segment("id")).cache()

    kept = segmented(0)
    for report in range(reports):
        of_report = segmented(report) if work.bad else kept
        of_report.groupBy("segment").count().collect()  # slow


@case("large-closure")
def names_of_products(work: Work) -> None:
    """A UDF refers to a large dictionary, which each task loads with it; a broadcast one is loaded once."""
    from pyspark.sql.functions import udf

    entries, tasks = work.random.randrange(500_000, 700_000), 20 * work.cores
    names = {number: f"product {number}" for number in range(entries)}
    work.defect("large-closure", None, "product")
    spark = work.begin(pandas=True)
    if work.bad:
        product = udf("string")(lambda number: names[number % entries])
    else:
        shared = spark.sparkContext.broadcast(names)
        product = udf("string")(lambda number: shared.value[number % entries])
    sold = spark.range(0, 100 * tasks, 1, tasks).select(product("id").alias("product"))  # slow
    sold.write.parquet(str(work.folder / "sold"))  # slow


@case("other-columns-again")
def other_columns_for_each_action(work: Work) -> None:
    """Several actions use a joined table that is computed for each; each needs other columns of it."""
    columns = work.random.sample(["price", "rebate", "weight", "day", "channel"], work.random.randrange(3, 6))
    rows = work.cores * work.random.randrange(60, 90)
    values = {name: [row % 89 for row in range(rows)] for name in ("product", *columns)}
    write_parquet(work.folder / "orders", values, files=2 * work.cores)
    write_parquet(work.folder / "products", {"product": range(89), "name": ["product"] * 89})
    work.defect("recomputed-not-cached", (len(columns) - 1) * rows * 40 / work.cores, "orders", "products")
    spark = work.begin()
    orders = spark.read.parquet(str(work.folder / "orders")).where(f"{resting('40')} IS NULL")
    sold = orders.join(spark.read.parquet(str(work.folder / "products")), "product")
    if not work.bad:
        sold = sold.cache()
    for column in columns:
        sold.groupBy(column).agg({"name": "max"}).write.format("noop").mode("overwrite").save()  # slow
