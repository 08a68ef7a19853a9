"""The application itself: CREATED, RUNNING, and FINISHED or FAILED."""

from __future__ import annotations

from typing import Any

from spark_events.api import Failure, Gauge
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_failure
from spark_events.listeners.job_status import JobStatus, JobStatusTracker, register_status_gauges
from spark_events.listeners.status_times import StatusTimes


class ApplicationListener:
    """Follows one application from its start record to its end record."""

    def __init__(self, context: ListenerContext, spark_version: str) -> None:
        self._context = context
        application = context.emitter.application
        entity = Entity("application", "", f"application {application.name!r}")
        self.tracker = JobStatusTracker(context.emitter, entity, context.scopes.application_run())
        series = context.scopes.application()
        register_status_gauges(series, self.tracker)
        times = StatusTimes()
        times.register(series, context.settings.status_metrics)
        self.tracker.on_change = times.changed
        # Ids change with each run, so they label this one metric only.
        ids = {
            "app_id": application.id,
            "app_attempt_id": application.attempt_id,
            "spark_version": spark_version,
        }
        series.child(components=("info",), variables=ids).register(
            "info", Gauge(lambda: 1, description="1; its labels tell which run of the application this is.")
        )

    def on_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Take ApplicationStart: a driver that has started is up, whatever executors it still waits for."""
        self.tracker.change(JobStatus.CREATED, time_ms)
        self.tracker.change(JobStatus.RUNNING, time_ms)

    def on_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Take ApplicationEnd. Spark 4 adds the exit code; the driver source, what Python raised."""
        exit_code = record.get("ExitCode") or 0
        thrown = record.get("Exception")
        if not exit_code and not thrown:
            self.tracker.change(JobStatus.FINISHED, time_ms)
            return
        failure = (
            parse_failure(thrown) if thrown else Failure(f"the application ended with exit code {exit_code}")
        )
        self._context.failures.report(
            failure, self.tracker.entity, self.tracker.group, time_ms, can_restart=False, is_global=True
        )
        self.tracker.change(JobStatus.FAILED, time_ms)
