"""The Java side of lineage: compiled in the driver when somebody listens."""

from __future__ import annotations

from typing import Any

import orjson

from spark_events.jvm.janino import SHARED, JavaUnit, new

_WALKER = (
    "Inputs",
    "Remembered",
    "PlanWalker",
    "RowChanges",
    "Statement",
)
_PACKAGE = "io.sparkevents.lineage"
_LISTENER = JavaUnit("spark_events.lineage", _PACKAGE, (*_WALKER, "Streams", "LineageListener"), SHARED)
_PREVIEW = JavaUnit("spark_events.lineage", _PACKAGE, (*_WALKER, "Preview"), SHARED)


class LineageListener:
    """The Python side of ``LineageListener.java``: on a listener-bus queue of its own.

    Args:
        spark_context: PySpark's SparkContext.
        sink: a ``java.util.function.Consumer`` of its records, such as the driver bridge.
        budget_ms: how long one plan may be read for its columns, in ms.
    """

    def __init__(self, spark_context: Any, sink: Any, budget_ms: int) -> None:
        gateway, jvm = spark_context._gateway, spark_context._jvm
        self._java = new(gateway, _LISTENER.load(jvm, "LineageListener"), sink, budget_ms)
        self._bus = spark_context._jsc.sc().listenerBus()

    def subscribe(self) -> None:
        """Begin to listen, and read the queries that run already."""
        self._bus.addToQueue(self._java, "sparkEventsLineage")
        self._java.beginRunning()

    def await_read(self, timeout_ms: int) -> None:
        """Wait until all plans that have come are read, or the time is over."""
        getattr(self._java, "await")(timeout_ms)


def read_plan(spark: Any, plan: Any, budget_ms: int) -> dict[str, Any]:
    """Return what a plan that is not run reads and writes, as ``Statement.java`` has it.

    Args:
        spark: a SparkSession.
        plan: its analysed plan, in the JVM.
        budget_ms: how long it may be read for its columns, in ms.
    """
    java_session = spark._jsparkSession
    preview = _PREVIEW.load(spark._jvm, "Preview").newInstance()
    found: dict[str, Any] = orjson.loads(preview.read(plan, java_session, budget_ms))
    return found
