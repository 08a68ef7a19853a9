"""The failures of applications, queries and jobs, counted by day and error."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.facts import FAILURE


def failures(facts: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Return a row for each day, job that failed, error and set of labels.

    Args:
        facts: of ``facts.SCHEMA``, each once.
        since_ms, until_ms: failures before and after are left out, in ms since the epoch.

    Returns:
        ``date``: in UTC; ``kind``: ``application``, ``query``, ``job`` or ``stage``; ``app_name``;
        ``query_name``: empty if it neither was nor belonged to a query; ``error``: Spark's error condition,
        the exception's class where there is none; ``labels``: of the failure enrichers, ``type=USER,
        team=x``; ``count``; ``first_ms``, ``last_ms``: since the epoch; ``message``: of the last.
    """
    failed = facts.where((F.col("fact") == FAILURE) & F.col("time_ms").between(since_ms, until_ms))
    return failed.groupBy(
        "date",
        "kind",
        "app_name",
        F.coalesce("query_name", F.lit("")).alias("query_name"),
        F.coalesce("error_class", "exception_type", F.lit("")).alias("error"),
        F.coalesce("labels", F.lit("")).alias("labels"),
    ).agg(
        F.count(F.lit(1)).alias("count"),
        F.min("time_ms").alias("first_ms"),
        F.max("time_ms").alias("last_ms"),
        # Within one ms, order by id, so that the last one does not depend on the reading order.
        F.max_by("message", F.struct("time_ms", "event_id")).alias("message"),
    )
