"""The lineage of a statement that was not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_events.api import LineageGraph, SparkEventsError
from spark_events.lineage.datasets import catalogs_of
from spark_events.lineage.graph import GraphBuilder
from spark_events.lineage.plans import read_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BUDGET_MS = 30_000


class RunsWhenAnalyzedError(SparkEventsError, ValueError):
    """A statement that runs others as soon as Spark analyzes it, so that its lineage cannot be asked for."""


def lineage_of(spark: SparkSession, statement: str | DataFrame) -> LineageGraph:
    """Return what a statement would read and write, without running it.

    Args:
        spark: a SparkSession.
        statement: an SQL text, such as ``INSERT INTO … SELECT …``, or a DataFrame, which has sources alone.

    Example::

        print(lineage_of(spark, "INSERT INTO totals SELECT name, sum(x) FROM orders GROUP BY name"))

    Of ``EXECUTE IMMEDIATE`` with a literal, it is the lineage of the statement in that.

    Raises:
        RunsWhenAnalyzedError: it is a script, a CALL, or an EXECUTE IMMEDIATE whose text or values are not
            literals in it: Spark would run these to analyze them.
        pyspark.errors.AnalysisException: the statement is invalid, or names something that does not exist.
        TypeError: the JVM cannot be reached, as with Spark Connect.
    """
    java_session = getattr(spark, "_jsparkSession", None)
    if java_session is None:
        raise TypeError("lineage_of needs a SparkSession in the driver's process, not one of Spark Connect")
    if isinstance(statement, str):
        state = java_session.sessionState()
        skip = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        execution = state.executePlan(_parsed(state.sqlParser(), statement), skip)
    else:
        execution = statement._jdf.queryExecution()
    plan = read_plan(spark, execution.analyzed(), _BUDGET_MS)
    return GraphBuilder(plan, catalogs_of(dict(spark.sparkContext.getConf().getAll()))).build()


def _parsed(parser: Any, statement: str) -> Any:
    """Return the plan of a statement that Spark analyzes without running anything."""
    plan = parser.parsePlan(statement)
    kind = plan.getClass().getSimpleName()
    if kind == "CompoundBody":
        raise RunsWhenAnalyzedError("a script, BEGIN … END: pass its statements one by one")
    if kind == "Call":
        raise RunsWhenAnalyzedError(
            "CALL: Spark runs a procedure to analyze it, and what it does is not known"
        )
    if "ExecuteImmediate" not in kind:
        return plan
    text = plan.sqlStmtStr() if kind == "UnresolvedExecuteImmediate" else None  # otherwise before Spark 4.1
    if text is None or text.getClass().getSimpleName() != "Literal" or plan.args().size():
        raise RunsWhenAnalyzedError(
            "EXECUTE IMMEDIATE of a text that is not known before it runs: pass the statement itself"
        )
    return _parsed(parser, text.value().toString())
