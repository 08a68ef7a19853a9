"""The heartbeat of an application: it lives, even if nothing happens in it. Flink's TaskManagers have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_events.api import Event, Gauge
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.runtime import event_names

CLASS_SCOPE = "spark_events.listeners.Heartbeat"
_MOST_QUERIES = 20


class HeartbeatListener(Timeless):
    """Turns a live source's heartbeats into events for those who keep history.

    Args:
        context: what the listeners share.
        running_jobs: returns how many Spark jobs run.
        running_queries: returns the runs of streaming queries that go on.
    """

    def __init__(
        self,
        context: ListenerContext,
        running_jobs: Callable[[], int],
        running_queries: Callable[[], list[QueryRun]],
    ) -> None:
        self._context = context
        self._running_jobs = running_jobs
        self._running_queries = running_queries
        self._sequence = 0
        self._last_ms: int | None = None
        application = context.emitter.application
        self._entity = Entity("application", "", f"application {application.name!r}")
        self._group = context.scopes.application_run()
        described = "When the driver last said that it lives."
        series = context.scopes.application()
        series.register("lastHeartbeatTimestamp", Gauge(lambda: self._last_ms, "ms", described))
        described = "How often the driver says that it lives."
        series.register("heartbeatInterval", Gauge(self._interval_ms, "ms", described))

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.HEARTBEAT: self.on_heartbeat,
        }

    def _interval_ms(self) -> int | None:
        return None if self._last_ms is None else self._context.settings.heartbeat_interval_ms

    def on_heartbeat(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle a heartbeat."""
        self._last_ms = time_ms
        runs = self._running_queries()
        shown = sorted(runs, key=lambda run: run.name)[:_MOST_QUERIES]
        event = (
            Event.builder(CLASS_SCOPE, event_names.HEARTBEAT)
            .set_routine()
            .set_history_only()
            .set_body(f"{self._entity.title} is alive")
            .set_attribute("sequence", self._sequence)
            .set_attribute("intervalMs", self._context.settings.heartbeat_interval_ms)
            .set_attribute("uptimeMs", record.get(spark_records.UPTIME))
            .set_attribute("runningJobs", self._running_jobs())
            .set_attribute("runningQueries", tuple(run.name for run in shown) or None)
            .set_attribute("lastCheckpointIds", tuple(run.last_checkpoint[0] for run in shown) or None)
            .set_attribute("lastCheckpointTimestamps", tuple(run.last_checkpoint[1] for run in shown) or None)
        )
        occasion = ("heartbeat", str(self._sequence))
        self._context.emitter.emit(event, self._entity, self._group, time_ms, occasion)
        self._sequence += 1
