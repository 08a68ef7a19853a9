"""In which status each application and query was, from when to when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import STATUS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOB = ("kind", "app_name", "query_name")
"""What a history is of: names, which outlive a restart; ``query_name`` is empty for an application."""
UP, DOWN, STARTING, STOPPED = "up", "down", "starting", "stopped"
LOST = "LOST"
"""The status of a job whose end nobody reported, and of which another run began later."""
_ACTIVE = ("RUNNING", "CANCELLING", "FAILING", "RESTARTING", "CREATED")
"""What a job with several runs is in: the first of these in which one of them is."""
_ENDED = (LOST, "FINISHED", "CANCELED", "FAILED")
"""Where several runs end in the same ms, the last of these counts."""
_ORDER = ("CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED")
_ENDS_IN_FAILURE = ("FAILED", LOST)


def heard(facts: DataFrame, days: DataFrame) -> DataFrame:
    """Return when something was last heard of each run of an application, and of each query in it.

    Args:
        facts: of ``facts.SCHEMA``; of the checkpoints among them none are needed.
        days: as of ``checkpoints.checkpoint_days``.

    Returns:
        ``app_name``, ``app_id``, ``query_name`` (null where it was no query's event), ``heard_ms``.
    """
    key = ("app_name", "app_id", "query_name")
    rows = facts.select(*key, F.col("time_ms").alias("heard_ms"))
    both = rows.unionByName(days.select(*key, "heard_ms"))
    return both.groupBy(*key).agg(F.max("heard_ms").alias("heard_ms"))


def status_intervals(facts: DataFrame, last_heard: DataFrame, until_ms: int) -> DataFrame:
    """Return the status intervals of all applications and queries.

    Runs of a job that overlap (two drivers of one name) make one line: it is RUNNING while one of them is.
    A run of which no end is told ended when its application was last heard of, once another run began (LOST);
    the latest run goes on.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        last_heard: as of ``heard``.
        until_ms: the end of what is known, in ms since the epoch.

    Returns:
        ``kind``, ``app_name``, ``query_name`` (empty for an application); ``status``; ``state``: ``up``
        (RUNNING), ``down`` (FAILED or LOST, and from there on until it is RUNNING again), ``starting`` (not
        yet RUNNING, and no failure before), ``stopped`` (on purpose: FINISHED, CANCELED); ``start_ms``,
        ``end_ms``: ms since the epoch; an interval is empty only where it begins at the very end.
    """
    by_job = Window.partitionBy(*JOB).orderBy("time_ms")
    so_far = by_job.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    points = _points(_of_runs(facts, last_heard))
    for status in _ACTIVE:
        points = points.withColumn(status, F.sum(status).over(so_far))
    last_end = F.last("ended", ignorenulls=True).over(so_far)
    ends = (F.when(last_end == number, F.lit(name)) for number, name in enumerate(_ENDED))
    points = points.withColumn("ended", F.coalesce(*ends))
    active = F.coalesce(*(F.when(F.col(status) > 0, F.lit(status)) for status in _ACTIVE))
    failed = F.coalesce(F.col("ended").isin(*_ENDS_IN_FAILURE), F.lit(False))
    state = (
        F.when(active.isin("RUNNING", "CANCELLING", "FAILING"), UP)
        .when(failed, DOWN)
        .when(active.isNotNull(), STARTING)
        .otherwise(STOPPED)
    )
    intervals = points.select(
        *JOB,
        F.coalesce(active, "ended").alias("status"),
        state.alias("state"),
        F.col("time_ms").alias("start_ms"),
        F.coalesce(F.lead("time_ms").over(by_job), F.lit(until_ms)).alias("end_ms"),
    )
    lasting = (F.col("end_ms") > F.col("start_ms")) | (F.col("start_ms") == until_ms)
    return _merged(intervals.where(F.col("status").isNotNull() & lasting), "status", "state")


def outages(intervals: DataFrame) -> DataFrame:
    """Return the times in which a job was down without a break.

    Args:
        intervals: as of ``status_intervals``.

    Returns:
        ``kind``, ``app_name``, ``query_name``, ``state`` (``down``), ``start_ms``, ``end_ms``; ``over``:
        whether it was up again, or stopped, after that.
    """
    by_job = Window.partitionBy(*JOB).orderBy("start_ms")
    over = F.lead("start_ms").over(by_job).isNotNull()
    return _merged(intervals, "state").withColumn("over", over).where(F.col("state") == DOWN)


def _merged(intervals: DataFrame, *same: str) -> DataFrame:
    """Join what follows one another without a change."""
    by_job = Window.partitionBy(*JOB).orderBy("start_ms")
    changed = F.lag("end_ms").over(by_job).isNull() | (F.lag("end_ms").over(by_job) != F.col("start_ms"))
    for name in same:
        changed = changed | (F.lag(name).over(by_job) != F.col(name))
    numbered = intervals.withColumn("changed", changed.cast("int"))
    numbered = numbered.withColumn("island", F.sum("changed").over(by_job))
    merged = numbered.groupBy(*JOB, "island", *same)
    return merged.agg(F.min("start_ms").alias("start_ms"), F.max("end_ms").alias("end_ms")).drop("island")


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


def _of_runs(facts: DataFrame, last_heard: DataFrame) -> DataFrame:
    """Return each status of each run, its end (null where it goes on), and whether the run was lost then."""
    order = F.coalesce(
        *(F.when(F.col("status") == name, F.lit(number)) for number, name in enumerate(_ORDER))
    )
    by_run = Window.partitionBy(*JOB, "run").orderBy("time_ms", order, "event_id")
    of_run = Window.partitionBy(*JOB, "run")
    changes = transitions(facts)
    changes = changes.withColumn("next_ms", F.lead("time_ms").over(by_run))
    changes = changes.withColumn("began_ms", F.min("time_ms").over(of_run))
    # The next run to begin, by a range that leaves out those that began in the same ms.
    later = Window.partitionBy(*JOB).orderBy("began_ms").rangeBetween(1, Window.unboundedFollowing)
    changes = changes.withColumn("next_run_ms", F.min("began_ms").over(later))
    of_application = last_heard.groupBy("app_name", "app_id").agg(F.max("heard_ms").alias("heard_ms"))
    changes = changes.join(of_application, ["app_name", "app_id"], "left")
    active = F.col("status").isin(*_ACTIVE)
    gone = active & F.col("next_ms").isNull() & F.col("next_run_ms").isNotNull()
    lost_ms = F.greatest("time_ms", F.least(F.coalesce("heard_ms", "time_ms"), "next_run_ms"))
    end_ms = F.coalesce("next_ms", F.when(gone, lost_ms))
    return changes.select(*JOB, "status", "time_ms", end_ms.alias("end_ms"), gone.alias("gone"))


def _points(of_runs: DataFrame) -> DataFrame:
    """Return the times at which anything changes, with by how much, for each status, and what ended then."""
    marks = F.array(
        _mark(F.col("time_ms"), F.when(F.col("status").isin(*_ACTIVE), F.col("status")), 1, _ended("status")),
        _mark(
            F.col("end_ms"),
            F.when(F.col("status").isin(*_ACTIVE), F.col("status")),
            -1,
            F.when(F.col("gone"), F.lit(_ENDED.index(LOST))),
        ),
    )
    marked = of_runs.select(*JOB, F.explode(marks).alias("mark")).select(*JOB, "mark.*")
    changes = [
        F.sum(F.when(F.col("active") == status, F.col("change")).otherwise(0)).alias(status)
        for status in _ACTIVE
    ]
    return (
        marked.where("time_ms is not null")
        .groupBy(*JOB, "time_ms")
        .agg(*changes, F.max("ended").alias("ended"))
    )


def _mark(time_ms: Any, active: Any, change: int, ended: Any) -> Any:
    return F.struct(
        time_ms.alias("time_ms"),
        active.alias("active"),
        F.lit(change).alias("change"),
        ended.cast("int").alias("ended"),
    )


def _ended(status: str) -> Any:
    numbers = (F.when(F.col(status) == name, F.lit(number)) for number, name in enumerate(_ENDED))
    return F.coalesce(*numbers)
