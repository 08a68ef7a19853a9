"""Which checkpoints of each query were completed within the SLA.

A checkpoint is late by its duration when its micro-batch took longer than the SLA, and late by its gap when
it was owed for longer: since the last one, also while the query was down, but not while it was idle or
stopped on purpose (the clock of ``spark_events.listeners.checkpoint_watch``). An event tells that of its own
application (``owedMs``); over the end of one, it is reckoned here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import CHECKPOINT, OVERDUE, date_of
from spark_events.history.timeline import DOWN, STOPPED, transitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = ("app_name", "query_name")
_COUNTS = ("completed", "failed", "late_by_duration", "late_by_gap", "late")


@dataclass(frozen=True)
class Sla:
    """The longest time that there may be between two checkpoints, and that one may take.

    Attributes:
        default_ms: of all queries.
        by_query: of some, by their names, in ms.
    """

    default_ms: int = 60_000
    by_query: Mapping[str, int] = field(default_factory=dict)

    def column(self) -> Any:
        """Return the SLA of ``query_name``, in ms."""
        sla = F.lit(self.default_ms).cast("bigint")
        for name, its_ms in self.by_query.items():
            sla = F.when(F.col("query_name") == name, F.lit(its_ms)).otherwise(sla)
        return sla


def checkpoint_days(facts: DataFrame, sla: Sla, since_ms: int | None = None) -> DataFrame:
    """Sum up the checkpoints of each day, as far as that day's facts say it.

    Args:
        facts: of ``facts.SCHEMA``, each once; whole days.
        sla: what is late.
        since_ms: a day that begins before is summed up in two parts, in ms since the epoch.

    Returns:
        ``date``, ``app_name``, ``query_name``, ``app_id``; ``counted``: whether it is not before
        ``since_ms``; ``completed``, ``failed``, ``late_by_duration``, ``late_by_gap``, ``late`` (by either):
        counts; ``worst_duration_ms``, ``worst_gap_ms``, ``duration_sum_ms``; ``first``: of the completed
        ones, with ``time_ms``, ``owed_ms``, ``duration_ms``; ``last_ms``: when the last was completed;
        ``heard_ms``: when the last of all was.
    """
    ones = facts.where(F.col("fact") == CHECKPOINT)
    # What does not say how long it was owed was owed for as long as it took.
    ones = ones.withColumn("owed_ms", F.coalesce("owed_ms", "duration_ms")).withColumn("sla_ms", sla.column())
    done = F.col("status") == "COMPLETED"
    slow, gap = F.col("duration_ms") > F.col("sla_ms"), F.col("owed_ms") > F.col("sla_ms")
    key = (
        (F.col("time_ms") >= (since_ms or 0)).alias("counted"),
        F.coalesce("app_id", F.lit("")).alias("app_id"),
    )

    def count(condition: Any) -> Any:
        return F.count(F.when(done & condition, True))

    return ones.groupBy("date", *QUERY, *key).agg(
        F.count(F.when(done, True)).alias("completed"),
        F.count(F.when(~done, True)).alias("failed"),
        count(slow).alias("late_by_duration"),
        count(gap).alias("late_by_gap"),
        count(slow | gap).alias("late"),
        F.max(F.when(done, F.col("duration_ms"))).alias("worst_duration_ms"),
        F.max(F.when(done, F.col("owed_ms"))).alias("worst_gap_ms"),
        F.sum(F.when(done, F.col("duration_ms"))).alias("duration_sum_ms"),
        F.min(F.when(done, F.struct("time_ms", "owed_ms", "duration_ms"))).alias("first"),
        F.max(F.when(done, F.col("time_ms"))).alias("last_ms"),
        F.max("time_ms").alias("heard_ms"),
    )


class CheckpointSla:
    """The two tables of checkpoints against the SLA.

    Args:
        days: as of ``checkpoint_days``, of all days.
        facts: of ``facts.SCHEMA``; of the checkpoints among them none are needed.
        intervals: as of ``timeline.status_intervals``.
        sla: the one that ``days`` was made with.
        until_ms: the end of what is known, in ms since the epoch.
    """

    def __init__(
        self, days: DataFrame, facts: DataFrame, intervals: DataFrame, sla: Sla, until_ms: int
    ) -> None:
        self._sla = sla
        counted = _over_applications(days, facts, sla).where("counted").withColumn("overdue", F.lit(0))
        overdue = _overdue(days, facts, intervals, sla, until_ms)
        self._rows = counted.select(*overdue.columns).unionByName(overdue)

    def per_day(self) -> DataFrame:
        """Return a row for each query and day in UTC.

        Returns:
            ``date``, ``app_name``, ``query_name``, ``sla_ms``; ``completed``, ``failed``,
            ``late_by_duration``, ``late_by_gap``: counts, the last with the checkpoint that is overdue at the
            end; ``overdue``: whether one is; ``met``: completed and not late; ``met_percent``: of those
            completed and the one overdue, null where there is none; ``worst_duration_ms``, ``worst_gap_ms``,
            ``mean_duration_ms``.
        """
        return self._summed("date", *QUERY)

    def in_all(self) -> DataFrame:
        """Return a row for each query, with the columns of ``per_day`` but for ``date``."""
        return self._summed(*QUERY)

    def _summed(self, *key: str) -> DataFrame:
        sums = self._rows.groupBy(*key).agg(
            *(F.sum(name).alias(name) for name in _COUNTS),
            F.max("worst_duration_ms").alias("worst_duration_ms"),
            F.max("worst_gap_ms").alias("worst_gap_ms"),
            F.sum("duration_sum_ms").alias("duration_sum_ms"),
            F.max("overdue").alias("overdue"),
        )
        owed = F.col("completed") + F.col("overdue")
        met = F.col("completed") - F.col("late")
        mean = F.col("duration_sum_ms") / F.when(F.col("completed") > 0, F.col("completed"))
        return sums.select(
            *key,
            self._sla.column().alias("sla_ms"),
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


def _over_applications(days: DataFrame, facts: DataFrame, sla: Sla) -> DataFrame:
    """Reckon how long an application's first checkpoint was owed, where the one before failed or died."""
    of_application = Window.partitionBy(*QUERY, "app_id")
    is_first = F.col("first.time_ms") == F.min("first.time_ms").over(of_application)
    days = days.withColumn("is_first", F.coalesce(is_first, F.lit(False)))
    days = days.join(_owed_since(days, facts), [*QUERY, "app_id"], "left").withColumn("sla_ms", sla.column())
    first, sla_ms = F.col("first"), F.col("sla_ms")
    gap_ms = first["time_ms"] - F.col("owed_since_ms")
    more = F.col("is_first") & (gap_ms > sla_ms) & (first["owed_ms"] <= sla_ms)
    newly = F.coalesce(more, F.lit(False))
    late_anyhow = first["duration_ms"] > sla_ms
    return (
        days.withColumn("late_by_gap", F.col("late_by_gap") + newly.cast("int"))
        .withColumn("late", F.col("late") + (newly & ~late_anyhow).cast("int"))
        .withColumn("worst_gap_ms", F.greatest("worst_gap_ms", F.when(F.col("is_first"), gap_ms)))
    )


def _owed_since(days: DataFrame, facts: DataFrame) -> DataFrame:
    """Return, of each application but the first, the last checkpoint before its own, unless stopped since."""
    ends = transitions(facts).where("kind = 'query' and status in ('FINISHED', 'CANCELED')")
    stops = ends.select(*QUERY, F.lit("").alias("app_id"), F.col("time_ms"), F.lit("stop").alias("what"))
    lasts = days.where("last_ms is not null").select(
        *QUERY, "app_id", F.col("last_ms").alias("time_ms"), F.lit("done").alias("what")
    )
    firsts = days.where("is_first").select(
        *QUERY, "app_id", F.col("first.time_ms").alias("time_ms"), F.lit("first").alias("what")
    )
    # In one ms, the checkpoint before that of another application, and before the query's end.
    order = F.when(F.col("what") == "first", 0).when(F.col("what") == "done", 1).otherwise(2)
    in_order = Window.partitionBy(*QUERY).orderBy("time_ms", order)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    past = F.when(F.col("what") != "first", F.struct("what", "time_ms"))
    marked = firsts.unionByName(lasts).unionByName(stops)
    marked = marked.withColumn("before", F.last(past, ignorenulls=True).over(before))
    since = F.when(F.col("before.what") == "done", F.col("before.time_ms"))
    return marked.where("what = 'first'").select(*QUERY, "app_id", since.alias("owed_since_ms"))


def _overdue(days: DataFrame, facts: DataFrame, intervals: DataFrame, sla: Sla, until_ms: int) -> DataFrame:
    """Return the queries whose next checkpoint is overdue at the end, as rows of the last day."""
    last = days.groupBy(*QUERY).agg(F.max("last_ms").alias("last_ms"))
    said = facts.where(F.col("fact") == OVERDUE).groupBy(*QUERY)
    # Reported live: owed for longer than the SLA that was set then.
    said = said.agg(F.max(F.struct("time_ms", "owed_ms")).alias("said"))
    queries = intervals.where("kind = 'query'").groupBy(*QUERY)
    now = queries.agg(F.max_by("state", "start_ms").alias("state"))
    joined = now.where(F.col("state") != STOPPED).join(last, [*QUERY], "left").join(said, [*QUERY], "left")
    open_said = F.coalesce(F.col("said.time_ms") > F.col("last_ms"), F.col("said").isNotNull())
    since_ms = F.when(open_said, F.col("said.time_ms") - F.col("said.owed_ms")).when(
        F.col("state") == DOWN, F.col("last_ms")
    )
    late = joined.withColumn("worst_gap_ms", F.lit(until_ms) - since_ms).where(
        F.col("worst_gap_ms") > sla.column()
    )
    none = F.lit(None).cast("bigint")
    return late.select(
        date_of(F.lit(until_ms)).alias("date"),
        *QUERY,
        *(F.lit(int(name == "late_by_gap")).alias(name) for name in _COUNTS),
        none.alias("worst_duration_ms"),
        "worst_gap_ms",
        none.alias("duration_sum_ms"),
        F.lit(1).alias("overdue"),
    )
