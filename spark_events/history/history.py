"""The tables of a history, from the facts of one pass or from a store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_events.api import ConfigError
from spark_events.history.checkpoints import QUERY, checkpoint_days, checkpoint_sla, checkpoint_sums
from spark_events.history.facts import CHECKPOINT, LOSS, SEEN, FactReader, Reading, date_of, each_once
from spark_events.history.failures import failures
from spark_events.history.plausible import DAY_MS, PossibleTimes
from spark_events.history.sla import Sla
from spark_events.history.timeline import last_heard, status_intervals
from spark_events.history.uptime import uptime, uptime_per_day

MOST_DAYS = 800
"""How many days at most the tables by day have."""


class Tables(NamedTuple):
    """The tables; times in them are ms since the epoch, days are UTC's, of the last ``MOST_DAYS``.

    Attributes:
        status_intervals: see ``timeline.status_intervals``.
        uptime, uptime_per_day: see the functions of these names in ``uptime``.
        checkpoint_sla, checkpoint_sla_per_day: see ``checkpoints.checkpoint_sla``.
        failures: see ``failures.failures``.
    """

    status_intervals: DataFrame
    uptime: DataFrame
    uptime_per_day: DataFrame
    checkpoint_sla: DataFrame
    checkpoint_sla_per_day: DataFrame
    failures: DataFrame


class Period(NamedTuple):
    """The period that a history covers, in ms since the epoch.

    Attributes:
        since_ms: its beginning.
        until_ms: its end: nothing is known after it.
    """

    since_ms: int
    until_ms: int


class History:
    """The history that some facts describe.

    Args:
        facts: of ``facts.SCHEMA``, each once, without checkpoints of the days in ``days``; used repeatedly.
        days: as of ``checkpoints.checkpoint_days``, made with ``sla`` and the period's begin.
        checkpoints: the facts of single checkpoints.
    """

    def __init__(
        self, facts: DataFrame, days: DataFrame, checkpoints: DataFrame, sla: Sla, period: Period
    ) -> None:
        self.facts, self._days = facts, days
        self.checkpoints = checkpoints.where(F.col("time_ms") >= period.since_ms)
        self.sla = sla
        self.period = period

    def tables(self) -> Tables:
        """Return the tables; each is computed when its rows are requested."""
        since_ms, until_ms = self.period
        facts = self.facts.where(F.col("fact") != CHECKPOINT)
        heard = _settled(last_heard(facts, self._days))
        intervals = _settled(status_intervals(facts, heard, until_ms))
        sums = checkpoint_sums(_settled(self._days), facts, intervals, self.sla, until_ms)
        sla_per_day = checkpoint_sla(sums, self.sla, "date", *QUERY)
        shown = intervals.where(F.col("end_ms") > since_ms)
        return Tables(
            status_intervals=shown.withColumn("start_ms", F.greatest("start_ms", F.lit(since_ms))),
            uptime=uptime(facts, heard, intervals, since_ms, until_ms),
            uptime_per_day=uptime_per_day(facts, intervals, self.days_since_ms, until_ms),
            checkpoint_sla=checkpoint_sla(sums, self.sla, *QUERY),
            checkpoint_sla_per_day=sla_per_day.where(F.col("date") >= date_of(F.lit(self.days_since_ms))),
            failures=failures(facts, self.days_since_ms, until_ms),
        )

    @property
    def days_since_ms(self) -> int:
        """The beginning of the first day in the per-day tables, which cover only the last ``MOST_DAYS``."""
        since_ms, until_ms = self.period
        return max(since_ms, (until_ms // DAY_MS + 1 - MOST_DAYS) * DAY_MS)

    def losses(self) -> dict[str, int]:
        """Return how many records reporters dropped, by the cause: the history may lack as many."""
        lost = self.facts.where((F.col("fact") == LOSS) & (F.col("time_ms") >= self.period.since_ms))
        by_cause = lost.groupBy(F.coalesce("labels", F.lit("")).alias("cause"))
        rows = by_cause.agg(F.sum("count").alias("records")).collect()
        return {row["cause"]: row["records"] for row in rows if row["records"]}


def read_history(
    spark: SparkSession,
    paths: Sequence[str],
    sla: Sla | None = None,
    span_ms: int | None = None,
    until_now: bool = False,
    times: PossibleTimes | None = None,
) -> tuple[History, Reading]:
    """Read stored events and return their history, in one pass over the files.

    Args:
        spark: a classic session.
        paths: files, folders and globs on any of Hadoop's file systems.
        sla: the longest time between two checkpoints; 60 s by default.
        span_ms: the length of the history up to its end, in ms; None for all.
        until_now: whether the last known statuses hold until now; otherwise the history ends with the last
            event.
        times: the possible times; from 2009 to a day from now by default.

    Returns:
        The history, and how reading went.

    Raises:
        ConfigError: there is nothing at a path, or no event in it.
    """
    sla = sla or Sla()
    reader = FactReader(spark, paths, times or PossibleTimes())
    facts = each_once(reader.facts).persist(StorageLevel.MEMORY_AND_DISK)
    period = period_of(facts.select("time_ms"), span_ms, until_now, paths)
    reading = reader.reading()
    reading.duplicates = reading.facts - facts.where(F.col("fact") != SEEN).count()
    days = checkpoint_days(facts, sla, period.since_ms)
    return History(facts, days, facts.where(F.col("fact") == CHECKPOINT), sla, period), reading


def _settled(frame: DataFrame) -> DataFrame:
    """Compute once a small frame that is used repeatedly."""
    if frame.sparkSession.sparkContext._jsc.isLocal():
        # This also cuts the plan; otherwise Spark would plan it again for each table, taking seconds.
        return frame.localCheckpoint()
    return frame.cache()


def period_of(times: DataFrame, span_ms: int | None, until_now: bool, paths: Sequence[str]) -> Period:
    """Return the period that ends with the last fact, or now.

    Args:
        times: has ``time_ms`` of all facts.
        span_ms: its length, in ms; None for everything.
        until_now: whether it ends now.
        paths: where the facts come from, for the error.

    Raises:
        ConfigError: there is no fact.
    """
    (row,) = times.agg(F.min("time_ms").alias("first_ms"), F.max("time_ms").alias("last_ms")).collect()
    if row["last_ms"] is None:
        raise ConfigError(f"{', '.join(paths)}: there is no event that could be used")
    until_ms = max(row["last_ms"], time.time_ns() // 1_000_000) if until_now else row["last_ms"]
    return Period(row["first_ms"] if span_ms is None else until_ms - span_ms, until_ms)
