"""Reads Spark's status store and the driver's metrics, for the collector's apachesparkreceiver's names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from spark_events.jvm.janino import JavaUnit, new
from spark_events.listeners.spark_receiver.names import api_figures, driver_metrics
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.sources.record_json import load

_JAVA = JavaUnit("spark_events.sources.driver", "io.sparkevents", ("SparkStatus",))
_EVERY_S = 5.0


class SparkStatus:
    """The Python side of ``SparkStatus.java``.

    Args:
        spark_context: PySpark's SparkContext.
        log: takes a reading that fails, once.
    """

    def __init__(self, spark_context: Any, log: OnceLog) -> None:
        self._log = log
        self._gateway = spark_context._gateway
        self._read_at = 0.0
        self._java = new(
            self._gateway,
            _JAVA.load(spark_context._jvm, "SparkStatus"),
            spark_context._jsc.sc(),
            self._strings(api_figures()),
            self._strings(driver_metrics()),
        )

    def records(self) -> Sequence[dict[str, Any]]:
        """Return a reading, every five seconds; none in between, if it fails, and once Spark stops.

        Raises:
            py4j.protocol.Py4JNetworkError: the JVM is gone.
        """
        from py4j.protocol import Py4JJavaError  # comes with PySpark

        now = time.monotonic()
        if now < self._read_at + _EVERY_S:
            return ()
        self._read_at = now
        try:
            text = self._java.read()
            return [load(text)] if text else ()
        except (Py4JJavaError, ValueError) as error:
            self._log.error(("status",), f"could not read Spark's status store: {error}")
            return ()

    def _strings(self, texts: Sequence[str]) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(texts))
        for index, text in enumerate(texts):
            array[index] = text
        return array


def open_spark_status(spark_context: Any, log: OnceLog) -> SparkStatus | None:
    """Return what reads the status; None if this Spark is not built as those that we know."""
    try:
        return SparkStatus(spark_context, log)
    except Exception as error:  # whatever Janino says of Spark's internals
        logger.error(
            "spark.metrics.apachesparkreceiver.enabled: no metrics under these names, for Spark's status "
            "store cannot be read here: %s",
            error,
        )
        return None
