"""Windows whose frames Spark goes through again for each row."""

from __future__ import annotations

from tests.support.slow.case import Work, case


@case("frames-to-the-end")
def what_is_still_to_be_paid(work: Work) -> None:
    """Each row of a window sums all that follow; the twin orders it the other way round."""
    rows, accounts = work.random.randrange(100_000, 120_000), work.random.randrange(10, 14)
    work.defect("frames-to-the-end", None, "paid_at")
    spark = work.begin()
    payments = spark.range(0, rows, 1, work.cores).selectExpr(f"id % {accounts} AS account", "id AS paid_at")
    order, frame = (
        ("paid_at", "CURRENT ROW AND UNBOUNDED FOLLOWING")
        if work.bad
        else ("paid_at DESC", "UNBOUNDED PRECEDING AND CURRENT ROW")
    )
    window = f"OVER (PARTITION BY account ORDER BY {order} ROWS BETWEEN {frame})"
    left = payments.selectExpr("account", "paid_at", f"sum(paid_at) {window} AS to_pay")  # slow
    left.write.format("noop").mode("overwrite").save()  # slow


@case("frames-of-ranges")
def readings_of_the_last_hours(work: Work) -> None:
    """The average of all readings of some hours before each; the twin subtracts running totals."""
    rows, sensors = work.random.randrange(70_000, 90_000), work.random.randrange(8, 12)
    seconds = work.random.randrange(3_000, 5_000)
    work.defect("frames-of-ranges", None, "read_at")
    spark = work.begin()
    readings = spark.range(0, rows, 1, work.cores).selectExpr(
        f"id % {sensors} AS sensor", f"id div {sensors} AS read_at", "hash(id) % 100 AS value"
    )
    by_time = "PARTITION BY sensor ORDER BY read_at"
    if work.bad:
        frame = f"RANGE BETWEEN {seconds} PRECEDING AND CURRENT ROW"
        sums = readings.selectExpr("*", f"sum(value) OVER ({by_time} {frame}) AS lately")  # slow
    else:
        totals = readings.selectExpr("*", f"sum(value) OVER ({by_time} ROWS UNBOUNDED PRECEDING) AS total")
        before = f"lag(total, {seconds + 1}, 0) OVER ({by_time})"
        sums = totals.selectExpr("*", f"total - {before} AS lately")
    sums.write.format("noop").mode("overwrite").save()  # slow


@case("pages-so-far")
def pages_before_each(work: Work) -> None:
    """Each page view gets all pages before it; the twin collects a visitor's pages once."""
    rows, visitors = work.random.randrange(30_000, 40_000), work.random.randrange(8, 12)
    work.defect("pages-so-far", None, "seen_at")
    spark = work.begin()
    views = spark.range(0, rows, 1, work.cores).selectExpr(
        f"id % {visitors} AS visitor", "id AS seen_at", "concat('page ', hash(id) % 1000) AS page"
    )
    by_time = "PARTITION BY visitor ORDER BY seen_at"
    if work.bad:
        paths = views.selectExpr(
            "visitor", "seen_at", f"size(array_distinct(collect_list(page) OVER ({by_time}))) AS pages"
        )
    else:
        first = "row_number() OVER (PARTITION BY visitor, page ORDER BY seen_at) = 1 AS is_new"
        paths = views.selectExpr("*", first).selectExpr(
            "visitor", "seen_at", f"count_if(is_new) OVER ({by_time}) AS pages"
        )
    paths.write.format("noop").mode("overwrite").save()  # slow
