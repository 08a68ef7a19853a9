"""The status of each application and query over time.

It is computed in three steps: the statuses of each run on its own; the times at which any run of a job
changes, with the number of runs in each status from then on; and, from these, the status of the job.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import STATUS

JOB = ("kind", "app_name", "query_name")
"""The key of a job: names, which outlive a restart; ``query_name`` is empty for an application."""
UP, DOWN, STARTING, STOPPED = "up", "down", "starting", "stopped"
LOST = "LOST"
"""The status of a job whose end nobody reported, and of which another run began later."""
_ACTIVE = ("RUNNING", "CANCELLING", "FAILING", "RESTARTING", "CREATED")
"""The statuses of a run that goes on; of several runs, the first of these counts."""
_UP_IN = ("RUNNING", "CANCELLING", "FAILING")
_ENDS = (LOST, "FINISHED", "CANCELED", "FAILED")
"""The statuses of a run that is over; of several that end in the same ms, the last of these counts."""
_DOWN_AFTER = (LOST, "FAILED")
_CHRONOLOGY = (
    "CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED"
)  # fmt: skip
"""In which order a run comes to several statuses in the same ms."""


def last_heard(facts: DataFrame, days: DataFrame) -> DataFrame:
    """Return when each run of an application, and each query in it, was last heard of.

    Args:
        facts: of ``facts.SCHEMA``; of the checkpoints among them none are needed.
        days: as of ``checkpoints.checkpoint_days``.

    Returns:
        ``app_name``, ``app_id``, ``query_name`` (null where it was no query's event), ``heard_ms``.
    """
    key = ("app_name", "app_id", "query_name")
    of_facts = facts.select(*key, F.col("time_ms").alias("heard_ms"))
    of_checkpoints = days.select(*key, "heard_ms")
    return of_facts.unionByName(of_checkpoints).groupBy(*key).agg(F.max("heard_ms").alias("heard_ms"))


def status_intervals(facts: DataFrame, heard: DataFrame, until_ms: int) -> DataFrame:
    """Return the status intervals of all applications and queries.

    Overlapping runs of a job (two drivers with one name) form one line, RUNNING while any of them is.
    A run whose end was not reported counts as ended when its application was last heard of (LOST), once
    another run has begun; the latest run counts as going on.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        heard: as of ``last_heard``.
        until_ms: the end of what is known, in ms since the epoch.

    Returns:
        ``kind``, ``app_name``, ``query_name`` (empty for an application); ``status``; ``state``: ``up``
        (RUNNING), ``down`` (FAILED or LOST, and from there on until it is RUNNING again), ``starting`` (not
        yet RUNNING, and no failure before), ``stopped`` (on purpose: FINISHED, CANCELED); ``start_ms``,
        ``end_ms``: ms since the epoch; an interval is empty only where it begins at the very end.
    """
    by_job = Window.partitionBy(*JOB).orderBy("time_ms")
    so_far = by_job.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    runs_in = {status: F.sum(_runs_column(status)).over(so_far) for status in _ACTIVE}
    statuses = _changes(_run_intervals(facts, heard)).select(
        *JOB,
        F.coalesce(*(F.when(runs > 0, F.lit(status)) for status, runs in runs_in.items())).alias("active"),
        F.last("ended_as", ignorenulls=True).over(so_far).alias("ended_as"),
        F.col("time_ms").alias("start_ms"),
        F.coalesce(F.lead("time_ms").over(by_job), F.lit(until_ms)).alias("end_ms"),
    )
    intervals = statuses.select(
        *JOB,
        F.coalesce("active", "ended_as").alias("status"),
        _state().alias("state"),
        "start_ms",
        "end_ms",
    )
    lasting = (F.col("end_ms") > F.col("start_ms")) | (F.col("start_ms") == until_ms)
    return _merged(intervals.where(F.col("status").isNotNull() & lasting), "status", "state")


def outages(intervals: DataFrame) -> DataFrame:
    """Return the periods in which a job was down without interruption.

    Args:
        intervals: as of ``status_intervals``.

    Returns:
        ``kind``, ``app_name``, ``query_name``, ``state`` (``down``), ``start_ms``, ``end_ms``; ``over``:
        whether it was up again, or stopped, after that.
    """
    by_job = Window.partitionBy(*JOB).orderBy("start_ms")
    over = F.lead("start_ms").over(by_job).isNotNull()
    return _merged(intervals, "state").withColumn("over", over).where(F.col("state") == DOWN)


def transitions(facts: DataFrame) -> DataFrame:
    """Return the status changes of applications and queries, with ``JOB`` and the ``run`` they are of."""
    of_query = F.col("kind") == "query"
    application = F.concat_ws("/", "app_id", "attempt")
    return facts.where(F.col("fact") == STATUS).select(
        "kind",
        "app_name",
        F.when(of_query, F.col("query_name")).otherwise("").alias("query_name"),
        F.when(of_query, F.coalesce("run_id", application)).otherwise(application).alias("run"),
        F.coalesce("app_id", F.lit("")).alias("app_id"),
        "time_ms",
        "status",
        "event_id",
    )


def _run_intervals(facts: DataFrame, heard: DataFrame) -> DataFrame:
    """Return the statuses of each run on its own.

    Returns:
        ``JOB``; ``status``; ``start_ms``; ``end_ms``: null where it goes on; ``lost``: whether it ends
        without a report.
    """
    run = Window.partitionBy(*JOB, "run")
    in_order = run.orderBy("time_ms", _place_in(_CHRONOLOGY, "status"), "event_id")
    # A range that excludes runs that began in the same ms.
    later_runs = Window.partitionBy(*JOB).orderBy("began_ms").rangeBetween(1, Window.unboundedFollowing)
    heard_of_application = heard.groupBy("app_name", "app_id").agg(F.max("heard_ms").alias("heard_ms"))
    changes = (
        transitions(facts)
        .withColumn("next_status_ms", F.lead("time_ms").over(in_order))
        .withColumn("began_ms", F.min("time_ms").over(run))
        .withColumn("next_run_ms", F.min("began_ms").over(later_runs))
        .join(heard_of_application, ["app_name", "app_id"], "left")
    )
    is_last = F.col("next_status_ms").isNull()
    lost = F.col("status").isin(*_ACTIVE) & is_last & F.col("next_run_ms").isNotNull()
    lost_ms = F.greatest("time_ms", F.least(F.coalesce("heard_ms", "time_ms"), "next_run_ms"))
    end_ms = F.coalesce("next_status_ms", F.when(lost, lost_ms))
    return changes.select(
        *JOB, "status", F.col("time_ms").alias("start_ms"), end_ms.alias("end_ms"), lost.alias("lost")
    )


def _changes(run_intervals: DataFrame) -> DataFrame:
    """Return the changes in a job's runs, and their times.

    Returns:
        ``JOB``; ``time_ms``; for each active status, ``_runs_column``: how many more runs are in it from
        then on; ``ended_as``: the status that a run ended with, null where none ended.
    """
    begin = F.struct(
        F.col("start_ms").alias("time_ms"),
        F.lit(1).alias("runs"),
        F.when(F.col("status").isin(*_ENDS), F.col("status")).alias("ended_as"),
    )
    end = F.struct(
        F.col("end_ms").alias("time_ms"),
        F.lit(-1).alias("runs"),
        F.when(F.col("lost"), F.lit(LOST)).alias("ended_as"),
    )
    both = run_intervals.select(*JOB, "status", F.inline(F.array(begin, end)))
    more_runs = (
        F.sum(F.when(F.col("status") == status, F.col("runs")).otherwise(0)).alias(_runs_column(status))
        for status in _ACTIVE
    )
    ended_as = F.max_by("ended_as", _place_in(_ENDS, "ended_as")).alias("ended_as")
    return both.where(F.col("time_ms").isNotNull()).groupBy(*JOB, "time_ms").agg(*more_runs, ended_as)


def _runs_column(status: str) -> str:
    return f"runs_{status.lower()}"


def _state() -> Column:
    """Return a job's state from ``active``, its status while a run goes on, and its last ``ended_as``."""
    active = F.col("active")
    failed = F.coalesce(F.col("ended_as").isin(*_DOWN_AFTER), F.lit(False))
    return (
        F.when(active.isin(*_UP_IN), UP)
        .when(failed, DOWN)
        .when(active.isNotNull(), STARTING)
        .otherwise(STOPPED)
    )


def _place_in(order: tuple[str, ...], status: str) -> Column:
    """Return the position of a column's status in an order; null if it is not in it."""
    return F.coalesce(*(F.when(F.col(status) == name, F.lit(place)) for place, name in enumerate(order)))


def _merged(intervals: DataFrame, *values: str) -> DataFrame:
    """Return the intervals with adjacent ones of a job joined if their values are the same."""
    by_job = Window.partitionBy(*JOB).orderBy("start_ms")
    previous_end_ms = F.lag("end_ms").over(by_job)
    changed = previous_end_ms.isNull() | (previous_end_ms != F.col("start_ms"))
    for name in values:
        changed = changed | (F.lag(name).over(by_job) != F.col(name))
    numbered = intervals.withColumn("changed", changed.cast("int"))
    numbered = numbered.withColumn("number", F.sum("changed").over(by_job))
    merged = numbered.groupBy(*JOB, "number", *values)
    return merged.agg(F.min("start_ms").alias("start_ms"), F.max("end_ms").alias("end_ms")).drop("number")
