"""Streaming queries that lose time in every batch, fall behind, grow, or get nothing any more."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, makespan_ms, resting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_HOUR_S = 3_600
_AT = "2026-01-01T00:00:%02dZ"


def json_files(folder: Path, files: int, rows: int, later_s: int = 0) -> None:
    """Write files of so many rows, a second of their time apart; streams read those first that are older.

    Args:
        folder: to be made.
        files: how many.
        rows: of each.
        later_s: by how much they are later than those of another call, in s.
    """
    folder.mkdir()
    now_s = time.time()
    for file in range(files):
        lines = (f'{{"value": {file * rows + row}, "at": "{_AT % (file % 60)}"}}' for row in range(rows))
        path = folder / f"{file:03}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (now_s, now_s - _HOUR_S + later_s + file))


def file_by_file(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a stream that has the rows of a file in each micro-batch."""
    stream = spark.readStream.schema("value long, at timestamp").option("maxFilesPerTrigger", 1)
    return stream.json(str(folder))


def checkpointed(writer: DataStreamWriter, work: Work) -> DataStreamWriter:
    return writer.option("checkpointLocation", str(work.folder / "checkpoint")).queryName(work.case.name)


@case("foreach-batch-code")
def driver_code_for_each_batch(work: Work) -> None:
    """What ``foreachBatch`` is given waits for a service, in each micro-batch, without a job of Spark's."""
    batches, seconds = 5, work.random.uniform(1.5, 2.5)
    json_files(work.folder / "clicks", batches, 1_000)
    work.defect("foreach-batch-code", batches * seconds * 1_000)
    spark = work.begin()

    def send(batch: DataFrame, _: int) -> None:
        batch.agg({"value": "sum"}).collect()
        if work.bad:
            time.sleep(seconds)  # slow

    clicks = file_by_file(spark, work.folder / "clicks").writeStream.foreachBatch(send)  # slow
    checkpointed(clicks, work).trigger(availableNow=True).start().awaitTermination()


@case("foreach-row-by-row")
def a_service_for_each_row(work: Work) -> None:
    """What ``foreach`` is given sends each row on its own; the twin sends all rows of a task at once."""
    batches, rows, row_ms = 6, work.cores * work.random.randrange(120, 180), 10
    json_files(work.folder / "alarms", batches, rows)
    work.defect("foreach-row-by-row", batches * rows * row_ms / work.cores)
    spark = work.begin(python=True)

    class Service:
        """Takes 10 ms for each call."""

        def open(self, partition: int, epoch: int) -> bool:
            return True

        def process(self, row: object) -> None:
            if work.bad:
                time.sleep(row_ms / 1_000)

        def close(self, error: object) -> None:
            time.sleep(row_ms / 1_000)

    alarms = (
        file_by_file(spark, work.folder / "alarms").repartition(work.cores).writeStream.foreach(Service())
    )  # slow
    checkpointed(alarms, work).trigger(availableNow=True).start().awaitTermination()


@case("batch-computed-again")
def several_actions_for_each_batch(work: Work) -> None:
    """``foreachBatch`` uses its batch several times and does not cache it, so all of it is computed each time."""
    batches, actions, rows = 4, work.random.randrange(2, 5), work.cores * work.random.randrange(50, 80)
    once_ms = rows * 25 / work.cores
    json_files(work.folder / "orders", batches, rows)
    work.defect("batch-computed-again", batches * (actions - 1) * once_ms, "orders")
    spark = work.begin()

    def store(batch: DataFrame, _: int) -> None:
        if not work.bad:
            batch.persist()
        for action in range(actions):
            batch.where(f"value % 7 <> {action}").write.format("noop").mode("append").save()  # slow
        batch.unpersist()

    orders = file_by_file(spark, work.folder / "orders").repartition(2 * work.cores)
    stored = orders.selectExpr("value", resting("25") + " AS rested").writeStream.foreachBatch(store)
    checkpointed(stored, work).trigger(availableNow=True).start().awaitTermination()


@case("slow-source", version="4", conf={"spark.events.issue.idle-cores.min-duration": "60s"})
def slow_to_say_what_is_new(work: Work) -> None:
    """A source takes seconds to say up to where a micro-batch goes, as if it listed a large folder.

    Before its query begins, the driver starts Python for it, which is not a defect.
    """
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    batches, seconds = work.random.randrange(5, 8), work.random.uniform(1.2, 2.5)
    work.defect("slow-source", batches * seconds * 1_000)
    pause_s = seconds if work.bad else 0

    class Readings(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"reading": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
            time.sleep(pause_s)
            first = start["reading"]
            return iter([(number,) for number in range(first, first + 100)]), {"reading": first + 100}

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "readings"

        def schema(self) -> str:
            return "value long"

        def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's
            return Readings()

    spark = work.begin(python=True)
    spark.dataSource.register(Source)
    readings = spark.readStream.format("readings").load()  # slow
    query = checkpointed(readings.writeStream.format("noop"), work).start()  # slow
    _batches_done(query, batches)
    query.stop()


@case("stream-straggler")
def one_task_in_each_batch(work: Work) -> None:
    """In each micro-batch, one task takes seconds longer than the others."""
    batches, tasks = 6, 2 * work.cores
    hot, more_ms = work.random.randrange(tasks), work.random.randrange(1_800, 2_500)
    usual = [100.0] * tasks
    bad = [ms + more_ms * (index == hot) for index, ms in enumerate(usual)]
    cost_ms = makespan_ms(bad, work.cores) - makespan_ms(usual, work.cores)
    json_files(work.folder / "readings", batches, tasks)
    work.defect("stream-straggler", batches * cost_ms)
    spark = work.begin()
    ms = f"IF(value % {tasks} = {hot}, {more_ms + 100}, 100)" if work.bad else "100"
    readings = file_by_file(spark, work.folder / "readings").repartition(tasks)
    query = checkpointed(readings.selectExpr("value", resting(ms)).writeStream.format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("stream-behind")
def more_than_it_can_do(work: Work) -> None:
    """Each micro-batch takes longer than the interval in which the next one should begin."""
    batches, interval_s = 8, 1
    tasks, times = 2 * work.cores, work.random.uniform(2.0, 3.0)
    busy_ms = times * interval_s * 1_000
    json_files(work.folder / "readings", batches, tasks)
    work.defect("stream-behind", None, costed=False)
    spark = work.begin()
    ms = int(busy_ms / 2) if work.bad else 100
    readings = file_by_file(spark, work.folder / "readings").repartition(tasks)
    readings = readings.selectExpr("value", resting(str(ms)))
    writer = checkpointed(readings.writeStream.format("noop"), work)
    query = writer.trigger(processingTime=f"{interval_s} seconds").start()  # slow
    _batches_done(query, batches)
    query.stop()


@case("stream-slows-down")
def slower_than_its_trigger(work: Work) -> None:
    """Micro-batches that were in time at first take longer than the interval in which the next should begin."""
    early, late, interval_s = 10, 6, work.random.choice([1.0, 1.2, 1.5])
    busy_ms = int(interval_s * 1_000 * work.random.uniform(1.4, 2.0) / 2)
    tasks = 2 * work.cores
    json_files(work.folder / "readings", early + late, tasks)
    work.defect("stream-behind", None, "readings", costed=False)
    spark = work.begin()
    ms = f"IF(value >= {early * tasks}, {busy_ms}, 20)" if work.bad else "20"
    readings = (
        file_by_file(spark, work.folder / "readings").repartition(tasks).selectExpr("value", resting(ms))
    )
    writer = checkpointed(readings.writeStream.format("noop"), work)
    query = writer.trigger(processingTime=f"{int(interval_s * 1_000)} milliseconds").start()  # slow
    _batches_done(query, early + late)
    query.stop()


@case("stream-overrun")
def more_comes_than_it_can_do(work: Work) -> None:
    """Rows come faster than they are processed, so each micro-batch has more of them than the one before."""
    per_s, factor = 40, work.random.uniform(1.35, 1.6) if work.bad else 0.2
    row_ms = int(1_000 * work.cores * factor / per_s)
    folder, batches = work.folder / "arrivals", 8
    folder.mkdir()
    _write_rows(folder, "first", 2 * work.cores)
    work.defect("stream-behind", None, "arrivals", costed=False)
    spark = work.begin()
    arrivals = spark.readStream.schema("value long").json(str(folder)).repartition(2 * work.cores)
    rested = arrivals.selectExpr("value", resting(str(row_ms)))
    query = checkpointed(rested.writeStream.format("noop"), work).start()  # slow
    stopped = Event()
    writer = Thread(target=_write_evenly, args=(folder, per_s, stopped))
    writer.start()
    _batches_done(query, batches)
    query.stop()
    stopped.set()
    writer.join()


@case("state-grows")
def duplicates_for_ever(work: Work) -> None:
    """``dropDuplicates`` without a watermark keeps each key that there ever was."""
    batches, rows = 12, work.random.randrange(8_000, 12_000)
    json_files(work.folder / "messages", batches, rows)
    work.defect("state-grows", None, "message_id", costed=False)
    spark = work.begin()
    messages = file_by_file(spark, work.folder / "messages").withColumnRenamed("value", "message_id")
    if work.bad:
        once = messages.dropDuplicates(["message_id"])  # slow
    else:
        once = messages.withWatermark("at", "2 seconds").dropDuplicatesWithinWatermark(["message_id"])
    query = checkpointed(once.writeStream.format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("source-stopped")
def no_more_files(work: Work) -> None:
    """Files come each second, and then no more, while the query waits."""
    files, silent_s = 10, work.random.uniform(20, 25)
    folder = work.folder / "arrivals"
    folder.mkdir()
    work.defect("source-stopped", None, "arrivals", costed=False)
    spark = work.begin()
    arrivals = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(folder))  # slow
    query = checkpointed(arrivals.writeStream.format("noop"), work).start()  # slow
    writer = Thread(target=_write_files, args=(folder, files))
    writer.start()
    _batches_done(query, files)
    writer.join()
    if work.bad:
        time.sleep(silent_s)
    query.stop()


def _write_evenly(folder: Path, rows_per_s: int, stopped: Event) -> None:
    """Write a file of some rows five times a second."""
    number = 0
    while not stopped.wait(0.2):
        _write_rows(folder, str(number), rows_per_s // 5)
        number += 1


def _write_rows(folder: Path, name: str, rows: int) -> None:
    hidden = folder / f".{name}.json"
    hidden.write_text("\n".join(f'{{"value": {row}}}' for row in range(rows)))
    hidden.rename(folder / f"{name}.json")


def _write_files(folder: Path, files: int) -> None:
    for number in range(files):
        hidden = folder / f".{number}.json"
        hidden.write_text("\n".join(f'{{"id": {row}}}' for row in range(100)))
        hidden.rename(folder / f"{number}.json")
        time.sleep(1)


def _batches_done(query: StreamingQuery, batches: int) -> None:
    while sum(progress["numInputRows"] > 0 for progress in query.recentProgress) < batches:
        if (failed := query.exception()) is not None:
            raise failed
        time.sleep(0.1)
