"""Streaming queries that lose time in every batch, fall behind, grow, or get nothing any more."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tests.support.slow.case import Work, case, makespan_ms, resting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_AT = "2026-01-01T00:00:%02dZ"


def _files(folder: Path, files: int, rows: int) -> None:
    """Write files of so many rows, a second of their time apart."""
    folder.mkdir()
    for file in range(files):
        lines = (f'{{"value": {file * rows + row}, "at": "{_AT % (file % 60)}"}}' for row in range(rows))
        (folder / f"{file:03}.json").write_text("\n".join(lines))


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a stream that has the rows of a file in each micro-batch."""
    stream = spark.readStream.schema("value long, at timestamp").option("maxFilesPerTrigger", 1)
    return stream.json(str(folder))


def _checkpointed(writer: DataStreamWriter, work: Work) -> DataStreamWriter:
    return writer.option("checkpointLocation", str(work.folder / "checkpoint")).queryName(work.case.name)


@case("foreach-batch-code")
def driver_code_for_each_batch(work: Work) -> None:
    """What ``foreachBatch`` is given waits for a service, in each micro-batch, without a job of Spark's."""
    batches, seconds = 5, work.random.uniform(1.5, 2.5)
    _files(work.folder / "clicks", batches, 1_000)
    work.defect("foreach-batch-code", batches * seconds * 1_000)
    spark = work.begin()

    def send(batch: DataFrame, _: int) -> None:
        batch.agg({"value": "sum"}).collect()
        if work.bad:
            time.sleep(seconds)  # slow

    clicks = _stream(spark, work.folder / "clicks").writeStream.foreachBatch(send)  # slow
    _checkpointed(clicks, work).trigger(availableNow=True).start().awaitTermination()


@case("stream-straggler")
def one_task_in_each_batch(work: Work) -> None:
    """In each micro-batch, one task takes seconds longer than the others."""
    batches, tasks = 6, 2 * work.cores
    hot, more_ms = work.random.randrange(tasks), work.random.randrange(1_800, 2_500)
    usual = [100.0] * tasks
    bad = [ms + more_ms * (index == hot) for index, ms in enumerate(usual)]
    cost_ms = makespan_ms(bad, work.cores) - makespan_ms(usual, work.cores)
    _files(work.folder / "readings", batches, tasks)
    work.defect("stream-straggler", batches * cost_ms)
    spark = work.begin()
    ms = f"IF(value % {tasks} = {hot}, {more_ms + 100}, 100)" if work.bad else "100"
    readings = _stream(spark, work.folder / "readings").repartition(tasks)
    query = _checkpointed(readings.selectExpr("value", resting(ms)).writeStream.format("noop"), work)  # slow
    query.trigger(availableNow=True).start().awaitTermination()  # slow


@case("stream-behind")
def more_than_it_can_do(work: Work) -> None:
    """Each micro-batch takes longer than the interval in which the next one should begin."""
    batches, interval_s = 8, 1
    tasks, times = 2 * work.cores, work.random.uniform(2.0, 3.0)
    busy_ms = times * interval_s * 1_000
    _files(work.folder / "readings", batches, tasks)
    work.defect("stream-behind", None, costed=False)
    spark = work.begin()
    ms = int(busy_ms / 2) if work.bad else 100
    readings = _stream(spark, work.folder / "readings").repartition(tasks)
    readings = readings.selectExpr("value", resting(str(ms)))
    writer = _checkpointed(readings.writeStream.format("noop"), work)
    query = writer.trigger(processingTime=f"{interval_s} seconds").start()  # slow
    _batches_done(query, batches)
    query.stop()


@case("state-grows")
def duplicates_for_ever(work: Work) -> None:
    """``dropDuplicates`` without a watermark keeps each key that there ever was."""
    batches, rows = 12, work.random.randrange(8_000, 12_000)
    _files(work.folder / "messages", batches, rows)
    work.defect("state-grows", None, "message_id", costed=False)
    spark = work.begin()
    messages = _stream(spark, work.folder / "messages").withColumnRenamed("value", "message_id")
    if work.bad:
        once = messages.dropDuplicates(["message_id"])  # slow
    else:
        once = messages.withWatermark("at", "2 seconds").dropDuplicatesWithinWatermark(["message_id"])
    query = _checkpointed(once.writeStream.format("noop"), work)  # slow
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
    query = _checkpointed(arrivals.writeStream.format("noop"), work).start()  # slow
    writer = Thread(target=_write_files, args=(folder, files))
    writer.start()
    _batches_done(query, files)
    writer.join()
    if work.bad:
        time.sleep(silent_s)
    query.stop()


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
