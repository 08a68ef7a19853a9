"""The failures of applications, queries and jobs, counted by day and error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import FAILURE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def failures(facts: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Return a row for each day, job that failed, error and set of labels.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        since_ms: failures before are left out, in ms since the epoch.
        until_ms: failures after are left out, in ms since the epoch.

    Returns:
        ``date``: in UTC; ``kind``: ``application``, ``query``, ``job`` or ``stage``; ``app_name``;
        ``query_name``: empty where it was no query, nor worked for one; ``error``: Spark's error condition,
        the exception's class where there is none; ``labels``: of the failure enrichers, ``type=USER,
        team=x``; ``count``; ``first_ms``, ``last_ms``: since the epoch; ``message``: of the last.
    """
    failed = facts.where((F.col("fact") == FAILURE) & F.col("time_ms").between(since_ms, until_ms))
    error = F.coalesce("error_class", "exception_type", F.lit(""))
    failed = failed.withColumn("error", error).withColumn("query_name", F.coalesce("query_name", F.lit("")))
    failed = failed.withColumn("labels", F.coalesce("labels", F.lit("")))
    # By id, where two fall into one ms: in whatever order they were read, the same one is the last.
    last = F.max(F.struct("time_ms", "event_id", "message"))
    return (
        failed.groupBy("date", "kind", "app_name", "query_name", "error", "labels")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min("time_ms").alias("first_ms"),
            F.max("time_ms").alias("last_ms"),
            last.alias("last"),
        )
        .withColumn("message", F.col("last.message"))
        .drop("last")
    )
