"""Reads stored events with Spark, on any of Hadoop's file systems."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_events.history.reading.dialect import SPARK, no_rows
from spark_events.history.reading.facts import (
    COLLAPSED,
    COLUMNS,
    PROBLEMS,
    Reading,
    classified,
    columns_of_repeated,
    together,
)
from spark_events.history.reading.hadoop_files import HadoopFiles
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.history.reading.stored_events import read_stored_events

_numbers = itertools.count()


class Spark:
    """A Spark session as a database; see ``Database`` for its methods.

    Args:
        session: a classic one, not one of Spark Connect.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._made: list[tuple[str, DataFrame]] = []

    def close(self) -> None:
        """Forget the relations; the session goes on."""
        for name, frame in self._made:
            self._session.catalog.dropTempView(name)
            frame.unpersist()
        self._made.clear()

    def progress(self) -> float | None:
        """Return how much of the tasks of the running stages is done; see ``Database.progress``."""
        tracker = self._session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return 100 * sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else None

    def read_facts(self, paths: Sequence[str], times: PossibleTimes) -> tuple[str, Reading]:
        """Read stored events; see ``Database.read_facts``."""
        events = self._named("events", read_stored_events(self._session, paths))
        records = self._session.sql(classified(events, SPARK, times))
        observed = Observation("reading")
        once = self._kept(
            "facts", _each_once(records.observe(observed, *_metrics()).where("problem IS NULL"))
        )
        # An action of its own: an observation would wait forever for the end of ``toLocalIterator``.
        kept = self._session.table(once).where(f"NOT {COLLAPSED}").count()
        reading = _reading(observed.get, times)
        reading.duplicates = reading.facts - kept
        return once, reading

    def each_once(self, relations: Sequence[str]) -> str:
        """Keep one fact of each id; see ``Database.each_once``."""
        return self._kept("once", _each_once(self._session.sql(together(relations))))

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        yield from self._session.sql(sql).toLocalIterator(prefetchPartitions=True)

    def from_parquet(self, folders: Sequence[str], columns: Mapping[str, str]) -> str:
        """Return the rows of those folders that exist; see ``Database.from_parquet``."""
        existing = [folder for folder in folders if HadoopFiles(self._session, folder).exists("")]
        if not existing:
            return no_rows(columns)
        schema = ", ".join(f"{name} {of_type}" for name, of_type in columns.items())
        return self._named("stored", self._session.read.schema(schema).parquet(*existing))

    def to_parquet(self, sql: str, folder: str, partition_by: Sequence[str] = ()) -> None:
        """Write the rows of a query; see ``Database.to_parquet``."""
        self._session.sql(sql).write.partitionBy(*partition_by).parquet(folder)

    def rows_to_parquet(
        self, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], folder: str
    ) -> None:
        """Write rows into a folder; what was in it is replaced."""
        texts = ", ".join(
            f"{name} {'STRING' if of_type == 'DATE' else of_type}" for name, of_type in columns.items()
        )
        frame = self._session.createDataFrame([tuple(row[name] for name in columns) for row in rows], texts)
        typed = frame.select(*(F.col(name).cast(of_type) for name, of_type in columns.items()))
        typed.coalesce(1).write.mode("overwrite").parquet(folder)

    def tables_to_parquet(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]],
        columns: Mapping[str, Mapping[str, str]],
        folder: str,
    ) -> None:
        """Write tables below a folder; Spark removes what it has begun of one that fails."""
        for name, rows in tables.items():
            self.rows_to_parquet(rows, columns[name], f"{folder.rstrip('/')}/{name}")

    def files(self, folder: str) -> HadoopFiles:
        """Return the access to the files in a folder."""
        return HadoopFiles(self._session, folder)

    def _named(self, what: str, frame: DataFrame) -> str:
        name = f"spark_events_{what}_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._made.append((name, frame))
        return name

    def _kept(self, what: str, frame: DataFrame) -> str:
        return self._named(what, frame.persist(StorageLevel.MEMORY_AND_DISK))


def _each_once(facts: DataFrame) -> DataFrame:
    """Keep one fact of each id: the one that ``facts.order_of_repeated`` puts first."""
    compared = F.struct(*map(F.expr, columns_of_repeated()))
    once = facts.groupBy("event_id").agg(F.max(compared).alias("kept"))
    return once.select("event_id", "kept.*").select(*COLUMNS)


def _metrics() -> list[Any]:
    """Return what is counted while events are read."""
    usable = F.col("problem").isNull()
    metrics = [
        F.count(F.lit(1)).alias("records"),
        F.count(F.when(usable & ~F.expr(COLLAPSED), True)).alias("facts"),
        F.coalesce(F.sum("odd_numbers"), F.lit(0)).alias("odd_numbers"),
        F.count(F.when(usable & F.col("own"), True)).alias("own"),
    ]
    for problem in PROBLEMS:
        file = F.when(F.col("problem") == problem, F.col("file"))
        metrics += [F.count(file).alias(f"count_{problem}"), F.min(file).alias(f"file_{problem}")]
    return metrics


def _reading(metrics: Mapping[str, Any], times: PossibleTimes) -> Reading:
    counts = {problem: metrics[f"count_{problem}"] for problem in PROBLEMS}
    problems = {problem: count for problem, count in counts.items() if count}
    return Reading(
        records=metrics["records"],
        facts=metrics["facts"],
        problems=problems,
        examples={problem: metrics[f"file_{problem}"] for problem in problems},
        odd_numbers=metrics["odd_numbers"],
        own=metrics["own"],
        times=times,
    )
