"""The lineage of a statement that was not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_events.api import LineageGraph
from spark_events.lineage.datasets import catalogs_of
from spark_events.lineage.graph import GraphBuilder
from spark_events.lineage.plans import read_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BUDGET_MS = 30_000


def lineage_of(spark: SparkSession, statement: str | DataFrame) -> LineageGraph:
    """Return what a statement would read and write, without running it.

    Args:
        spark: a SparkSession.
        statement: an SQL text, such as ``INSERT INTO … SELECT …``, or a DataFrame, which has sources alone.

    Example::

        print(lineage_of(spark, "INSERT INTO totals SELECT name, sum(x) FROM orders GROUP BY name"))

    Raises:
        pyspark.errors.AnalysisException: the statement is invalid, or names something that does not exist.
        TypeError: the JVM cannot be reached, as with Spark Connect.
    """
    java_session = getattr(spark, "_jsparkSession", None)
    if java_session is None:
        raise TypeError("lineage_of needs a SparkSession in the driver's process, not one of Spark Connect")
    if isinstance(statement, str):
        state = java_session.sessionState()
        skip = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        execution = state.executePlan(state.sqlParser().parsePlan(statement), skip)
    else:
        execution = statement._jdf.queryExecution()
    plan = read_plan(spark, execution.analyzed(), _BUDGET_MS)
    return GraphBuilder(plan, catalogs_of(dict(spark.sparkContext.getConf().getAll()))).build()
