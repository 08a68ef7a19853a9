"""The uptime of each application and query, its outages, and its recovery times."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import date_of
from spark_events.history.plausible import DAY_MS
from spark_events.history.timeline import DOWN, JOB, STARTING, STOPPED, UP, outages, transitions


def uptime(
    facts: DataFrame, heard: DataFrame, intervals: DataFrame, since_ms: int, until_ms: int
) -> DataFrame:
    """Return a row for each application and query.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        heard: as of ``timeline.last_heard``.
        intervals: as of ``timeline.status_intervals``.
        since_ms: the beginning, in ms since the epoch; anything before is left out.
        until_ms: the end of the known period.

    Returns:
        ``kind``, ``app_name``, ``query_name``; ``status``, ``state``, ``status_since_ms``: at the end;
        ``up_ms``, ``down_ms``, ``starting_ms``, ``stopped_ms``; ``uptime_percent``: of the time in which it
        was up or down, null where there is none; ``failures``: outages that began; ``restarts``: of a query
        RESTARTING statuses, as ``spark_query_num_restarts`` counts them, of an application outages that
        ended; ``mtbf_ms``: ``up_ms`` for each failure; ``mttr_ms``: the mean length of the outages that
        ended; ``longest_outage_ms``; ``last_heard_ms``: the last event of it.
    """
    times = _clipped(intervals, since_ms, until_ms).groupBy(*JOB).agg(*_time_in_states())
    downtimes = _clipped(outages(intervals), since_ms, until_ms)
    failures = downtimes.groupBy(*JOB).agg(
        F.count_if(F.col("whole_start_ms") >= since_ms).alias("failures"),
        F.count_if(F.col("over")).alias("repairs"),
        F.avg(F.when(F.col("over"), _length_ms())).cast("bigint").alias("mttr_ms"),
        F.max(_length_ms()).alias("longest_outage_ms"),
    )
    restarts = _query_restarts(facts, since_ms).groupBy(*JOB).agg(F.count("*").alias("query_restarts"))
    joined = times.join(_current_status(intervals), [*JOB])
    for figures in (failures, restarts, _heard_of_jobs(heard)):
        joined = joined.join(figures, [*JOB], "left")
    return joined.select(*JOB, "status", "state", "status_since_ms", *_figures(), "last_heard_ms")


def uptime_per_day(facts: DataFrame, intervals: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Return a row for each application or query and UTC day.

    Args:
        facts, intervals, since_ms, until_ms: as for ``uptime``.

    Returns:
        ``date``, ``kind``, ``app_name``, ``query_name``, ``up_ms``, ``down_ms``, ``starting_ms``,
        ``stopped_ms``, ``uptime_percent``, ``failures``, ``restarts``, ``mtbf_ms``, as of ``uptime``, each of
        the part within the day; ``mttr_ms``: of the outages that ended on the day; ``longest_outage_ms``: of
        it, the part within the day.
    """
    key = ("date", *JOB)
    joined = _by_day(_clipped(intervals, since_ms, until_ms)).groupBy(*key).agg(*_time_in_states())
    downtimes = _clipped(outages(intervals), since_ms, until_ms)
    began = downtimes.where(F.col("whole_start_ms") >= since_ms)
    began = began.withColumn("date", date_of(F.col("whole_start_ms")))
    failures = began.groupBy(*key).agg(F.count("*").alias("failures"))
    ended = downtimes.where("over").withColumn("date", date_of(F.col("end_ms")))
    mttr_ms = F.avg(_length_ms()).cast("bigint").alias("mttr_ms")
    repairs = ended.groupBy(*key).agg(F.count("*").alias("repairs"), mttr_ms)
    longest = _by_day(downtimes).groupBy(*key).agg(F.max(_length_ms()).alias("longest_outage_ms"))
    restarts = _query_restarts(facts, since_ms).withColumn("date", date_of(F.col("time_ms")))
    restarts = restarts.groupBy(*key).agg(F.count("*").alias("query_restarts"))
    for figures in (failures, repairs, longest, restarts):
        joined = joined.join(figures, [*key], "left")
    return joined.select(*key, *_figures())


def _clipped(intervals: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Return the parts of intervals within a period, with the time at which each whole interval began."""
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


def _time_in_states() -> list[Column]:
    return [
        F.sum(F.when(F.col("state") == state, _length_ms()).otherwise(0)).alias(f"{state}_ms")
        for state in (UP, DOWN, STARTING, STOPPED)
    ]


def _figures() -> list[Column | str]:
    """Return the columns common to both tables, computed from the joined frame."""
    counted_ms = F.col("up_ms") + F.col("down_ms")
    restarts = F.when(F.col("kind") == "query", F.col("query_restarts")).otherwise(F.col("repairs"))
    return [
        *(F.col(f"{state}_ms") for state in (UP, DOWN, STARTING, STOPPED)),
        (100 * F.col("up_ms") / F.when(counted_ms > 0, counted_ms)).alias("uptime_percent"),
        F.coalesce("failures", F.lit(0)).alias("failures"),
        F.coalesce(restarts, F.lit(0)).alias("restarts"),
        (F.col("up_ms") / F.when(F.col("failures") > 0, F.col("failures"))).cast("bigint").alias("mtbf_ms"),
        "mttr_ms",
        F.coalesce("longest_outage_ms", F.lit(0)).alias("longest_outage_ms"),
    ]


def _current_status(intervals: DataFrame) -> DataFrame:
    last = F.max_by(F.struct("status", "state", F.col("start_ms").alias("status_since_ms")), "start_ms")
    return intervals.groupBy(*JOB).agg(last.alias("last")).select(*JOB, "last.*")


def _query_restarts(facts: DataFrame, since_ms: int) -> DataFrame:
    restarting = (F.col("kind") == "query") & (F.col("status") == "RESTARTING")
    return transitions(facts).where(restarting & (F.col("time_ms") >= since_ms))


def _heard_of_jobs(heard: DataFrame) -> DataFrame:
    """Return when each was last heard of: applications through any event, queries through their own."""
    of_queries = heard.where(F.col("query_name").isNotNull())
    queries = of_queries.select(F.lit("query").alias("kind"), "app_name", "query_name", "heard_ms")
    application = (F.lit("application").alias("kind"), "app_name", F.lit("").alias("query_name"))
    both = queries.unionByName(heard.select(*application, "heard_ms"))
    return both.groupBy(*JOB).agg(F.max("heard_ms").alias("last_heard_ms"))


def _length_ms() -> Column:
    return F.col("end_ms") - F.col("start_ms")
