"""What reports from inside tasks cost: a UDF's rows, a task, the start of a worker, and the driver."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from typing import Any

from bench.table import machine, write

_TASKS = 2_000


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
    from spark_events.task.report import TaskReport, accumulators

    class Context:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: 0

    link = DriverLink(1)
    os.environ[VARIABLE] = link.text()
    accumulators()[1] = TaskReport(link, Context())
    counter, plain = task.metrics.counter("rows"), _Attribute()

    def attribute() -> None:
        plain.count += 1

    number = 1_000_000
    took = [
        min(timeit.repeat(call, number=number, repeat=5)) / number * 1e9 for call in (counter.inc, attribute)
    ]
    del accumulators()[1], os.environ[VARIABLE]
    return took[0], took[1]


def tasks_s(spark: Any, tasks: int, counts: bool) -> float:
    """Return how long so many tasks that do nothing take, each in a worker that is used again, in s."""
    from spark_events import task

    def plain(rows: Any) -> Any:
        return rows

    def counted(rows: Any) -> Any:
        task.metrics.counter("tasks").inc()
        task.metrics.histogram("rows").update(1)
        return rows

    numbers = spark.sparkContext.parallelize(range(tasks), tasks)
    began = time.perf_counter()
    numbers.mapPartitions(counted if counts else plain).count()
    return time.perf_counter() - began


def import_ms() -> float:
    """Return what the package adds to the start of a Python that has PySpark's worker, in ms."""
    code = (
        "import time, pyspark.worker; began = time.perf_counter(); from spark_events import task; "
        "task.metrics.counter('c').inc(); print(1000 * (time.perf_counter() - began))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(9)]
    return statistics.median(float(run.stdout) for run in runs)


def driver_us() -> float:
    """Return what the driver's thread needs for the report of a task with two metrics and an event, in µs."""
    import time

    from tests.support import spark_records as r
    from tests.support.spark_records import Feed

    feed, number = Feed()(r.application_start()), 20_000
    event = {"name": "E", "body": "b", "severity": "INFO", "attributes": {"n": 1}, "time_ns": time.time_ns()}
    metrics = [("counter", "rows", (("shop", "a"),), 10), ("histogram", "ms", (), [3.0] * 10)]
    reports = [
        {
            "Event": "SparkEventsTaskReport",
            "stage": stage,
            "partition": partition,
            "attempt": 0,
            "task": partition,
            "properties": {},
            "metrics": metrics,
            "events": [event],
            "spans": [],
            "dropped": {},
        }
        for stage in range(number // 1_000)
        for partition in range(1_000)
    ]
    began = time.thread_time()
    feed(*reports)
    took = time.thread_time() - began
    feed.end()
    return took / number * 1e6


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
        builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
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
        tasks_s(spark, _TASKS, True)
        of_tasks = [
            (tasks_s(spark, _TASKS, False), tasks_s(spark, _TASKS, True)) for _ in range(options.rounds)
        ]
        spark.stop()
        attachment.wait_closed()
    ratios = sorted(counted / plain for plain, counted in pairs)
    more = [100 * (ratio - 1) for ratio in ratios]
    plain_s = statistics.median(pair[0] for pair in pairs)
    each_ms = sorted(1000 * (counted - plain) / _TASKS for plain, counted in of_tasks)
    task_ms = f"{statistics.median(each_ms):+.2f} ms ({each_ms[0]:+.2f} to {each_ms[-1]:+.2f})"
    report_us = statistics.median(driver_us() for _ in range(5))
    more_percent = f"{statistics.median(more):+.1f} % ({more[0]:+.1f} to {more[-1]:+.1f})"
    write(
        "task_metrics",
        [
            "| | |",
            "| --- | --- |",
            f"| a UDF over {options.rows:,} rows | {plain_s:.1f} s |",
            f"| the same with a counter | {more_percent} |",
            f"| a task, with a counter and a histogram | {task_ms} more |",
            f"| a worker's start | {import_ms():.0f} ms more |",
            f"| the driver, for each report | {report_us:.0f} µs |",
            f"| the driver, for 500 tasks/s | {report_us * 500 / 1e4:.1f} % of a core |",
            f"| `inc()` in a task | {inc_ns:.0f} ns |",
            f"| `+= 1` on an attribute, in a function | {attribute_ns:.0f} ns |",
            "",
            f"`python -m bench.task_metrics`, {options.rounds} pairs in turn; {machine()}",
        ],
    )


if __name__ == "__main__":
    main()
