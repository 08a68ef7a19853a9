"""Cost of lineage: the same TPC-DS queries with nobody listening, with ours, with OpenLineage's Spark jar.

Each run is a process of its own, in turn; both listeners write OpenLineage's events to a file. Besides, how
long one very large plan takes to be read, and one of a DataFrame that is made of 10,000 RDDs. The jar is
.ci/get-jars openlineage's; without it, ours is measured alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.process_cpu import process_cpu_s
from bench.table import ROOT, machine, write
from tests.support.tpc import load

_ROUNDS = 4
_QUERIES = 40
_JOINS, _COLUMNS = 200, 25
_RDDS = 9_980
"""With the few above and below them, almost the 10,000 that are looked at."""
_JARS = ROOT / ".cache" / "jars" / "openlineage"
_VARIANTS = ("nobody", "spark-events", "OpenLineage's jar")


def main() -> None:
    """Run the bench, and write its table; with an argument, be one of its processes."""
    if len(sys.argv) > 1:
        _run_queries(*sys.argv[1:])
        return
    jar = next(_JARS.glob("openlineage-spark*.jar"), None)
    variants = [variant for variant in _VARIANTS if jar or variant != _VARIANTS[2]]
    runs: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    for number in range(_ROUNDS + 1):
        for variant in variants:
            measured = _process(variant, str(jar))
            if number:  # the first round warms the disk
                runs[variant].append(measured)
    write("lineage", [*_table(runs), "", _large_plan(), "", _many_rdds()])


def _process(variant: str, jar: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.lineage", variant, jar, folder]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{variant} failed:\n{run.stderr[-3000:]}")
        found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
        return found


def _table(runs: dict[str, list[dict[str, float]]]) -> list[str]:
    def median(variant: str, what: str) -> float:
        return statistics.median(run[what] for run in runs[variant])

    def added(variant: str, what: str) -> list[float]:
        return [run[what] - base[what] for run, base in zip(runs[variant], runs[_VARIANTS[0]], strict=True)]

    lines = [
        f"{_QUERIES} TPC-DS queries that write a file each, over empty tables, medians of {_ROUNDS} rounds "
        f"({machine()}):",
        "",
        "| listener | wall, s | added | CPU of driver and Python, s | added (lowest to highest) | events |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for variant in runs:
        more, cpu = added(variant, "wall_s"), added(variant, "cpu_s")
        wall_shown = f"{statistics.median(more):+.1f}" if variant != _VARIANTS[0] else ""
        cpu_shown = (
            f"{statistics.median(cpu):+.1f} ({min(cpu):+.1f} to {max(cpu):+.1f})"
            if variant != _VARIANTS[0]
            else ""
        )
        wall, cpu_s, events = (median(variant, what) for what in ("wall_s", "cpu_s", "events"))
        lines.append(f"| {variant} | {wall:.1f} | {wall_shown} | {cpu_s:.1f} | {cpu_shown} | {events:.0f} |")
    if len(runs) == len(_VARIANTS):
        ours, jars = (statistics.median(added(variant, "cpu_s")) for variant in _VARIANTS[1:])
        lines += ["", f"spark-events adds {ours / jars:.2f} times the CPU that the jar adds."]
    return lines


# -- a process of its own ------------------------------------------------------------------------------------


def _run_queries(variant: str, jar: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    events = Path(folder, "events.json")
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
    }
    if variant == _VARIANTS[1]:
        listener = "spark.job-status-changed.listener"
        conf |= {
            f"{listener}s": "openlineage",
            f"{listener}.openlineage.transport.type": "file",
            f"{listener}.openlineage.transport.path": str(events),
        }
    elif variant == _VARIANTS[2]:
        conf |= {
            "spark.jars": jar,
            "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
            "spark.openlineage.transport.type": "file",
            "spark.openlineage.transport.location": str(events),
            "spark.openlineage.columnLineage.datasetLineageEnabled": "true",
        }
    # A compiler that decides less, and a collector that is less clever, take the same time in each run.
    conf["spark.driver.extraJavaOptions"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms1g"
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in conf.items():
        builder = builder.config(key, value)
    start = time.perf_counter()
    spark = builder.getOrCreate()
    started = time.perf_counter() - start
    suite = load("tpcds")
    suite.create(spark)
    queries = list(suite.queries.values())[:_QUERIES]
    measured = _measure(spark, queries, folder, attached=variant == _VARIANTS[1])
    measured["wall_s"] += started  # the jar begins with Spark
    measured["events"] = len(events.read_text().splitlines()) if events.exists() else 0
    sys.stdout.write("\n" + json.dumps(measured) + "\n")


def _measure(spark: Any, queries: list[str], folder: str, attached: bool) -> dict[str, float]:
    """Run the queries; CPU is all that the process and its JVM have taken when all is told."""
    jvm = spark.sparkContext._gateway.proc.pid  # spark-submit's shell becomes Java
    start = time.perf_counter()
    if attached:
        import spark_events

        attachment = spark_events.attach(spark, strict=True)
    for number, query in enumerate(queries):
        spark.sql(f"INSERT OVERWRITE DIRECTORY '{folder}/out/{number}' USING json {query}")
    wall = time.perf_counter() - start
    spark.stop()
    if attached:
        attachment.wait_closed()
    return {"wall_s": wall, "cpu_s": process_cpu_s(jvm) + time.process_time()}


def _large_plan() -> str:
    from pyspark.sql import SparkSession

    from spark_events.lineage.plans import read_plan

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").getOrCreate()
    spark.conf.set("spark.sql.debug.maxToStringFields", "5")
    spark.sql(f"SELECT {', '.join(f'1 AS c{number}' for number in range(_COLUMNS))}").createTempView("one")
    with tempfile.TemporaryDirectory() as folder:
        spark.table("one").write.parquet(f"{folder}/base")
        spark.read.parquet(f"{folder}/base").createOrReplaceTempView("base")
    for number in range(_JOINS):
        columns = ", ".join(f"c{column} + {number} AS c{number}_{column}" for column in range(_COLUMNS))
        spark.sql(f"SELECT {columns} FROM base").createOrReplaceTempView(f"t{number}")
    joins = " ".join(f"JOIN t{number} ON c0_0 = c{number}_0" for number in range(1, _JOINS))
    start = time.perf_counter()
    sql = f"INSERT OVERWRITE DIRECTORY '/nowhere' USING parquet SELECT * FROM t0 {joins}"
    state, skip = spark._jsparkSession.sessionState(), spark._jvm.org.apache.spark.sql.execution
    parsed = state.sqlParser().parsePlan(sql)
    plan = state.executePlan(parsed, skip.CommandExecutionMode.SKIP()).analyzed()
    analyzed = time.perf_counter() - start
    read_plan(spark, spark.range(1)._jdf.queryExecution().analyzed(), 60_000)  # compiles it
    taken = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        found = read_plan(spark, plan, 60_000)
        taken.append(time.perf_counter() - start)
        (sink,) = found["sinks"]
        assert found["incomplete"] is None
        assert len(sink["columns"]) == _JOINS * _COLUMNS
    spark.stop()
    return (
        f"A plan of {_JOINS} joins and {_JOINS * _COLUMNS:,} columns, which Spark takes {analyzed:.1f} s to "
        f"analyze, is read in {statistics.median(taken):.2f} s (median of {_ROUNDS}), on a thread of its own."
    )


def _many_rdds() -> str:
    from pyspark import RDD
    from pyspark.sql import SparkSession

    from spark_events.lineage.plans import read_plan

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").getOrCreate()
    context: Any = spark.sparkContext
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("a row, for RDDs without partitions are left out\n")
        file.flush()
        lines = context.textFile(file.name, 1)
        rdds = context._gateway.new_array(context._jvm.org.apache.spark.api.java.JavaRDD, _RDDS)
        for number in range(_RDDS):
            rdds[number] = lines._jrdd.coalesce(1)
        union: RDD[Any] = RDD(context._jsc.union(rdds), context, lines._jrdd_deserializer)
        frame = spark.createDataFrame(union.map(lambda line: (line,)), "line STRING")
        plan = frame._jdf.queryExecution().analyzed()
    taken = []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        found = read_plan(spark, plan, 60_000)
        taken.append(time.perf_counter() - start)
        assert len(found["sources"]) == 1
        assert "more than" not in found["incomplete"]
    spark.stop()
    return (
        f"What a DataFrame reads that is made of {_RDDS:,} RDDs is found in "
        f"{statistics.median(taken[1:]):.2f} s (median of {_ROUNDS}), on the same thread."
    )


if __name__ == "__main__":
    main()
