"""How long each application and query was up, how often it failed, how soon it was up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import date_of
from spark_events.history.plausible import DAY_MS
from spark_events.history.timeline import DOWN, JOB, STARTING, STOPPED, UP, outages, transitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def uptime(
    facts: DataFrame, last_heard: DataFrame, intervals: DataFrame, since_ms: int, until_ms: int
) -> DataFrame:
    """Return a row for each application and query.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        last_heard: as of ``timeline.heard``.
        intervals: as of ``timeline.status_intervals``.
        since_ms: what was before is left out, in ms since the epoch.
        until_ms: the end of what is known.

    Returns:
        ``kind``, ``app_name``, ``query_name``; ``status``, ``state``, ``status_since_ms``: at the end;
        ``up_ms``, ``down_ms``, ``starting_ms``, ``stopped_ms``; ``uptime_percent``: of the time in which it
        was up or down, null where there is none; ``failures``: outages that began; ``restarts``: of a query
        RESTARTING statuses, as ``spark_query_num_restarts`` counts them, of an application outages that
        ended; ``mtbf_ms``: ``up_ms`` for each failure; ``mttr_ms``: the mean length of the outages that
        ended; ``longest_outage_ms``; ``last_heard_ms``: the last event of it.
    """
    window = _clipped(intervals, since_ms, until_ms)
    times = window.groupBy(*JOB).agg(*_times())
    current = _last_of(intervals)
    breaks = _clipped(outages(intervals), since_ms, until_ms)
    failed = breaks.groupBy(*JOB).agg(
        F.count(F.when(F.col("whole_start_ms") >= since_ms, True)).alias("failures"),
        F.count(F.when(F.col("over"), True)).alias("repairs"),
        F.avg(F.when(F.col("over"), _length())).cast("bigint").alias("mttr_ms"),
        F.max(_length()).alias("longest_outage_ms"),
    )
    restarted = _restarts(facts, since_ms).groupBy(*JOB).agg(F.count(F.lit(1)).alias("restarted"))
    heard = _heard_of_jobs(last_heard).groupBy(*JOB).agg(F.max("heard_ms").alias("last_heard_ms"))
    joined = times.join(current, [*JOB])
    for other in (failed, restarted, heard):
        joined = joined.join(other, [*JOB], "left")
    return joined.select(
        *JOB,
        "status",
        "state",
        "status_since_ms",
        *_figures(),
        "last_heard_ms",
    )


def uptime_per_day(facts: DataFrame, intervals: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Return a row for each application and query and day in UTC.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        intervals: as of ``timeline.status_intervals``.
        since_ms: what was before is left out, in ms since the epoch.
        until_ms: the end of what is known.

    Returns:
        ``date``, ``kind``, ``app_name``, ``query_name``, ``up_ms``, ``down_ms``, ``starting_ms``,
        ``stopped_ms``, ``uptime_percent``, ``failures``, ``restarts``, ``mtbf_ms``, as of ``uptime``, each of
        what fell into the day; ``mttr_ms``: of the outages that ended on the day; ``longest_outage_ms``: of
        it, what fell into the day.
    """
    key = ("date", *JOB)
    times = _by_day(_clipped(intervals, since_ms, until_ms)).groupBy(*key).agg(*_times())
    breaks = _clipped(outages(intervals), since_ms, until_ms)
    began = breaks.where(F.col("whole_start_ms") >= since_ms).withColumn(
        "date", date_of(F.col("whole_start_ms"))
    )
    failed = began.groupBy(*key).agg(F.count(F.lit(1)).alias("failures"))
    ended = breaks.where("over").withColumn("date", date_of(F.col("end_ms")))
    repaired = ended.groupBy(*key).agg(
        F.count(F.lit(1)).alias("repairs"), F.avg(_length()).cast("bigint").alias("mttr_ms")
    )
    longest = _by_day(breaks).groupBy(*key).agg(F.max(_length()).alias("longest_outage_ms"))
    restarts = _restarts(facts, since_ms).withColumn("date", date_of(F.col("time_ms")))
    restarted = restarts.groupBy(*key).agg(F.count(F.lit(1)).alias("restarted"))
    joined = times
    for other in (failed, repaired, longest, restarted):
        joined = joined.join(other, [*key], "left")
    return joined.select(*key, *_figures())


def _clipped(intervals: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    return (
        intervals.withColumn("whole_start_ms", F.col("start_ms"))
        .withColumn("start_ms", F.greatest("start_ms", F.lit(since_ms)))
        .withColumn("end_ms", F.least("end_ms", F.lit(until_ms)))
        .where((F.col("end_ms") > F.col("start_ms")) | (F.col("start_ms") == until_ms))
    )


def _by_day(intervals: DataFrame) -> DataFrame:
    """Cut intervals at midnight."""
    days = F.expr(f"sequence(start_ms div {DAY_MS}, greatest(start_ms, end_ms - 1) div {DAY_MS})")
    cut = intervals.withColumn("day", F.explode(days))
    start, end = F.col("day") * DAY_MS, (F.col("day") + 1) * DAY_MS
    return (
        cut.withColumn("start_ms", F.greatest("start_ms", start))
        .withColumn("end_ms", F.least("end_ms", end))
        .withColumn("date", F.date_from_unix_date(F.col("day").cast("int")))
    )


def _times() -> list[Column]:
    return [
        F.sum(F.when(F.col("state") == state, _length()).otherwise(0)).alias(f"{state}_ms")
        for state in (UP, DOWN, STARTING, STOPPED)
    ]


def _figures() -> list[Column | str]:
    counted_ms = F.col("up_ms") + F.col("down_ms")
    restarts = F.when(F.col("kind") == "query", F.col("restarted")).otherwise(F.col("repairs"))
    return [
        *(F.col(f"{state}_ms") for state in (UP, DOWN, STARTING, STOPPED)),
        (100 * F.col("up_ms") / F.when(counted_ms > 0, counted_ms)).alias("uptime_percent"),
        F.coalesce("failures", F.lit(0)).alias("failures"),
        F.coalesce(restarts, F.lit(0)).alias("restarts"),
        (F.col("up_ms") / F.when(F.col("failures") > 0, F.col("failures"))).cast("bigint").alias("mtbf_ms"),
        "mttr_ms",
        F.coalesce("longest_outage_ms", F.lit(0)).alias("longest_outage_ms"),
    ]


def _last_of(intervals: DataFrame) -> DataFrame:
    last = F.max_by(F.struct("status", "state", F.col("start_ms").alias("status_since_ms")), "start_ms")
    return intervals.groupBy(*JOB).agg(last.alias("last")).select(*JOB, "last.*")


def _restarts(facts: DataFrame, since_ms: int) -> DataFrame:
    is_one = (F.col("kind") == "query") & (F.col("status") == "RESTARTING")
    return transitions(facts).where(is_one & (F.col("time_ms") >= since_ms))


def _heard_of_jobs(last_heard: DataFrame) -> DataFrame:
    """Return when something was heard, of an application by whatever event, of a query by its own."""
    of_query = last_heard.where(F.col("query_name").isNotNull())
    queries = of_query.select(F.lit("query").alias("kind"), "app_name", "query_name", "heard_ms")
    names = (F.lit("application").alias("kind"), "app_name", F.lit("").alias("query_name"))
    return queries.unionByName(last_heard.select(*names, "heard_ms"))


def _length() -> Any:
    return F.col("end_ms") - F.col("start_ms")
