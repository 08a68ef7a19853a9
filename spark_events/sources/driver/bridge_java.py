"""The driver bridge's Java, and its compilation while Python still imports the rest that attaching needs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from typing import Any

from spark_events.jvm.janino import JavaUnit

JAVA = JavaUnit(
    "spark_events.sources.driver",
    "io.sparkevents",
    (
        "ApplicationExit",
        "EndCause",
        "SchedulerErrors",
        "MasterEnd",
        "LastWord",
        "RecordTexts",
        "RecordQueue",
        "ExecutionPlans",
        "EventRecords",
        "Distribution",
        "TaskStatistics",
        "StageTasks",
        "ExecutorStates",
        "DriverBridge",
    ),
)


def compile_meanwhile(spark: Any, conf: Mapping[str, Any] | None) -> None:
    """Begin to compile in a thread, if the application is one of this process's JVM and has a reporter.

    Compiling and importing take about as long, on two cores. Nothing depends on the thread: whoever needs a
    class waits for it, or compiles anew if it has failed, and tells why. So this raises nothing, and imports
    nothing of ours that takes long.

    Args:
        spark: a SparkSession or a SparkContext; of anything else, and of a Connect session, none is compiled.
        conf: what takes precedence over the application's configuration.
    """
    try:
        jvm = _jvm_to_compile_in(spark, conf or {})
        if jvm is not None:
            threading.Thread(target=_compile, args=(jvm,), name="spark-events-compile", daemon=True).start()
    except Exception as error:
        _log_debug(error)


def _jvm_to_compile_in(spark: Any, conf: Mapping[str, Any]) -> Any:
    context = None if ".connect." in type(spark).__module__ else getattr(spark, "sparkContext", spark)
    jvm = getattr(context, "_jvm", None)
    if context is None or jvm is None or JAVA.is_loaded(jvm):
        return None
    asked = {**dict(context.getConf().getAll()), **conf}
    switches = (asked.get("spark.events.enabled"), os.environ.get("SPARK_EVENTS_ENABLED"))
    is_off = any(str(switch).strip().lower() == "false" for switch in switches)
    has_reporter = any(key.startswith("spark.") and key.endswith(".factory.class") for key in asked)
    return jvm if has_reporter and not is_off else None


def _compile(jvm: Any) -> None:
    try:
        JAVA.load(jvm, "DriverBridge")
    except Exception as error:
        _log_debug(error)


def _log_debug(error: Exception) -> None:
    logging.getLogger("spark_events").debug("the driver bridge was not compiled ahead: %r", error)
