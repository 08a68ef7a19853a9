"""The Java side of transactions: compiled in the driver at the first statement."""

from __future__ import annotations

from functools import cache
from typing import Any

from spark_events.ctas.errors import CtasError
from spark_events.janino import compile_java, for_session, java_texts, one_unit

_PACKAGE = "io.sparkevents.ctas"
_FROM_LINEAGE = ("Reflect", "Written")
_CLASSES = (
    "Calls",
    "Products",
    "Storage",
    "Leases",
    "Execution",
    "Tasks",
    "CreateStatement",
    "SessionTables",
    "CatalogTables",
    "Database",
    "TableTransition",
    "Entry",
)


def entry_of(spark: Any) -> Any:
    """Return ``Entry.java`` of a session.

    Args:
        spark: a SparkSession.

    Raises:
        CtasError: there is no driver in reach, as with Spark Connect.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        raise CtasError(
            "an atomic CREATE TABLE AS SELECT needs a SparkSession with a driver in reach; Spark Connect's "
            "has none: run the statement in the driver, or in a job that spark-submit starts"
        )
    return for_session(_compiled(spark.sparkContext._gateway), spark)


@cache
def _compiled(gateway: Any) -> Any:
    texts = java_texts("spark_events.lineage", _FROM_LINEAGE) + java_texts("spark_events.ctas", _CLASSES)
    return compile_java(gateway.jvm, one_unit(_PACKAGE, texts), f"{_PACKAGE}.Entry")
