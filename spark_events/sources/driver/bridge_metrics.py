"""Metrics of how far the listeners lag behind Spark, and of what got lost on the way."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spark_events.api import Counter, Gauge
from spark_events.api.event import now_ms
from spark_events.runtime.registry import Registry
from spark_events.sources.driver.bridge import DriverBridge

_ASK_SPARK_S = 10.0
CAUSES: Mapping[str, str] = {
    "queue_full": "the driver bridge's queue was full (spark.events.bridge.queue.bytes)",
    "listener_bus": "Spark's listener bus was full (spark.scheduler.listenerbus.eventqueue.capacity)",
    "unreadable": "Spark could not write them as JSON, or they cannot be read",
}


class BridgeMetrics:
    """Measures what waits, and counts what is lost, between Spark and the listeners."""

    def __init__(self, bridge: DriverBridge, registry: Registry, app_name: str) -> None:
        self._bridge = bridge
        self._dropped_by_spark = 0
        self._waiting_in_spark = 0
        self._asked_at = 0.0
        self._lag_ms = 0
        self._counters = {cause: Counter(description="Records that never became events.") for cause in CAUSES}
        group = registry.driver.child("bridge", ("bridge",), {"app_name": app_name})
        for cause, counter in self._counters.items():
            group.child(components=(cause,), variables={"cause": cause}).register("dropped", counter)
        group.register(
            "queueBytes",
            Gauge(lambda: bridge.queue_bytes, "By", "Size of the records waiting in the bridge."),
        )
        group.register(
            "queueDepth", Gauge(lambda: bridge.queue_depth, "{record}", "Records waiting in the bridge.")
        )
        described = "Delay from when Spark posted the last record to when the listeners processed it."
        group.register("listenerLag", Gauge(lambda: self._lag_ms, "ms", described))
        described = "Events waiting for the bridge in Spark's own queue."
        group.register("listenerBusQueueDepth", Gauge(lambda: self._waiting_in_spark, "{event}", described))
        registry.losses.watch("driver bridge", group, self._dropped_by_cause, CAUSES)

    def update_lag(self, received_ms: int | None) -> None:
        """Measure how far the listeners lag behind.

        Args:
            received_ms: when the bridge got the last handled record, in ms since the epoch; None if no
                record waits.
        """
        self._lag_ms = 0 if received_ms is None else max(0, now_ms() - received_ms)

    def count(self, *, at_the_end: bool = False) -> None:
        """Bring the counters up to date.

        Args:
            at_the_end: ask Spark for its counts even if it was asked a moment ago.
        """
        if at_the_end or time.monotonic() >= self._asked_at + _ASK_SPARK_S:
            self._asked_at = time.monotonic()
            self._dropped_by_spark = self._bridge.dropped_by_spark()
            self._waiting_in_spark = self._bridge.waiting_in_spark()
        dropped = {
            "queue_full": self._bridge.dropped,
            "listener_bus": self._dropped_by_spark,
            "unreadable": self._bridge.failed,
        }
        for cause, counter in self._counters.items():
            counter.inc(dropped[cause] - counter.count)

    def _dropped_by_cause(self) -> dict[str, int]:
        return {cause: counter.count for cause, counter in self._counters.items()}
