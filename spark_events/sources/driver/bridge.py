"""Compiles the driver bridge in the driver's JVM and fetches its records."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from spark_events.api import Counter, Gauge
from spark_events.api.event import now_ms
from spark_events.diagnosis.plans.node import PLAN_METRICS
from spark_events.jvm.janino import new
from spark_events.listeners import spark_records
from spark_events.runtime.registry import Registry
from spark_events.sources.driver.bridge_java import JAVA
from spark_events.sources.record_json import load

_QUEUE = "sparkEvents"


class DriverBridge:
    """The Python side of ``DriverBridge.java``.

    Args:
        spark_context: PySpark's SparkContext.
        max_bytes: how much the bridge may hold before it drops records, in bytes of JSON.
        shutdown_wait_ms: how long the JVM waits for ``finish`` when it shuts down, in ms.
        lagging: which task of a stage lags behind when most are done: one that runs for longer than so many
            times their median, and for at least so many ms.

    Attributes:
        java: the compiled bridge.
        dropped: records that the bridge could not hold.
        queue_bytes: how much it held at the last ``drain``, in bytes of JSON.
        queue_depth: how many records it held then.
    """

    def __init__(
        self,
        spark_context: Any,
        max_bytes: int,
        shutdown_wait_ms: int,
        lagging: tuple[float, int] = (3.0, 30_000),
    ) -> None:
        self._gateway = spark_context._gateway
        jvm = spark_context._jvm
        names = self._strings(spark_records.OTHER_EVENTS)
        self._context = spark_context._jsc.sc()
        self._bus = self._context.listenerBus()
        self._counters = self._bus.metrics().metricRegistry()
        java_class = JAVA.load(jvm, "DriverBridge")
        metrics = self._strings(PLAN_METRICS)
        self.java = new(self._gateway, java_class, max_bytes, shutdown_wait_ms, names, metrics, *lagging)
        self.dropped = 0
        self.queue_bytes = 0
        self.queue_depth = 0
        self._unwritten = 0
        self._unread = 0

    @property
    def failed(self) -> int:
        """How many records Spark could not write as JSON or we could not read as JSON."""
        return self._unwritten + self._unread

    def subscribe(self) -> None:
        """Add the bridge to the listener bus, on a queue of its own."""
        self._bus.addToQueue(self.java, _QUEUE)

    def drain(self, max_records: int, wait_ms: int) -> list[tuple[int, dict[str, Any]]]:
        """Fetch the available records in one call, waiting in the JVM for the first.

        Returns:
            For each record the time at which the bridge got it, in ms since the epoch, and the record.
        """
        counters, *lines = self.java.drain(max_records, wait_ms).split("\n")
        counts = orjson.loads(counters)
        self.dropped, self._unwritten, self.queue_bytes = counts["dropped"], counts["failed"], counts["bytes"]
        self.queue_depth = counts["records"]
        records = []
        for line in lines:
            received, _, record = line.partition(" ")
            try:
                records.append((int(received), load(record)))
            except ValueError:
                self._unread += 1
        return records

    def await_bus(self, timeout_ms: int) -> None:
        """Wait until all that Spark has posted so far has reached the bridge, or the time is over."""
        self._bus.waitUntilEmpty(timeout_ms)

    def prepare_last_word(
        self,
        python: int,
        command: list[str] | None,
        python_path: str,
        words: str | None,
        rest: str | None,
    ) -> None:
        """Let the JVM tell the end where Python cannot; see ``LastWord.java`` for the arguments."""
        array = None
        if command is not None:
            array = self._strings(command)
        self.java.prepareLastWord(self._bus, python, array, python_path, words, rest)

    def wake(self) -> None:
        """End a drain that is waiting in another thread."""
        self.java.wake()

    def finish(self) -> None:
        """Tell the JVM that everything is delivered."""
        self.java.finish()

    def unsubscribe(self) -> None:
        """Leave the listener bus after ``finish``, unless Spark stops it anyway."""
        if not self._context.isStopped():
            self._bus.removeListener(self.java)

    def waiting_in_spark(self) -> int:
        """Return how many events wait in Spark's own queue for the bridge."""
        gauge = self._counters.getGauges().get(f"queue.{_QUEUE}.size")
        return int(gauge.getValue()) if gauge is not None else 0

    def dropped_by_spark(self) -> int:
        """Return how many events Spark's own queue for the bridge has dropped."""
        counter = self._counters.getCounters().get(f"queue.{_QUEUE}.numDroppedEvents")
        return int(counter.getCount()) if counter is not None else 0

    def _strings(self, texts: Sequence[str]) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(texts))
        for index, text in enumerate(texts):
            array[index] = text
        return array


_ASK_SPARK_S = 10.0
CAUSES: Mapping[str, str] = {
    "queue_full": "the driver bridge's queue was full (spark.events.bridge.queue.max-bytes)",
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
