"""Aggregations for which Spark makes several rows of each, or compares rows of which none repeats."""

from __future__ import annotations

from tests.support.slow.case import Work, case


@case("several-distincts")
def visitors_of_several_kinds(work: Work) -> None:
    """The distinct values of several columns are counted at once; the twin estimates how many there are."""
    rows, columns = work.random.randrange(250_000, 350_000), work.random.randrange(4, 7)
    work.defect("expanded-rows", None, "visitor_0", costed=False)
    spark = work.begin()
    names = [f"visitor_{number}" for number in range(columns)]
    hashes = [f"hash(id, {number}) AS {name}" for number, name in enumerate(names)]
    visits = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id % 40 AS shop", *hashes)
    count = "count(DISTINCT {0})" if work.bad else "approx_count_distinct({0})"
    counted = visits.groupBy("shop").agg(*map(_sql, (count.format(name) for name in names)))
    counted.write.format("noop").mode("overwrite").save()  # slow


@case("cube-of-many-rows")
def sales_by_all_sets(work: Work) -> None:
    """A CUBE of many rows; the twin makes it of the sums of all its columns, of which there are few."""
    rows, columns = work.random.randrange(1_500_000, 2_000_000), work.random.randrange(4, 6)
    work.defect("expanded-rows", None, "feature_0", costed=False)
    spark = work.begin()
    names = [f"feature_{number}" for number in range(columns)]
    kinds = [f"hash(id, {number}) % 3 AS {name}" for number, name in enumerate(names)]
    sales = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id AS sold", *kinds)
    if not work.bad:
        sales = sales.groupBy(*names).agg(_sql("sum(sold) AS sold"))
    sums = sales.cube(*names).agg(_sql("sum(sold) AS sold"))
    sums.write.format("noop").mode("overwrite").save()  # slow


@case("sequence-exploded")
def buyers_of_the_last_days(work: Work) -> None:
    """Each purchase counts on the days after it: a row for each of them; the twin uses a window with a frame."""
    rows, days = work.random.randrange(200_000, 260_000), work.random.randrange(40, 60)
    work.defect("sequence-exploded", None, "day", costed=False)
    spark = work.begin()
    purchases = spark.range(0, rows, 1, 2 * work.cores).selectExpr(
        "id % 300 AS shop", "cast(hash(id) % 180 AS int) AS day", "hash(id, 1) % 5000 AS buyer"
    )
    if work.bad:
        on_days = purchases.selectExpr("shop", "buyer", f"explode(sequence(day, day + {days})) AS day")
        counted = on_days.groupBy("shop", "day").agg(_sql("count(DISTINCT buyer) AS buyers"))
    else:
        frame = f"OVER (PARTITION BY shop ORDER BY day RANGE BETWEEN {days} PRECEDING AND CURRENT ROW)"
        by_day = purchases.groupBy("shop", "day").agg(_sql("collect_set(buyer) AS buyers"))
        sets = by_day.selectExpr("shop", "day", f"collect_list(buyers) {frame} AS sets")
        counted = sets.selectExpr("shop", "day", "size(array_distinct(flatten(sets))) AS buyers")
    counted.write.format("noop").mode("overwrite").save()  # slow


@case("nested-again")
def the_dearest_item_of_each_order(work: Work) -> None:
    """The items of orders are made rows, and then put together by order; the twin works on the arrays."""
    orders, items = work.random.randrange(300_000, 400_000), work.random.randrange(10, 14)
    work.defect("nested-again", None, "items", costed=False)
    spark = work.begin()
    made = (
        f"transform(sequence(1, {items}), n -> named_struct('sku', hash(id, n), 'price', hash(n, id) % 900))"
    )
    orders_of_day = spark.range(0, orders, 1, 2 * work.cores).selectExpr("id AS order_id", f"{made} AS items")
    orders_of_day.write.parquet(str(work.folder / "orders"))
    orders_of_day = spark.read.parquet(str(work.folder / "orders"))
    if work.bad:
        rows = orders_of_day.selectExpr("order_id", "explode(items) AS item")
        sums = rows.groupBy("order_id").agg(
            _sql("sum(item.price) AS paid"), _sql("max(item.price) AS dearest")
        )
    else:
        sums = orders_of_day.selectExpr(
            "order_id",
            "aggregate(items, 0L, (sum, item) -> sum + item.price) AS paid",
            "array_max(items.price) AS dearest",
        )
    sums.write.format("noop").mode("overwrite").save()  # slow


@case("nested-with-a-join")
def points_of_baskets(work: Work) -> None:
    """A row is made of each element and gets what its shop gives for it, and all are put together again."""
    baskets, items = work.random.randrange(1_200_000, 1_500_000), work.random.randrange(10, 14)
    work.defect("nested-with-a-join", None, "goods", costed=False)
    spark = work.begin()
    made = f"transform(sequence(1, {items}), n -> pmod(hash(id, n), 500)) AS goods"
    columns = ("id AS basket", "id % 300 AS shop", made)
    spark.range(0, baskets, 1, 2 * work.cores).selectExpr(*columns).write.parquet(
        str(work.folder / "baskets")
    )
    shops = spark.range(0, 300, 1, 1).selectExpr("id AS shop", "id % 7 AS factor").hint("broadcast")
    of_day = spark.read.parquet(str(work.folder / "baskets"))
    if work.bad:
        rows = of_day.selectExpr("basket", "shop", "explode(goods) AS points").join(shops, "shop")
        points = rows.groupBy("basket").agg(_sql("sum(points * factor) AS points"))
    else:
        sums = of_day.selectExpr("basket", "shop", "aggregate(goods, 0, (sum, good) -> sum + good) AS points")
        points = sums.join(shops, "shop").selectExpr("basket", "points * factor AS points")
    points.write.format("noop").mode("overwrite").save()  # slow


@case("paired-elements")
def spent_within_a_day(work: Work) -> None:
    """What a buyer spent in the day before each purchase, of arrays of purchases; the twin has a window."""
    rows, buyers = work.random.randrange(1_800_000, 2_200_000), work.random.randrange(4_000, 5_000)
    work.defect("paired-elements", None, "history", costed=False)
    spark = work.begin()
    purchases = spark.range(0, rows, 1, 2 * work.cores).selectExpr(
        f"pmod(hash(id), {buyers}) AS buyer",
        "pmod(hash(id, 1), 2592000) AS at",
        "pmod(hash(id, 2), 900) AS price",
    )
    if work.bad:
        histories = purchases.groupBy("buyer").agg(_sql("collect_list(struct(at, price)) AS history"))
        within = "filter(history, y -> y.at <= x.at AND y.at > x.at - 86400)"
        spent = histories.selectExpr(
            "buyer", f"transform(history, x -> aggregate({within}, 0L, (sum, y) -> sum + y.price)) AS spent"
        )
    else:
        frame = "OVER (PARTITION BY buyer ORDER BY at RANGE BETWEEN 86399 PRECEDING AND CURRENT ROW)"
        spent = purchases.selectExpr("buyer", f"sum(price) {frame} AS spent")
    spent.write.format("noop").mode("overwrite").save()  # slow


@case("repartitioned-for-nothing")
def purchases_divided_twice(work: Work) -> None:
    """Purchases are spread evenly, and then summed up by shop, for which they are moved again."""
    rows, parts = work.random.randrange(6_000_000, 8_000_000), 2 * work.cores
    work.defect("needless-shuffle", None, "shop", costed=False)
    spark = work.begin()
    purchases = spark.range(0, rows, 1, parts).selectExpr(
        "hash(id) % 400 AS shop",
        "hash(id, 1) AS amount",
        "concat('buyer ', hash(id, 2), ' of ', id) AS buyer",
    )
    if work.bad:
        purchases = purchases.repartition(*work.random.choice([(parts,), (parts, "buyer")]))
    sums = purchases.groupBy("shop").agg(_sql("sum(amount)"), _sql("max(length(buyer))"))
    sums.write.format("noop").mode("overwrite").save()  # slow


@case("sorted-for-nothing")
def purchases_sorted_before_a_window(work: Work) -> None:
    """Purchases are sorted by their time, and then numbered within each shop, which sorts them again."""
    rows = work.random.randrange(3_000_000, 4_000_000)
    work.defect("needless-shuffle", None, "shop", costed=False)
    spark = work.begin()
    purchases = spark.range(0, rows, 1, 2 * work.cores).selectExpr(
        "hash(id) % 400 AS shop",
        "hash(id, 1) AS paid_at",
        "concat('buyer ', hash(id, 2), ' of ', id) AS buyer",
    )
    if work.bad:
        purchases = purchases.orderBy("paid_at")
    numbered = purchases.selectExpr("*", "row_number() OVER (PARTITION BY shop ORDER BY paid_at) AS number")
    numbered.write.format("noop").mode("overwrite").save()  # slow


@case("no-duplicates")
def visits_that_are_distinct(work: Work) -> None:
    """UNION looks for rows that are in both of two tables, of which no row can be; the twin does not look."""
    rows = work.random.randrange(1_000_000, 1_500_000)
    work.defect("no-duplicates", None, "visitor", costed=False)
    spark = work.begin()
    columns = ("id", "hash(id, 1) AS visitor", "hash(id, 2) AS page", "cast(hash(id, 3) AS string) AS place")
    halves = [spark.range(at, at + rows, 1, work.cores).selectExpr(*columns) for at in (0, rows)]
    visits = halves[0].unionAll(halves[1])
    if work.bad:
        visits = visits.distinct()
    visits.write.format("noop").mode("overwrite").save()  # slow


@case("late-filter")
def visits_of_one_day(work: Work) -> None:
    """Duplicates are looked for in all days, and then one day is taken; the twin takes it before."""
    rows, days = work.random.randrange(2_500_000, 3_500_000), work.random.randrange(60, 120)
    work.defect("late-filter", None, "day")
    spark = work.begin()
    visits = spark.range(0, rows, 1, work.cores).selectExpr(
        f"id % {rows - rows // 10} AS visit", f"id % {days} AS day", "sha2(cast(id AS string), 256) AS page"
    )
    if work.bad:
        visits = visits.dropDuplicates(["visit"]).where("day = 3")
    else:
        visits = visits.where("day = 3").dropDuplicates(["visit"])
    visits.write.format("noop").mode("overwrite").save()  # slow


def _sql(text: str) -> object:
    from pyspark.sql.functions import expr

    return expr(text)
