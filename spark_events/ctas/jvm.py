"""The Java side of transactions: compiled in the driver at the first statement."""

from __future__ import annotations

from typing import Any

from spark_events.ctas.errors import CtasError
from spark_events.jvm.janino import FILES, JavaUnit, new

_CLASSES = (
    "SparkObjects",
    "Storage",
    "Leases",
    "Execution",
    "Tasks",
    "Caller",
    "TableReads",
    "CreateStatement",
    "StatementDescription",
    "SessionTables",
    "HiveTables",
    "CatalogTables",
    "Database",
    "TableTransition",
    "Entry",
)
_JAVA = JavaUnit("spark_events.ctas", "io.sparkevents.ctas", _CLASSES, FILES)


def check_running(spark: Any) -> None:
    """Check that a session is not stopped; one of Spark Connect is not looked at.

    Raises:
        CtasError: it is.
    """
    if hasattr(spark, "_jsparkSession") and spark.sparkContext._jsc is None:
        raise CtasError("this SparkSession is stopped; make a new one, and give that one")


def entry_of(spark: Any) -> Any:
    """Return ``Entry.java`` of a session.

    Raises:
        CtasError: there is no driver in reach, as with Spark Connect.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        raise CtasError(
            "an atomic CREATE TABLE AS SELECT needs a SparkSession in the driver's process, not one "
            "of Spark Connect: run the statement in the driver, or in a job that spark-submit starts"
        )
    gateway = spark.sparkContext._gateway
    return new(gateway, _JAVA.load(gateway.jvm, "Entry"), spark._jsparkSession)
