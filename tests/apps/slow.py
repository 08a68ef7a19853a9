"""Jobs that are slow for one reason each, and twins of the same shape that are not; on four cores.

Prints a line for each: its name, the ids of its jobs, and the ms that were injected.
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

marks = Path(sys.argv[1])
spark = SparkSession.builder.appName("slow").getOrCreate()
sc = spark.sparkContext
CORES = 4


def run(name, injected_ms, action):
    sc.setJobGroup(name, name)
    action()
    jobs = ",".join(map(str, sorted(sc.statusTracker().getJobIdsForGroup(name))))
    print(f"case {name} {jobs} {injected_ms}", flush=True)


def sleeping(seconds_of):
    """A stage whose tasks sleep, each as long as it should."""

    def sleep(index, rows):
        time.sleep(seconds_of(index))
        return rows

    return sc.parallelize(range(80), 8).mapPartitionsWithIndex(sleep)


def grouped(rows_of):
    """A stage that reads a shuffle, in which each partition has so many rows, and takes 0.1 ms for each."""

    def slowly(groups):
        rows = sum(len(texts) for _, texts in groups)
        time.sleep(rows / 10_000)
        yield rows

    pairs = sc.parallelize(range(8), 8).flatMap(
        lambda of: ((of, f"{of} {number} " * 20) for number in range(rows_of(of)))
    )
    return pairs.groupByKey(8, lambda key: key).mapPartitions(slowly)


def failing(share):
    """A stage in which the first attempt of some tasks fails after 2.6 s."""

    def fail(index, rows):
        time.sleep(0.3)
        if index < share and TaskContext.get().attemptNumber() == 0:
            time.sleep(2.3)
            raise ValueError("injected")
        return rows

    return sc.parallelize(range(80), 8).mapPartitionsWithIndex(fail)


def in_python(seconds):
    def slow(number):
        time.sleep(seconds)
        return number

    spark.range(0, 80, 1, 8).select(udf(slow, "long")("id")).write.format("noop").mode("overwrite").save()


def sort(rows):
    sorted_rows = spark.range(0, rows, 1, 4).selectExpr("id * 7919 % 104729 AS id").sortWithinPartitions("id")
    sorted_rows.write.format("noop").mode("overwrite").save()


def read(files):
    folder = marks / f"files-{files}"
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.txt").write_text("text\n" * 100)
    spark.read.text(str(folder)).write.format("noop").mode("overwrite").save()


def write(files):
    rows = spark.range(0, 1_000, 1, files)
    rows.write.parquet(str(marks / f"written-{files}"))


sc.parallelize(range(8), 8).count()  # Python workers begin
run("straggler", 8_000, sleeping(lambda index: 8.2 if index == 0 else 0.2).count)
run("no-straggler", 0, sleeping(lambda index: 1.5).count)
# Of 9.8 s in all, the longest task has 8.4: on four cores, 2.45 s would do.
run("skew", 5_950, grouped(lambda of: 84_000 if of == 0 else 2_000).collect)
run("no-skew", 0, grouped(lambda of: 6_000).collect)
run("task-count", 0, lambda: spark.range(0, 2_000, 1, 2_000).write.format("noop").mode("overwrite").save())
run("one-task", 4_800, sc.parallelize(range(10), 1).map(lambda row: time.sleep(0.64)).count)
run("no-task-count", 0, sc.parallelize(range(100), 16).map(lambda row: time.sleep(0.2)).count)
run("retries", 2_600, failing(4).count)
run("no-retries", 0, failing(0).count)
run("python", 0, lambda: in_python(0.1))
run("no-python", 0, lambda: spark.range(0, 200_000_000, 1, 8).selectExpr("sum(sqrt(id))").collect())
run("spill", 0, lambda: sort(6_000_000))  # for longer than a second, also on a fast machine
run("no-spill", 0, lambda: sort(1_000))
run("small-files", 0, lambda: read(500))
run("no-small-files", 0, lambda: read(100))
run("written-files", 0, lambda: write(101))
sc.setJobGroup("", "")
time.sleep(3)
(marks / "done").touch()
spark.stop()
