"""The Java side of lineage: compiled in the driver when somebody listens."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson

from spark_events.janino import compile_java, java_texts, one_unit

_PACKAGE = "io.sparkevents.lineage."
_WALKER = (
    "Reflect",
    "Inputs",
    "Identities",
    "Remembered",
    "PlanWalker",
    "RowChanges",
    "Statement",
)
_LISTENER = (*_WALKER, "Streams", "Written", "LineageListener")
_PREVIEW = (*_WALKER, "Preview")


class LineageListener:
    """The Python side of ``LineageListener.java``: on a listener-bus queue of its own.

    Args:
        spark_context: PySpark's SparkContext.
        bridge: the compiled driver bridge, which takes its records.
        budget_ms: how long one plan may be read for its columns, in ms.
    """

    def __init__(self, spark_context: Any, bridge: Any, budget_ms: int) -> None:
        gateway, jvm = spark_context._gateway, spark_context._jvm
        loader = bridge.getClass().getClassLoader()
        listener = compile_java(jvm, _java_source(_LISTENER), _PACKAGE + "LineageListener", loader)
        arguments = gateway.new_array(jvm.java.lang.Object, 2)
        arguments[0] = bridge
        arguments[1] = jvm.java.lang.Long.valueOf(str(budget_ms))
        self._java = listener.getConstructors()[0].newInstance(arguments)
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
    preview = _compiled_preview(spark.sparkContext._gateway).newInstance()
    found: dict[str, Any] = orjson.loads(preview.read(plan, java_session, budget_ms))
    return found


@cache
def _compiled_preview(gateway: Any) -> Any:
    return compile_java(gateway.jvm, _java_source(_PREVIEW), _PACKAGE + "Preview")


def _java_source(names: Iterable[str]) -> str:
    return one_unit(_PACKAGE.removesuffix("."), java_texts("spark_events.lineage", names))
