"""The checkpoints of each query, in time or late according to the SLA.

A checkpoint is late by its duration if its micro-batch took longer than the SLA. It is late by its gap if it
was owed for longer than the SLA: since the last one, even while the query was down, but not while it was idle
or stopped on purpose (the clock of ``spark_events.listeners.checkpoint_watch``). An event says how long it
was owed within its own application (``owedMs``); across applications, this module computes it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import CHECKPOINT, OVERDUE, date_of
from spark_events.history.sla import Sla as Sla  # where docs/history.md imports it from
from spark_events.history.timeline import DOWN, STOPPED, transitions

QUERY = ("app_name", "query_name")
_COUNTS = ("completed", "failed", "late_by_duration", "late_by_gap", "late")


def checkpoint_days(facts: DataFrame, sla: Sla, since_ms: int | None = None) -> DataFrame:
    """Sum up the checkpoints of each day, as far as that day's facts allow.

    Args:
        facts: of ``facts.SCHEMA``, each once; whole days.
        sla: the limit.
        since_ms: in ms since the epoch; a day that begins before it is summed up in two parts.

    Returns:
        ``date``, ``app_name``, ``query_name``, ``app_id``; ``counted``: whether it is not before
        ``since_ms``; ``completed``, ``failed``, ``late_by_duration``, ``late_by_gap``, ``late`` (by either):
        counts; ``worst_duration_ms``, ``worst_gap_ms``, ``duration_sum_ms``; ``first``: of the completed
        ones, with ``time_ms``, ``owed_ms``, ``duration_ms``; ``last_ms``: when the last was completed;
        ``heard_ms``: when the last of all was.
    """
    checkpoints = (
        facts.where(F.col("fact") == CHECKPOINT)
        # If an event does not say how long a checkpoint was owed, take its duration.
        .withColumn("owed_ms", F.coalesce("owed_ms", "duration_ms"))
        .withColumn("sla_ms", _sla_ms(sla))
        .withColumn("counted", F.col("time_ms") >= (since_ms or 0))
        .withColumn("app_id", F.coalesce("app_id", F.lit("")))
    )
    completed = F.col("status") == "COMPLETED"
    slow, gap = F.col("duration_ms") > F.col("sla_ms"), F.col("owed_ms") > F.col("sla_ms")
    return checkpoints.groupBy("date", *QUERY, "counted", "app_id").agg(
        F.count_if(completed).alias("completed"),
        F.count_if(~completed).alias("failed"),
        F.count_if(completed & slow).alias("late_by_duration"),
        F.count_if(completed & gap).alias("late_by_gap"),
        F.count_if(completed & (slow | gap)).alias("late"),
        F.max(F.when(completed, F.col("duration_ms"))).alias("worst_duration_ms"),
        F.max(F.when(completed, F.col("owed_ms"))).alias("worst_gap_ms"),
        F.sum(F.when(completed, F.col("duration_ms"))).alias("duration_sum_ms"),
        F.min(F.when(completed, F.struct("time_ms", "owed_ms", "duration_ms"))).alias("first"),
        F.max(F.when(completed, F.col("time_ms"))).alias("last_ms"),
        F.max("time_ms").alias("heard_ms"),
    )


def checkpoint_sums(
    days: DataFrame, facts: DataFrame, intervals: DataFrame, sla: Sla, until_ms: int
) -> DataFrame:
    """Return the sums of each day and application that count, including late gaps between applications.

    Args:
        days: as of ``checkpoint_days``, of all days.
        facts: of ``facts.SCHEMA``; those of checkpoints are not needed.
        intervals: as of ``timeline.status_intervals``.
        sla: as given to ``checkpoint_days``.
        until_ms: the end of the known period, in ms since the epoch.

    Returns:
        ``date``, ``app_name``, ``query_name``; the counts, worst values and sum of ``checkpoint_days``;
        ``overdue``: 1 in the row that stands for a checkpoint that is overdue at the end, else 0.
    """
    counted = _over_applications(days, facts, sla).where("counted").withColumn("overdue", F.lit(0))
    overdue = _overdue(days, facts, intervals, sla, until_ms)
    return counted.select(*overdue.columns).unionByName(overdue)


def checkpoint_sla(sums: DataFrame, sla: Sla, *key: str) -> DataFrame:
    """Return a row for each ``key``: ``QUERY``, or ``date``, a day in UTC, and ``QUERY``.

    Args:
        sums: as of ``checkpoint_sums``.
        sla: as given to it.
        key: columns of it.

    Returns:
        The key; ``sla_ms``; ``completed``, ``failed``, ``late_by_duration``, ``late_by_gap``: counts, the
        last with the checkpoint that is overdue at the end; ``overdue``: whether one is; ``met``: completed
        and not late; ``met_percent``: of those completed and the one overdue, null where there is none;
        ``worst_duration_ms``, ``worst_gap_ms``, ``mean_duration_ms``.
    """
    summed = sums.groupBy(*key).agg(
        *(F.sum(name).alias(name) for name in (*_COUNTS, "duration_sum_ms")),
        *(F.max(name).alias(name) for name in ("worst_duration_ms", "worst_gap_ms", "overdue")),
    )
    owed = F.col("completed") + F.col("overdue")
    met = F.col("completed") - F.col("late")
    mean = F.col("duration_sum_ms") / F.when(F.col("completed") > 0, F.col("completed"))
    return summed.select(
        *key,
        _sla_ms(sla).alias("sla_ms"),
        "completed",
        "failed",
        "late_by_duration",
        "late_by_gap",
        (F.col("overdue") > 0).alias("overdue"),
        met.alias("met"),
        (100 * met / F.when(owed > 0, owed)).alias("met_percent"),
        "worst_duration_ms",
        "worst_gap_ms",
        mean.alias("mean_duration_ms"),
    )


def _sla_ms(sla: Sla) -> Column:
    """Return the SLA of the query that ``query_name`` names, in ms."""
    sla_ms = F.lit(sla.default_ms).cast("bigint")
    for query_name, query_sla_ms in sla.by_query.items():
        sla_ms = F.when(F.col("query_name") == query_name, F.lit(query_sla_ms)).otherwise(sla_ms)
    return sla_ms


def _over_applications(days: DataFrame, facts: DataFrame, sla: Sla) -> DataFrame:
    """Compute how long an application's first checkpoint was owed, if the previous one failed or died."""
    of_application = Window.partitionBy(*QUERY, "app_id")
    is_first = F.col("first.time_ms") == F.min("first.time_ms").over(of_application)
    days = days.withColumn("is_first", F.coalesce(is_first, F.lit(False)))
    days = days.join(_owed_since(days, facts), [*QUERY, "app_id"], "left").withColumn("sla_ms", _sla_ms(sla))
    first, sla_ms = F.col("first"), F.col("sla_ms")
    gap_ms = first["time_ms"] - F.col("owed_since_ms")
    late_by_its_event = first["owed_ms"] > sla_ms
    late_by_duration = first["duration_ms"] > sla_ms
    newly_late = F.coalesce(F.col("is_first") & (gap_ms > sla_ms) & ~late_by_its_event, F.lit(False))
    return (
        days.withColumn("late_by_gap", F.col("late_by_gap") + newly_late.cast("int"))
        .withColumn("late", F.col("late") + (newly_late & ~late_by_duration).cast("int"))
        .withColumn("worst_gap_ms", F.greatest("worst_gap_ms", F.when(F.col("is_first"), gap_ms)))
    )


def _owed_since(days: DataFrame, facts: DataFrame) -> DataFrame:
    """Return the time from which the first checkpoint of each application was owed.

    Returns:
        ``app_name``, ``query_name``, ``app_id``; ``owed_since_ms``: the last checkpoint of the application
        before; null where there is none, or the query was stopped on purpose since.
    """

    def moments(frame: DataFrame, time: str, moment: str) -> DataFrame:
        return frame.select(*QUERY, "app_id", F.col(time).alias("time_ms"), F.lit(moment).alias("moment"))

    firsts = moments(days.where("is_first"), "first.time_ms", "first")
    lasts = moments(days.where("last_ms is not null"), "last_ms", "last")
    stopped = transitions(facts).where("kind = 'query' and status in ('FINISHED', 'CANCELED')")
    all_moments = firsts.unionByName(lasts).unionByName(moments(stopped, "time_ms", "stop"))
    # Within one ms, a checkpoint comes before that of another application, and before the query's end.
    order = F.when(F.col("moment") == "first", 0).when(F.col("moment") == "last", 1).otherwise(2)
    earlier = Window.partitionBy(*QUERY).orderBy("time_ms", order).rowsBetween(Window.unboundedPreceding, -1)
    last_or_stop = F.when(F.col("moment") != "first", F.struct("moment", "time_ms"))
    with_before = all_moments.withColumn("before", F.last(last_or_stop, ignorenulls=True).over(earlier))
    since_ms = F.when(F.col("before.moment") == "last", F.col("before.time_ms"))
    return with_before.where("moment = 'first'").select(*QUERY, "app_id", since_ms.alias("owed_since_ms"))


def _overdue(days: DataFrame, facts: DataFrame, intervals: DataFrame, sla: Sla, until_ms: int) -> DataFrame:
    """Return the queries whose next checkpoint is overdue at the end, as rows of the last day."""
    of_queries = intervals.where("kind = 'query'").groupBy(*QUERY)
    states = of_queries.agg(F.max_by("state", "start_ms").alias("state"))
    last = days.groupBy(*QUERY).agg(F.max("last_ms").alias("last_ms"))
    # Reported live, as owed for longer than the SLA set at that time.
    reported = facts.where(F.col("fact") == OVERDUE).groupBy(*QUERY)
    reported = reported.agg(F.max(F.struct("time_ms", "owed_ms")).alias("reported"))
    queries = states.where(F.col("state") != STOPPED)
    queries = queries.join(last, [*QUERY], "left").join(reported, [*QUERY], "left")
    still_owed = F.coalesce(F.col("reported.time_ms") > F.col("last_ms"), F.col("reported").isNotNull())
    since_ms = F.when(still_owed, F.col("reported.time_ms") - F.col("reported.owed_ms")).when(
        F.col("state") == DOWN, F.col("last_ms")
    )
    overdue = queries.withColumn("worst_gap_ms", F.lit(until_ms) - since_ms)
    none = F.lit(None).cast("bigint")
    return overdue.where(F.col("worst_gap_ms") > _sla_ms(sla)).select(
        date_of(F.lit(until_ms)).alias("date"),
        *QUERY,
        *(F.lit(int(name == "late_by_gap")).alias(name) for name in _COUNTS),
        none.alias("worst_duration_ms"),
        "worst_gap_ms",
        none.alias("duration_sum_ms"),
        F.lit(1).alias("overdue"),
    )
