"""Cost of an atomic CREATE TABLE AS SELECT: the same statement by Spark alone, and by spark_events.ctas.

One Spark session runs both in turn, so that what is measured is the same query on the same warm JVM. The rows
come of a range; the sizes are those of the files.
"""

from __future__ import annotations

import gc
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.table import machine, write
from tests.support.races import is_corrupt

_SIZES_GB = (1, 5)
_ROUNDS = {1: 5, 5: 3}
_RACES = 50
_ROWS_OF_GB = 25_000_000
_VARIANTS = ("plain", "atomic")
_COLUMNS = ", ".join(f"xxhash64(id, {seed}) AS c{seed}" for seed in range(5))
_QUERY = f"SELECT {_COLUMNS} FROM range(0, {{rows}}, 1, 8)"


def main() -> None:
    """Run the bench, and write its table."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        conf = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.driver.memory": "4g",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        builder = SparkSession.builder.master("local[2]").appName("bench")
        for key, value in conf.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        _measure(spark, 0.2, 1)  # compiles, and warms the disk
        lines = [
            f"CREATE TABLE … USING parquet AS SELECT, in turn by Spark alone and atomically, medians of "
            f"paired runs ({machine()}):",
            "",
            "| files | Spark alone, s | atomic, s | added, median of the pairs (lowest to highest) |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_measure(spark, size, _ROUNDS[size]) for size in _SIZES_GB]
        lines += ["", _races(spark)]
        spark.stop()
    write("ctas", lines)


def _measure(spark: Any, size_gb: float, rounds: int) -> str:
    times: dict[str, list[float]] = {variant: [] for variant in _VARIANTS}
    size = 0
    for number in range(rounds):
        # Whoever comes second finds the disk as the first one left it, so they take turns.
        for variant in _VARIANTS if number % 2 else reversed(_VARIANTS):
            seconds, size = _run(spark, variant, size_gb)
            times[variant].append(seconds)
    added = [ours / plain - 1 for plain, ours in zip(times["plain"], times["atomic"], strict=True)]
    plain, ours = (statistics.median(times[variant]) for variant in _VARIANTS)
    shown = f"{statistics.median(added):+.1%} ({min(added):+.1%} to {max(added):+.1%})"
    return f"| {size / 1e9:.1f} GB | {plain:.1f} | {ours:.1f} | {shown} |"


def _races(spark: Any) -> str:
    sessions = spark, spark.newSession()
    plain, ours = (
        sum(is_corrupt(sessions, f"race_{atomic}_{number}", atomic) for number in range(_RACES))
        for atomic in (False, True)
    )
    return (
        f"In {_RACES} races between two sessions creating the same table, plain Spark left something other "
        f"than one winner's rows {plain} times; spark-events {ours} times."
    )


def _run(spark: Any, variant: str, size_gb: float) -> tuple[float, int]:
    from spark_events import ctas

    text = f"CREATE TABLE t USING parquet AS {_QUERY.format(rows=int(size_gb * _ROWS_OF_GB))}"
    gc.collect()
    spark._jvm.System.gc()
    start = time.perf_counter()
    if variant == "plain":
        spark.sql(text)
    else:
        ctas.sql(spark, text)
    seconds = time.perf_counter() - start
    files = [
        Path(path.removeprefix("file://").removeprefix("file:")) for path in spark.table("t").inputFiles()
    ]
    size = sum(path.stat().st_size for path in files)
    spark.sql("DROP TABLE t")
    shutil.rmtree(files[0].parent, ignore_errors=True)
    return seconds, size


if __name__ == "__main__":
    main()
