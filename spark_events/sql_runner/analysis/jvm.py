"""The Java side of the runner: compiled in the driver at the first query."""

from __future__ import annotations

from typing import Any

from spark_events.jvm.janino import SHARED, JavaUnit, new

_CLASSES = ("Relations", "NormalForm", "LaterFileSink", "WrittenEpochs", "RunnerEntry")
_JAVA = JavaUnit("spark_events.sql_runner.analysis", "io.sparkevents.sqlrunner", _CLASSES, SHARED)


def entry_of(spark: Any) -> Any:
    """Return ``RunnerEntry.java`` of a session."""
    gateway = spark.sparkContext._gateway
    return new(gateway, _JAVA.load(gateway.jvm, "RunnerEntry"), spark._jsparkSession)
