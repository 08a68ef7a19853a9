"""What a counter costs in a UDF: the same job with it and without, in turn, and one increment by itself."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import timeit
from typing import Any

from bench.table import machine, write


def job(spark: Any, rows: int, counts: bool) -> float:
    """Return how long a UDF over some rows takes, in s."""
    from pyspark.sql.functions import udf

    from spark_events import task

    counter = task.metrics.counter("rows", way="bench")

    def plain(number: int) -> int:
        return number * 7919 % 104729

    def counted(number: int) -> int:
        counter.inc()
        return number * 7919 % 104729

    frame = spark.range(0, rows, 1, 4).select(udf(counted if counts else plain, "long")("id"))
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


class _Attribute:
    count = 0


def increment_ns() -> tuple[float, float]:
    """Return what ``inc()`` takes in a task, and ``+= 1`` on an attribute, in ns."""
    from spark_events import task
    from spark_events.task.driver_link import VARIABLE, DriverLink
    from spark_events.task.report import Report, accumulators

    class Context:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: 0

    link = DriverLink(1)
    os.environ[VARIABLE] = link.text()
    accumulators()[1] = Report(link, Context())
    counter, plain = task.metrics.counter("rows"), _Attribute()

    def attribute() -> None:
        plain.count += 1

    number = 1_000_000
    took = [
        min(timeit.repeat(call, number=number, repeat=5)) / number * 1e9 for call in (counter.inc, attribute)
    ]
    del task._registry()[1], os.environ[task.VARIABLE]
    return took[0], took[1]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    from pyspark.sql import SparkSession

    import spark_events

    os.environ["PYSPARK_PYTHON"] = sys.executable
    inc_ns, attribute_ns = increment_ns()
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = (
            builder.config("spark.events.reporter.file.factory.class", "file_log")
            .config("spark.events.reporter.file.path", folder)
            .getOrCreate()
        )
        attachment = spark_events.attach(spark)
        job(spark, options.rows // 10, True)
        pairs = [
            (job(spark, options.rows, False), job(spark, options.rows, True)) for _ in range(options.rounds)
        ]
        spark.stop()
        attachment.wait_closed()
    ratios = sorted(counted / plain for plain, counted in pairs)
    more = [100 * (ratio - 1) for ratio in ratios]
    plain_s = statistics.median(pair[0] for pair in pairs)
    more_percent = f"{statistics.median(more):+.1f} % ({more[0]:+.1f} to {more[-1]:+.1f})"
    write(
        "task_metrics",
        [
            "| | |",
            "| --- | --- |",
            f"| a UDF over {options.rows:,} rows | {plain_s:.1f} s |",
            f"| the same with a counter | {more_percent} |",
            f"| `inc()` in a task | {inc_ns:.0f} ns |",
            f"| `+= 1` on an attribute, in a function | {attribute_ns:.0f} ns |",
            "",
            f"`python -m bench.task_metrics`, {options.rounds} pairs in turn; {machine()}",
        ],
    )


if __name__ == "__main__":
    main()
