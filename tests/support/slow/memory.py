"""Caches, and memory of which there is too little or too much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from tests.support.slow.case import Work, case, resting

_LITTLE = {"spark.driver.memory": "512m", "spark.memory.fraction": "0.2"}


@case("recomputed-not-cached")
def the_same_again(work: Work) -> None:
    """Several actions use a result that is computed for each of them anew, instead of once."""
    actions, rows = work.random.randrange(4, 6), work.cores * work.random.randrange(40, 52)
    once_ms = rows * 50 / work.cores
    work.defect("recomputed-not-cached", (actions - 1) * once_ms, "risk_score")
    spark = work.begin()
    score = f"IF({resting('50')} IS NULL, 0, id % 97) AS risk_score"
    scored = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", score)
    if not work.bad:
        scored = scored.cache()
    for action in range(actions):
        scored.where(f"risk_score % 7 <> {action}").agg({"risk_score": "sum"}).collect()  # slow


@case("cache-evicted", bad=_LITTLE)
def larger_than_the_memory(work: Work) -> None:
    """A cached RDD does not fit into the memory, so what was evicted is computed again for each action."""
    from pyspark import StorageLevel

    partitions, actions = 2 * work.cores, 3
    part_ms, part_bytes = work.random.randrange(1_000, 1_400), 12_000_000
    spark = work.begin(python=True)

    def picture(index: int) -> Iterator[bytes]:
        time.sleep(part_ms / 1_000)
        chance = Random(index)  # what can be compressed would fit, for PySpark sets spark.rdd.compress
        for _ in range(12):
            yield chance.randbytes(part_bytes // 12)

    pictures = spark.sparkContext.parallelize(range(partitions), partitions).flatMap(picture)
    pictures.setName("pictures").persist(StorageLevel.MEMORY_ONLY)  # slow
    for _ in range(actions):
        pictures.map(len).sum()  # slow
    work.defect("cache-evicted", None, "pictures")


@case("cached-table-evicted", bad=_LITTLE)
def a_table_larger_than_the_memory(work: Work) -> None:
    """The same with a DataFrame, of which Spark counts how many rows are computed."""
    from pyspark import StorageLevel

    rows = 2 * work.cores * work.random.randrange(10, 14)
    work.defect("cache-evicted", None, "scan_text")
    spark = work.begin()
    # In each row half a megabyte that cannot be compressed.
    text = "array_join(transform(sequence(1, 14000), n -> uuid()), '') AS scan_text"
    scans = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id", resting("80") + " AS rested", text)
    scans.persist(StorageLevel.MEMORY_ONLY)  # slow
    for _ in range(3):
        scans.selectExpr("max(length(scan_text))").collect()  # slow


@case("cache-never-read")
def cached_and_forgotten(work: Work) -> None:
    """A result is cached, and nothing ever reads it from there."""
    rows = work.random.randrange(400_000, 600_000)
    work.defect("cache-never-read", None, "session_token", costed=False)
    spark = work.begin()
    sessions = spark.range(0, rows, 1, work.cores).selectExpr(
        "id", "sha2(cast(id AS string), 256) AS session_token"
    )
    if work.bad:
        sessions.cache()  # slow
    sessions.selectExpr("max(session_token)").write.format("noop").mode("overwrite").save()  # slow
    rest = spark.range(0, 40 * work.cores, 1, 2 * work.cores).selectExpr("id", resting("50"))
    rest.write.format("noop").mode("overwrite").save()


@case("spill", bad=_LITTLE, twin={"spark.driver.memory": "2g"})
def sorted_in_little_memory(work: Work) -> None:
    """A sort does not fit into the memory, and is done on disk."""
    rows = work.random.randrange(2_500_000, 3_000_000)
    work.defect("spill", None, "visitor_hash")
    spark = work.begin()
    visits = spark.range(0, rows, 1, work.cores).selectExpr(
        "sha2(cast(id AS string), 256) AS visitor_hash", "id"
    )
    in_order = visits.repartition(work.cores, "visitor_hash").sortWithinPartitions("visitor_hash")  # slow
    in_order.write.format("noop").mode("overwrite").save()  # slow


@case(
    "gc", conf={"spark.driver.memory": "1g"}, bad={"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xmn2m"}
)
def a_young_generation_that_is_too_small(work: Work) -> None:
    """An option of the JVM leaves next to nothing for new objects, so that it collects garbage all the time."""
    rows = work.random.randrange(14_000, 18_000)
    work.defect("gc", None, "device_log")
    spark = work.begin()
    logs = "array_join(transform(sequence(1, 1000), n -> uuid()), ' ') AS device_log"
    devices = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id % 97 AS device", logs)
    devices.selectExpr("max(device_log)").write.format("noop").mode("overwrite").save()  # slow
