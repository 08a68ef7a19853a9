"""Joins and windows that make more rows, or go through fewer tasks, than they need to."""

from __future__ import annotations

from tests.support.slow.case import Work, case, resting, write_parquet


@case("exploding-join")
def few_keys_on_both_sides(work: Work) -> None:
    """Both sides have the same few keys hundreds of times; each pair becomes a row, which takes time."""
    keys, times = work.random.randrange(4, 6), work.random.randrange(190, 230)
    pairs = keys * times * times
    total_ms = pairs // 250 * 50
    work.defect("exploding-join", total_ms / work.cores, "campaign_id")
    spark = work.begin()
    rows = keys * times
    clicks = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id AS click", f"id % {keys} AS campaign_id")
    views = spark.range(0, rows, 1, 2).selectExpr("id AS view", f"id % {keys} AS campaign_id")
    on = "campaign_id"
    if not work.bad:
        clicks, views, on = clicks.withColumnRenamed("click", "view"), views, "view"
    both = clicks.join(views, on)  # slow
    number = f"({'click' if work.bad else 'view'} DIV {keys}) * {times} + view DIV {keys}"
    rest = resting("50", f"({number}) % 250 = 0")
    both.selectExpr(rest, number).write.format("noop").mode("overwrite").save()  # slow


@case("duplicates-dropped")
def all_versions_of_a_customer(work: Work) -> None:
    """Each order is joined with all versions of its customer, of which one is kept afterwards."""
    orders, versions = 2_000 * work.random.randrange(14, 19), work.random.randrange(4, 9)
    pairs, every = orders * versions, 400
    work.defect("duplicates-dropped", (pairs - orders) // every * 50 / work.cores, "customer_id", "order_id")
    spark = work.begin()
    sold = spark.range(0, orders, 1, 2 * work.cores).selectExpr("id AS order_id", "id % 2000 AS customer_id")
    history = spark.range(0, 2_000 * versions, 1, 2).selectExpr(
        "id % 2000 AS customer_id", "id DIV 2000 AS version", "uuid() AS email"
    )
    if not work.bad:
        history = history.where(f"version = {versions - 1}")
    number = f"order_id * {versions} + version"
    both = sold.join(history, "customer_id").selectExpr(
        "*", resting("50", f"({number}) % {every} = 0") + " AS rested"
    )
    kept = both.dropDuplicates(["order_id"])
    kept.selectExpr("order_id", "email", "rested").write.format("noop").mode("overwrite").save()  # slow


@case("cartesian", conf={"spark.sql.autoBroadcastJoinThreshold": "-1"})
def join_without_condition(work: Work) -> None:
    """Each row is paired with each other one, and nearly all pairs are thrown away afterwards."""
    rows = work.random.randrange(500, 650)
    work.defect("cartesian", rows * rows // 400 * 50 / work.cores, "buyer", "seller")
    spark = work.begin()
    buyers = spark.range(0, rows, 1, work.cores).withColumnRenamed("id", "buyer")
    sellers = spark.range(0, rows, 1, work.cores).withColumnRenamed("id", "seller")
    pairs = (
        buyers.crossJoin(sellers) if work.bad else buyers.join(sellers, buyers.buyer == sellers.seller)
    )  # slow
    scored = pairs.selectExpr("*", resting("50", f"(buyer * {rows} + seller) % 400 = 0") + " AS score")
    scored.where("buyer = seller AND score IS NOT NULL").write.format("noop").mode("overwrite").save()  # slow


@case("rows-dropped-by-the-next-join", conf={"spark.sql.autoBroadcastJoinThreshold": "-1"})
def readings_of_unknown_devices(work: Work) -> None:
    """Many rows of two tables have the id of no device, which the join with the devices drops then."""
    unknown, known = work.random.randrange(1_500, 1_900), 20_000
    work.defect("rows-dropped-by-the-next-join", None, "device_id")
    spark = work.begin()
    some = f"IF(id < {unknown}, 0, id) AS device_id"
    beats = spark.range(0, known, 1, 2 * work.cores).selectExpr(some, "id AS beat")
    sessions = spark.range(0, known, 1, 2).selectExpr(some, "id AS session")
    devices = spark.range(unknown, known).selectExpr("id AS device_id", "'meter' AS kind")
    if not work.bad:
        beats, sessions = beats.where("device_id <> 0"), sessions.where("device_id <> 0")
    both = beats.join(sessions, "device_id")  # slow
    checked = both.selectExpr(
        "device_id", "beat", "session", "sha2(concat(beat, '-', session), 512) AS digest"
    )
    checked.join(devices, "device_id").write.format("noop").mode("overwrite").save()  # slow


@case("window-without-partition-by")
def numbered_all_over(work: Work) -> None:
    """A window over all rows sends them to one task, and what is done with them is done there."""
    from pyspark.sql import Window
    from pyspark.sql.functions import row_number

    rows, row_ms = work.random.randrange(200, 260), 50
    total_ms = rows * row_ms
    work.defect("window-without-partition-by", total_ms - total_ms / work.cores, "paid_at")
    spark = work.begin()
    payments = spark.range(0, rows, 1, work.cores).selectExpr("id AS paid_at", "id % 400 AS account_id")
    window = Window.orderBy("paid_at") if work.bad else Window.partitionBy("account_id").orderBy("paid_at")
    numbered = payments.withColumn("number", row_number().over(window))  # slow
    numbered.selectExpr("*", resting(str(row_ms))).write.format("noop").mode("overwrite").save()  # slow


@case("nested-loop-join")
def join_by_range(work: Work) -> None:
    """A join by a range compares each row with each other one; a second key would leave few to compare."""
    rows, ranges = 40_000, work.random.randrange(7_000, 9_000)
    work.defect("nested-loop-join", None, "address", "first_address", "last_address")
    spark = work.begin()
    visits = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id * 97 % 1000000 AS address", "id AS visit")
    width = 1_000_000 // ranges
    nets = spark.range(0, ranges, 1, 2).selectExpr(
        f"id * {width} AS first_address", f"id * {width} + {width - 1} AS last_address", "id AS net"
    )
    within = "address BETWEEN first_address AND last_address"
    if not work.bad:
        within += f" AND net = address DIV {width}"
    visits.createOrReplaceTempView("visits")
    nets.createOrReplaceTempView("nets")
    found = spark.sql(f"SELECT visit, net FROM visits JOIN nets ON {within}")  # slow
    found.write.format("noop").mode("overwrite").save()  # slow


@case("not-in")
def payments_of_nobody_blocked(work: Work) -> None:
    """NOT IN of two columns that may be NULL is compared pair by pair; NOT EXISTS is not."""
    rows, blocked = 30_000, work.random.randrange(4_000, 6_000)
    work.defect("not-in", None, "account", "channel")
    spark = work.begin()
    payments = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", *_may_be_null(3))
    payments.createOrReplaceTempView("payments")
    spark.range(0, blocked, 1, 2).selectExpr(*_may_be_null(11)).createOrReplaceTempView("blocked")
    unless = "(account, channel) NOT IN (SELECT account, channel FROM blocked)"
    if not work.bad:
        same = "b.account = payments.account AND b.channel = payments.channel"
        unless = f"NOT EXISTS (SELECT 1 FROM blocked b WHERE {same})"
    found = spark.sql(f"SELECT channel, count(*) FROM payments WHERE {unless} GROUP BY channel")  # slow
    found.write.format("noop").mode("overwrite").save()  # slow


def _may_be_null(step: int) -> tuple[str, str]:
    return f"IF(id < 0, NULL, id * {step}) AS account", "IF(id < 0, NULL, id % 7) AS channel"


@case("pairs-tried")
def join_by_range_within_a_region(work: Work) -> None:
    """A join by one of a few regions, and by a range, compares each row with all ranges of its region."""
    regions, ranges = work.random.randrange(4, 9), work.random.randrange(3_000, 3_600)
    way = work.random.choice(["BROADCAST", "MERGE", "SHUFFLE_HASH"])
    work.defect("pairs-tried", None, "region", "address", "first_address", "last_address")
    spark = work.begin()
    visits = spark.range(0, 120_000, 1, 2 * work.cores).selectExpr(
        f"id % {regions} AS region", "id * 97 % 1000000 AS address", "id AS visit"
    )
    width = 1_000_000 // ranges
    nets = spark.range(0, regions * ranges, 1, 2).selectExpr(
        f"id % {regions} AS region",
        f"id DIV {regions} AS net",
        f"id DIV {regions} * {width} AS first_address",
        f"id DIV {regions} * {width} + {width - 1} AS last_address",
    )
    within = "visits.region = nets.region AND address BETWEEN first_address AND last_address"
    if not work.bad:
        within += f" AND net = address DIV {width}"
    visits.createOrReplaceTempView("visits")
    nets.createOrReplaceTempView("nets")
    found = spark.sql(f"SELECT /*+ {way}(nets) */ visit, net FROM visits JOIN nets ON {within}")  # slow
    found.write.format("noop").mode("overwrite").save()  # slow


@case("broadcast-too-large", conf={"spark.driver.memory": "3g"})
def broadcast_of_everything(work: Work) -> None:
    """A hint makes the driver collect a table of millions of rows and send it to all executors."""
    rows = work.random.randrange(1_500_000, 1_900_000)
    work.defect("broadcast-too-large", None, "subscriber_id")
    spark = work.begin()
    name = "sha2(cast(id AS string), 256) AS subscriber_name"
    subscribers = spark.range(0, rows, 1, work.cores).selectExpr("id AS subscriber_id", name)
    calls = spark.range(0, 40_000, 1, work.cores).selectExpr("id * 31 AS subscriber_id", "id AS call")
    if work.bad:
        both = calls.join(subscribers.hint("broadcast"), "subscriber_id")  # slow
    else:
        both = subscribers.join(calls.hint("broadcast"), "subscriber_id")
    both.write.format("noop").mode("overwrite").save()  # slow


@case("broadcast-missing", conf={"spark.sql.adaptive.enabled": "false"})
def shuffled_for_a_few_rows(work: Work) -> None:
    """A large table is shuffled and sorted to be joined with the few rows that a filter leaves."""
    rows, countries, region = work.random.randrange(1_500_000, 2_000_000), 5_000, work.random.randrange(250)
    regions = [work.random.randrange(250) for _ in range(countries)]
    table = work.folder / "countries"
    write_parquet(table, {"country_code": list(range(countries)), "region": regions})
    work.defect("broadcast-missing", None, "country_code", "countries")
    spark = work.begin()
    if work.bad:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    note = "sha2(cast(id AS string), 256) AS note"
    parcels = spark.range(0, rows, 1, work.cores).selectExpr(f"id % {countries} AS country_code", note)
    few = spark.read.schema("country_code long, region long").parquet(str(table)).where(f"region = {region}")
    both = parcels.join(few if work.bad else few.hint("broadcast"), "country_code")  # slow
    both.write.format("noop").mode("overwrite").save()  # slow


@case("joined-with-itself")
def days_before(work: Work) -> None:
    """The values of the days before are joined to each day, one join for each; the twin has a window."""
    series, days, lags = work.random.randrange(3_000, 4_000), 150, work.random.randrange(9, 12)
    work.defect("joined-with-itself", None, "sales", "day", costed=False)
    spark = work.begin()
    made = spark.range(0, series * days, 1, 2 * work.cores)
    made.selectExpr(
        f"id % {series} AS article", f"cast(id / {series} AS int) AS day", "hash(id) AS sold"
    ).write.parquet(str(work.folder / "sales"))
    sales = spark.read.parquet(str(work.folder / "sales"))
    if work.bad:
        with_lags = sales
        for lag in range(1, lags + 1):
            before = sales.selectExpr("article", f"day + {lag} AS day", f"sold AS before_{lag}")
            with_lags = with_lags.join(before, ["article", "day"], "left")
    else:
        over = "OVER (PARTITION BY article ORDER BY day)"
        columns = [f"lag(sold, {lag}) {over} AS before_{lag}" for lag in range(1, lags + 1)]
        with_lags = sales.selectExpr("*", *columns)
    with_lags.write.format("noop").mode("overwrite").save()  # slow
