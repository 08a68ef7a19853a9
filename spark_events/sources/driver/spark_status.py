"""What is polled of Spark itself: its status store, and how long its listeners take."""

from __future__ import annotations

from typing import Any

from spark_events.listeners.spark_receiver.names import api_figures, driver_metrics
from spark_events.runtime.log_once import OnceLog
from spark_events.sources.driver.polled_java import PolledJava

_STATUS_EVERY_S, _QUEUES_EVERY_S = 5.0, 10.0


def spark_status(spark_context: Any, log: OnceLog) -> PolledJava:
    """Return what reads Spark's status store and the driver's metrics, for apachesparkreceiver's names."""
    return PolledJava(
        spark_context,
        "SparkStatus",
        _STATUS_EVERY_S,
        "Spark's status store",
        "spark.metrics.apachesparkreceiver.enabled: no metrics under these names",
        log,
        (api_figures(), driver_metrics()),
    )


def listener_queues(spark_context: Any, log: OnceLog) -> PolledJava:
    """Return what reads how long Spark's listeners take, and what its queues have dropped."""
    return PolledJava(
        spark_context,
        "ListenerQueues",
        _QUEUES_EVERY_S,
        "what Spark's listeners take",
        "no slow-listeners are told",
        log,
        first_after_s=_QUEUES_EVERY_S,
    )
