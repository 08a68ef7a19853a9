"""The Java side of the runner: compiled in the driver at the first query."""

from __future__ import annotations

from functools import cache
from typing import Any

from spark_events.janino import compile_java, for_session, java_texts, one_unit

_PACKAGE = "io.sparkevents.sqlrunner"
_FROM_LINEAGE = ("Reflect", "Identities")
_FROM_CTAS = ("Calls", "Products")
_CLASSES = ("Relations", "NormalForm", "GracefulStop", "LaterFileSink", "TargetTable", "Entry")


def entry_of(spark: Any) -> Any:
    """Return ``Entry.java`` of a session."""
    return for_session(_compiled(spark.sparkContext._gateway), spark)


@cache
def _compiled(gateway: Any) -> Any:
    texts = (
        java_texts("spark_events.lineage", _FROM_LINEAGE)
        + java_texts("spark_events.ctas", _FROM_CTAS)
        + java_texts("spark_events.sql_runner", _CLASSES)
    )
    return compile_java(gateway.jvm, one_unit(_PACKAGE, texts), f"{_PACKAGE}.Entry")
