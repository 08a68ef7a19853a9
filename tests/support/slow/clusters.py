"""Executors in processes of their own: on a slow host, killed, with memory that nobody uses; past runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, resting
from tests.support.slow.expected import ON_EXECUTORS

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession

_SMALL = {"spark.executor.memory": "512m", "spark.executor.cores": "1", **ON_EXECUTORS}


def _slower_where(
    work: Work, argument: str, value: str, factor: float, usual_ms: int, tasks: int
) -> tuple[RDD[int], Callable[[], float]]:
    """Begin, and have an RDD whose tasks take longer where the executor was started with an argument of this value.

    Returns:
        The RDD, and what those tasks have cost so far, in ms: the others would have shared what these were
        too slow for.
    """
    context = work.begin(python=True).sparkContext
    _until(lambda: len(_living(context)) == work.cores)
    context.parallelize(range(4 * work.cores), 4 * work.cores).map(lambda _: time.sleep(0.3)).count()
    slow_tasks = context.accumulator(0)

    def visit(rows: Iterator[int]) -> Iterator[int]:
        is_slow = factor > 1 and _after(argument) == value
        if is_slow:
            slow_tasks.add(1)
        time.sleep(usual_ms * (factor if is_slow else 1) / 1_000)
        return rows

    visits = context.parallelize(range(tasks), tasks).mapPartitions(visit)
    return visits, lambda: slow_tasks.value * usual_ms * (factor - 1) / work.cores


@case("slow-node", master="hosts[4]", conf=_SMALL)
def one_host_is_slow(work: Work) -> None:
    """On one of four hosts, each task takes thrice as long, in several stages."""
    usual_ms, stages, tasks = work.random.randrange(300, 400), 4, 30
    slow_host = f"127.0.0.{work.random.randrange(1, work.cores + 1)}"
    factor = 3 if work.bad else 1
    visits, lost_ms = _slower_where(work, "--hostname", slow_host, factor, usual_ms, tasks)
    for _ in range(stages):
        visits.count()  # slow
    work.defect("slow-node", lost_ms(), slow_host)


@case(
    "slow-executor",
    master="local-cluster[4,1,1024]",
    # Executors that start take long where much else runs, and count as the application's time.
    conf={**_SMALL, "spark.events.issue.min-ratio": "0.02"},
)
def one_executor_is_slow(work: Work) -> None:
    """On one of four executors of the same host, each task takes some times as long, in several stages."""
    usual_ms, stages = work.random.randrange(500, 700), work.random.randrange(5, 8)
    tasks, slow_executor = work.random.randrange(28, 40), str(work.random.randrange(work.cores))
    factor = work.random.uniform(2.6, 4) if work.bad else 1
    visits, lost_ms = _slower_where(work, "--executor-id", slow_executor, factor, usual_ms, tasks)
    for _ in range(stages):
        visits.count()  # slow
    work.defect("slow-executor", lost_ms(), f"executor {slow_executor}")


@case(
    "cached-on-one-executor",
    master="local-cluster[2,1,1024]",
    conf=_SMALL,
    bad={"spark.locality.wait": "30s"},
    twin={"spark.locality.wait": "0s"},
)
def most_of_a_cache_is_on_one(work: Work) -> None:
    """One of two executors has all cached partitions but one, and tasks wait for it rather than run elsewhere."""
    parts, passes, task_ms = 8, work.random.randrange(4, 6), work.random.randrange(900, 1_200)
    work.defect("cached-on-one-executor", None, "spark.locality.wait")
    context = work.begin(python=True).sparkContext
    _until(lambda: len(_living(context)) == work.cores)

    def load(part: int, rows: Iterator[int]) -> Iterator[int]:
        # While the first partition is loaded, the other executor gets all others.
        time.sleep(0.2 * (parts - 1 if part == 0 else 1))
        return rows

    def score(row: int) -> int:
        time.sleep(task_ms / 1_000)
        return row

    features = context.parallelize(range(parts), parts).mapPartitionsWithIndex(load).cache()
    features.count()
    for _ in range(passes):
        features.map(score).sum()  # slow


@case("executor-churn", master="local-cluster[2,1,1024]", conf={**_SMALL, "spark.task.maxFailures": "8"})
def executors_are_killed(work: Work) -> None:
    """Two executors are killed while their tasks are nearly done, so these begin again on new ones."""
    task_ms, kills, tasks = work.random.randrange(3_500, 4_500), 2, 10
    work.defect("executor-churn")
    spark = work.begin(python=True)
    context = spark.sparkContext
    _until(lambda: len(_living(context)) == work.cores)

    def visit(rows: Iterator[int]) -> Iterator[int]:
        time.sleep(task_ms / 1_000)
        return rows

    killer = Thread(target=_kill_executors, args=(context, kills if work.bad else 0, 0.85 * task_ms / 1_000))
    killer.start()
    context.parallelize(range(tasks), tasks).mapPartitions(visit).count()  # slow
    killer.join()


@case(
    "fetch-failures",
    master="local-cluster[2,1,1024]",
    conf={**_SMALL, "spark.shuffle.io.maxRetries": "1", "spark.shuffle.io.retryWait": "1s"},
)
def shuffle_data_is_lost(work: Work) -> None:
    """An executor is killed when others still have to read what it wrote, which is therefore made again."""
    map_ms, parts, bad = work.random.randrange(2_500, 3_500), 6, work.bad
    folder, gone = work.folder, work.folder / "gone"
    work.defect("fetch-failures")
    spark = work.begin(python=True)
    context = spark.sparkContext
    _until(lambda: len(_living(context)) == work.cores)

    def keyed(rows: Iterator[int]) -> Iterator[tuple[int, int]]:
        time.sleep(map_ms / 1_000)
        return ((row % parts, row) for row in rows)

    def read(partition: int, rows: Iterator[object]) -> Iterator[int]:
        (folder / f"runs-{partition}").touch()
        if bad and partition < 2:
            _until(gone.exists)
        return iter([len(list(rows))])

    pairs = context.parallelize(range(600), parts).mapPartitions(keyed).groupByKey(parts)  # slow
    pairs.count()
    killer = Thread(target=_kill_a_reader, args=(context, folder, gone))
    if bad:
        killer.start()
    pairs.mapPartitionsWithIndex(read).sum()  # slow
    if bad:
        killer.join()


@case(
    "memory-unused",
    master="local-cluster[1,2,2048]",
    conf={
        "spark.executor.memory": "512m",
        "spark.events.issue.min-bytes": "512m",
        "spark.executor.heartbeatInterval": "1s",  # with which it says how full its heap is
    },
    bad={"spark.executor.memory": "2g"},
)
def most_of_the_heap_is_free(work: Work) -> None:
    """An executor has two gigabytes of heap and needs a tenth of it."""
    work.defect("memory-unused", None, "spark.executor.memory", costed=False)
    spark = work.begin()
    rows = spark.range(0, 80 * work.cores, 1, 4 * work.cores).selectExpr("id", resting("50"))
    rows.write.format("noop").mode("overwrite").save()  # slow


@case("regression", conf={"spark.events.issue.regression.dir": "{folder}/past", "spark.driver.memory": "1g"})
def longer_than_ever(work: Work) -> None:
    """The seventh run takes thrice as long as those before, on three times the rows."""
    usual, times = work.cores * work.random.randrange(36, 48), work.random.uniform(3, 4)
    spark = work.begin()
    for run in range(7):
        rows = int(usual * (times if work.bad and run == 6 else 1))
        if run:
            spark = _next_run(work, spark)
        payments = spark.range(0, rows, 1, 2 * work.cores).selectExpr("id AS payment", resting("50"))
        payments.write.format("noop").mode("overwrite").save()  # slow
    work.defect("regression", (int(usual * times) - usual) * 50 / work.cores)


def _next_run(work: Work, spark: SparkSession) -> SparkSession:
    spark.stop()
    return work.begin()


def _after(argument: str) -> str:
    """Return what this executor was given: its JVM is the parent of the daemon that has forked this worker."""
    daemon = os.getppid()
    jvm = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]
    command = Path(f"/proc/{jvm}/cmdline").read_text().split("\0")
    return command[command.index(argument) + 1]


def _kill_executors(context: SparkContext, times: int, after_s: float) -> None:
    """Kill the oldest executor that often, always so long after it began to work."""
    for _ in range(times):
        time.sleep(after_s)
        before = _living(context)
        os.kill(_process_of(context, before[0]), signal.SIGKILL)
        _until(lambda: before[0] not in _living(context))  # noqa: B023 - called at once
        _until(lambda: len(_living(context)) == len(before))  # noqa: B023


def _kill_a_reader(context: SparkContext, folder: Path, gone: Path) -> None:
    """Kill an executor once the first two readers run, one on each."""
    _until(lambda: all((folder / f"runs-{partition}").exists() for partition in range(2)))
    victim = _living(context)[0]
    os.kill(_process_of(context, victim), signal.SIGKILL)
    _until(lambda: victim not in _living(context))
    gone.touch()


def _living(context: SparkContext) -> list[str]:
    """Return the ids of the executors, the oldest first."""
    living = context._jsc.sc().statusStore().executorList(True)
    ids = [living.apply(index).id() for index in range(living.size())]
    return sorted((each for each in ids if each != "driver"), key=int)


def _process_of(context: SparkContext, executor: str) -> int:
    """Return the process of an executor of this application, of all on this machine."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().replace(b"\0", b" ")
        except OSError:  # it has just ended
            continue
        if f"--executor-id {executor} ".encode() in words and context.applicationId.encode() in words:
            return int(command.parent.name)
    raise RuntimeError(f"no process of executor {executor}")


def _until(condition: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > 60:
            raise TimeoutError("executors did not come or go within a minute")
        time.sleep(0.05)
