"""The Java side of transactions: compiled in the driver at the first statement."""

from __future__ import annotations

import time
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
_TRIES, _PAUSE_S = 10, 0.1
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


def leave_call(gateway: Any) -> None:
    """Have this thread's next call made by another connection, in case one is under way on its own.

    What a signal's handler raises may come in the middle of a call. Its answer, once it is there, would be
    taken for that of the next one.
    """
    of_thread = getattr(gateway._gateway_client, "get_thread_connection", None)
    connection = of_thread() if of_thread is not None else None
    if connection is not None:
        connection.close(True)
    from py4j.protocol import Py4JError

    for _ in range(_TRIES):  # while the old one is closed, the JVM may close the new one with it
        try:
            gateway.jvm.System.currentTimeMillis()
            return
        except Py4JError:
            time.sleep(_PAUSE_S)
