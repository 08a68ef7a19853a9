"""Stages whose tasks are uneven, too few, too many, or fail."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from tests.support.slow.case import Work, case, makespan_ms, resting

COUNTED = {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
"""Cases that are about the number of tasks say it themselves."""


@case("skew")
def hot_customer(work: Work) -> None:
    """One key has most of the rows; each row takes a ms."""
    rows, partitions, pad = 16_000, 2 * work.cores, "x" * work.random.randrange(150, 300)
    hot, share = work.random.randrange(partitions), work.random.uniform(0.5, 0.75)
    even = rows // partitions
    others = int(rows * (1 - share)) // (partitions - 1)
    bad = [others] * partitions
    bad[hot] = rows - others * (partitions - 1)
    work.defect(
        "skew",
        makespan_ms(bad, work.cores) - makespan_ms([even] * partitions, work.cores),
        f"customer-{hot}",
        "customer_id",
    )
    counts = bad if work.bad else [even] * partitions
    spark = work.begin(python=True)

    def scored(groups: Iterable[tuple[str, Iterable[str]]]) -> Iterator[int]:
        for _, orders in groups:
            number = sum(1 for _ in orders)
            time.sleep(number / 1_000)
            yield number

    def orders_of(customer: int) -> Iterator[tuple[str, str]]:
        return (
            (f"customer-{customer}", f"{order} {hash((customer, order))} {pad}")
            for order in range(counts[customer])
        )

    orders = spark.sparkContext.parallelize(range(partitions), partitions).flatMap(orders_of)
    by_customer = orders.groupByKey(partitions, lambda customer_id: int(customer_id[9:]))  # slow
    by_customer.mapPartitions(scored).sum()  # slow


@case("straggler")
def one_waits(work: Work) -> None:
    """One task of many waits for something, with no more rows than others."""
    count, usual_ms = 4 * work.cores, work.random.randrange(400, 800)
    slow, more_ms = work.random.randrange(count), work.random.randrange(7_000, 10_000)
    usual = [usual_ms] * count
    bad = [ms + more_ms * (index == slow) for index, ms in enumerate(usual)]
    work.defect("straggler", makespan_ms(bad, work.cores) - makespan_ms(usual, work.cores))
    times = bad if work.bad else usual
    spark = work.begin(python=True)

    def visit(index: int, shops: Iterator[int]) -> Iterator[int]:
        time.sleep(times[index] / 1_000)
        return shops

    spark.sparkContext.parallelize(range(100 * count), count).mapPartitionsWithIndex(visit).count()  # slow


@case("explode-skew")
def one_long_array(work: Work) -> None:
    """One row of many has an array with nearly all elements, and each element takes a ms."""
    partitions, elements = 2 * work.cores, 18_000
    hot, share = work.random.randrange(partitions), work.random.uniform(0.5, 0.75)
    even = elements // partitions
    others = int(elements * (1 - share)) // (partitions - 1)
    most = elements - others * (partitions - 1)
    bad = [most if index == hot else others for index in range(partitions)]
    work.defect(
        "explode-skew",
        makespan_ms(bad, work.cores) - makespan_ms([even] * partitions, work.cores),
        "order_lines",
    )
    length = f"IF(id = {hot}, {most}, {others})" if work.bad else str(even)
    spark = work.begin()
    baskets = spark.range(0, partitions, 1, partitions).selectExpr(
        "id", f"sequence(1, {length}) AS order_lines"
    )
    lines = baskets.selectExpr("id", "explode(order_lines) AS line")  # slow
    lines.selectExpr("id", resting("50", "line % 50 = 0")).write.format("noop").mode(
        "overwrite"
    ).save()  # slow


@case("one-task")
def coalesced_to_one(work: Work) -> None:
    """All rows go through one task, because somebody wanted one file."""
    rows, row_ms = work.random.randrange(180, 240), 50
    total_ms = rows * row_ms
    work.defect("one-task", total_ms - total_ms / work.cores)
    spark = work.begin()
    orders = spark.range(0, rows, 1, 2 * work.cores)
    if work.bad:
        orders = orders.coalesce(1)  # slow
    orders.selectExpr("id", resting(str(row_ms))).write.format("noop").mode("overwrite").save()  # slow


@case("half-of-the-cores", conf=COUNTED)
def two_of_four(work: Work) -> None:
    """There are tasks for half of the cores."""
    half = work.cores // 2
    total_ms = work.cores * work.random.randrange(5_500, 8_000)
    work.defect("half-of-the-cores", total_ms / half - total_ms / work.cores)
    tasks = half if work.bad else 2 * work.cores
    spark = work.begin(python=True)

    def scored(rows: Iterator[int]) -> Iterator[int]:
        time.sleep(total_ms / tasks / 1_000)
        return rows

    spark.sparkContext.parallelize(range(8_000), tasks).mapPartitions(scored).count()  # slow


@case("too-many-tasks", conf=COUNTED)
def a_task_for_each_row(work: Work) -> None:
    """Thousands of tasks that do nothing to speak of."""
    tasks = work.random.randrange(2_500, 3_500)
    work.defect("too-many-tasks")
    spark = work.begin()
    rows = spark.range(0, 50_000, 1, tasks if work.bad else work.cores)  # slow
    rows.selectExpr("sum(id)", "max(id)").write.format("noop").mode("overwrite").save()  # slow


@case("tiny-partitions", conf=COUNTED)
def two_rows_each(work: Work) -> None:
    """A repartition into more than a thousand partitions of a few rows."""
    partitions = work.random.randrange(1_300, 1_800)
    work.defect("tiny-partitions")
    spark = work.begin()
    rows = spark.range(0, 3 * partitions, 1, work.cores)
    spread = rows.repartition(partitions if work.bad else work.cores)  # slow
    spread.selectExpr("id * 2 AS twice").write.format("noop").mode("overwrite").save()  # slow


@case("shuffle-partitions", conf=COUNTED)
def far_too_many_shuffle_partitions(work: Work) -> None:
    """spark.sql.shuffle.partitions is for a thousand times the data, in a plan with two shuffles."""
    partitions = work.random.randrange(1_050, 1_250)
    work.defect("shuffle-partitions", None, "spark.sql.shuffle.partitions")
    spark = work.begin()
    spark.conf.set("spark.sql.shuffle.partitions", partitions if work.bad else work.cores)
    orders = spark.range(0, 20_000, 1, work.cores).selectExpr("id", "id % 700 AS customer_id")
    totals = orders.groupBy("customer_id").count()  # slow
    ranked = totals.groupBy("count").count()  # slow
    ranked.write.format("noop").mode("overwrite").save()  # slow


@case("tiny-tasks", conf=COUNTED)
def too_many_tasks_in_each_of_many_stages(work: Work) -> None:
    """Each of many small queries has some hundred shuffle partitions: no stage has so many that it stands out."""
    partitions, days = work.random.randrange(150, 300), work.random.randrange(8, 14)
    work.defect("shuffle-partitions", None, "spark.sql.shuffle.partitions")
    spark = work.begin()
    spark.conf.set("spark.sql.shuffle.partitions", partitions if work.bad else work.cores)
    for day in range(days):
        orders = spark.range(0, 20_000, 1, work.cores).selectExpr(
            "id", f"id * {day + 7} % 700 AS customer_id"
        )
        totals = orders.groupBy("customer_id").count()  # slow
        ranked = totals.groupBy("count").count()  # slow
        ranked.write.format("noop").mode("overwrite").save()  # slow


@case("cores-held", bad={"spark.task.cpus": "2"})
def tasks_that_hold_two_cores(work: Work) -> None:
    """Each task is given two cores, as for another application's models; a row takes a ms."""
    rows = work.random.randrange(24_000, 32_000)
    work.defect("cores-held", rows / work.cores, "spark.task.cpus")
    spark = work.begin()
    prices = spark.range(0, rows, 1, 4 * work.cores).selectExpr("id", resting("1"))
    prices.write.format("noop").mode("overwrite").save()  # slow


@case("one-shuffle-partition", conf={"spark.sql.shuffle.partitions": "1"})
def one_task_after_the_shuffle(work: Work) -> None:
    """spark.sql.shuffle.partitions is 1, as for tests, so one task does the rest; a group takes 50 ms."""
    groups = work.random.randrange(180, 240)
    total_ms = groups * 50
    work.defect("one-task", total_ms - total_ms / work.cores, "spark.sql.shuffle.partitions")
    spark = work.begin()
    if not work.bad:
        spark.conf.set("spark.sql.shuffle.partitions", 8 * work.cores)
    orders = spark.range(0, 40_000, 1, work.cores).selectExpr("id", f"id % {groups} AS customer_id")
    totals = orders.groupBy("customer_id").count()  # slow
    totals.selectExpr("*", resting("50")).write.format("noop").mode("overwrite").save()  # slow


@case("retries", master="local[{cores},4]")
def first_attempts_fail(work: Work) -> None:
    """As many tasks as there are cores fail once or twice, after some seconds each."""
    usual_ms, fail_ms = work.random.randrange(500, 900), work.random.randrange(4_000, 5_500)
    failures = work.random.randrange(1, 3)
    work.defect("retries", failures * fail_ms, "inventory.example")
    times, bad = 4 * work.cores, work.bad
    failing = work.cores
    spark = work.begin(python=True)

    def ask(index: int, rows: Iterator[int]) -> Iterator[int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = context.attemptNumber() if context else 0
        if bad and index < failing and attempt < failures:
            time.sleep(fail_ms / 1_000)
            raise ConnectionError("inventory.example:443 refused the connection")  # slow
        time.sleep(usual_ms / 1_000)
        return rows

    spark.sparkContext.parallelize(range(160), times).mapPartitionsWithIndex(ask).count()  # slow
