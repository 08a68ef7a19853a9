"""The Java side of lineage, compiled in the driver once a listener needs it."""

from __future__ import annotations

from typing import Any

import orjson

from spark_events.jvm.janino import SHARED, JavaUnit, new

_JAVA = JavaUnit(
    "spark_events.lineage",
    "io.sparkevents.lineage",
    (
        "Inputs", "Trees", "PlanFacts", "ExpressionText", "Remembered",
        "StructFields", "StoredCopies", "ExpressionReader", "GeneratedRows", "OperatorReader", "RddReader",
        "PlanWalker",
        "TableState", "KnownTables", "Sinks", "TableStates", "CatalogCalls", "TableChange",
        "ConstantColumn", "RowChanges", "Writes",
        "PhysicalPlan", "IcebergReports", "KafkaOffsets", "SampledScans", "DataRead", "OwnCommit",
        "DeltaChange", "DeltaCommits", "IcebergCommit", "DataWritten", "BatchCommit", "Overwrite",
        "Observed", "Statement", "Preview", "Streams",
        "PlanRecords", "QueryRecords", "StatementRecords", "RddJob", "RddJobRecords", "StageRows",
        "PlanListener",
    ),
    SHARED,
)  # fmt: skip


class PlanReader:
    """Reads the plans of a driver's statements as these begin: the Python side of ``PlanListener.java``.

    Args:
        spark_context: PySpark's SparkContext.
        sink: a ``java.util.function.Consumer`` of its records, such as the driver bridge.
        budget_ms: the time limit for reading the columns of one plan, in ms.
        interval_ms: how often the version that a streaming query writes is told, in ms; 0 for its last alone.
    """

    def __init__(self, spark_context: Any, sink: Any, budget_ms: int, interval_ms: int) -> None:
        gateway, jvm, context = spark_context._gateway, spark_context._jvm, spark_context._jsc.sc()
        self._java = new(gateway, _JAVA.load(jvm, "PlanListener"), sink, budget_ms, interval_ms, context)
        self._context, self._bus = context, context.listenerBus()

    def subscribe(self) -> None:
        """Listen on a queue of its own, and read the plans of the queries that run already."""
        self._bus.addToQueue(self._java, "sparkEventsLineage")
        self._java.beginRunning()

    def unsubscribe(self) -> None:
        """Leave the listener bus, unless Spark stops it anyway, and read no more."""
        self._java.close()
        if not self._context.isStopped():
            self._bus.removeListener(self._java)

    def await_read(self, timeout_ms: int) -> None:
        """Wait until all plans so far have been read, or the time is over."""
        getattr(self._java, "await")(timeout_ms)


def read_plan(spark: Any, plan: Any, budget_ms: int) -> dict[str, Any]:
    """Return what a plan reads and writes without running it, in the form of ``Statement.java``.

    Args:
        spark: a SparkSession.
        plan: its analyzed plan, in the JVM.
        budget_ms: the time limit for reading its columns, in ms.
    """
    preview = _JAVA.load(spark._jvm, "Preview").newInstance()
    lineage: dict[str, Any] = orjson.loads(preview.read(plan, spark._jsparkSession, budget_ms))
    return lineage
