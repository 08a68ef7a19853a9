"""What Spark's own metrics system sends to this driver, as records for the listeners."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from spark_events.api import Counter
from spark_events.listeners.record_fields import EXECUTOR_ID
from spark_events.listeners.spark_records import EXECUTOR_REMOVED, EXECUTOR_SOURCES
from spark_events.runtime.log_once import logger
from spark_events.runtime.registry import Registry
from spark_events.sources.driver.metrics_receiver import CAUSES, MetricsReceiver
from spark_events.spark.metrics_sink import DRIVER_SINK, NAMESPACE

_EVERY_S = 1.0
_LINGER_S = 10.0
_VARIABLE = re.compile(r"\$\{([^{}]+)\}")


class ExecutorSources:
    """Receives the metrics, and counts what is dropped.

    Args:
        receiver: receives them.
        registry: has the counters.
        app_name: of the application.
    """

    def __init__(self, receiver: MetricsReceiver, registry: Registry, app_name: str) -> None:
        self._receiver = receiver
        self._taken_at = 0.0
        group = registry.driver.child("executor_sink", ("executor_sink",), {"app_name": app_name})
        self._counters = {cause: Counter(description="Metrics that were dropped.") for cause in CAUSES}
        for cause, counter in self._counters.items():
            group.child(components=(cause,), variables={"cause": cause}).register("dropped", counter)
        registry.losses.watch("receiver of executors' metrics", group, self._dropped, CAUSES)
        receiver.start()

    def records(self) -> Sequence[dict[str, Any]]:
        """Return what was received as one record, once a second; none if that is nothing."""
        now = time.monotonic()
        if now < self._taken_at + _EVERY_S:
            return ()
        self._taken_at = now
        executors = self._receiver.take()
        for cause, counter in self._counters.items():
            counter.inc(self._receiver.dropped[cause] - counter.count)
        return [{"Event": EXECUTOR_SOURCES, "Executors": executors}] if executors else ()

    def take(self, record: Mapping[str, Any]) -> None:
        """Called with each record of Spark's: what an executor sent is forgotten when it is gone."""
        if record.get("Event") == EXECUTOR_REMOVED:
            self._receiver.forget(str(record.get(EXECUTOR_ID)))

    def close(self) -> None:
        """Stop receiving, soon after Spark has stopped."""
        self._receiver.close(_LINGER_S)

    def _dropped(self) -> dict[str, int]:
        return {cause: counter.count for cause, counter in self._counters.items()}


def open_executor_sources(
    conf: Mapping[str, str], app_id: str, app_name: str, registry: Registry
) -> ExecutorSources | None:
    """Return what receives the metrics that Spark has been told to send; None if it has not, or not to us.

    Args:
        conf: of the SparkContext; Spark read it before anybody could attach.
        app_id, app_name: of the application.
        registry: has the counters of what is dropped.
    """
    port = conf.get(f"{DRIVER_SINK}port", "")
    if not port.isdecimal():
        logger.warning(
            "spark.metrics.executors.sink.port: Spark is not configured to send its metrics there; start the "
            "application with spark-events run, or add the lines that spark-events check prints"
        )
        return None
    prefix = ".".join(filter(None, (conf.get(f"{DRIVER_SINK}prefix"), _namespace(conf) or app_id)))
    address = (conf.get("spark.driver.bindAddress") or conf.get(f"{DRIVER_SINK}host", "")).strip("[]")
    receiver = None
    # The address that executors know may be another machine's, which forwards.
    for listened in (address, "::" if ":" in address else ""):
        try:
            receiver = MetricsReceiver(listened, int(port), prefix)
            break
        except OSError as error:
            problem = error
            if listened == address and address:
                logger.warning(
                    "cannot listen on %s for metrics of executors (%s): trying all of this machine; "
                    "set spark.driver.bindAddress to one that it has",
                    address,
                    error.strerror or error,
                )
    if receiver is None:
        logger.error("cannot receive metrics of executors on port %s: %s", port, problem)
        return None
    return ExecutorSources(receiver, registry, app_name)


def _namespace(conf: Mapping[str, str]) -> str:
    """Return what the sink puts before the executor's id, if that is not the application's id."""
    filled = _VARIABLE.sub(lambda variable: conf.get(variable.group(1), ""), conf.get(NAMESPACE, ""))
    return re.sub(r"\s+", "-", filled.strip())
