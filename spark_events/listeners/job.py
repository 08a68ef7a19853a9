"""Spark jobs, one for each action: RUNNING, and FINISHED, FAILED or CANCELED."""

from __future__ import annotations

from typing import Any

from spark_events.api import Gauge
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_json_exception, thrown_by_task, was_cancelled
from spark_events.listeners.job_status import JobStatus, JobStatusTracker


class JobListener:
    """Follows the jobs of one application; ended ones are forgotten."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._running: dict[int, JobStatusTracker] = {}
        active = Gauge(lambda: len(self._running), description="Spark jobs that run now.")
        context.scopes.application().register("activeJobs", active)

    def on_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Take JobStart; a job that is known already was found running at attach."""
        job_id = int(record["Job ID"])
        if job_id in self._running:
            return
        of_query = self._context.query_of_job(record)
        group = self._context.scopes.job(job_id, of_query)
        entity = Entity("job", str(job_id), f"job {job_id}", of_query.get("query_name", ""))
        tracker = self._running[job_id] = JobStatusTracker(self._context.emitter, entity, group)
        tracker.change(JobStatus.RUNNING, time_ms)

    def on_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Take JobEnd."""
        tracker = self._running.pop(int(record["Job ID"]), None)
        if tracker is None:
            return
        result = record.get("Job Result") or {}
        if result.get("Result") == "JobSucceeded":
            tracker.change(JobStatus.FINISHED, time_ms)
            return
        failure = parse_json_exception(result.get("Exception") or {})
        if was_cancelled(failure):
            tracker.change(JobStatus.CANCELED, time_ms)
            return
        self._context.failures.report(
            failure,
            tracker.entity,
            tracker.group,
            time_ms,
            can_restart=False,
            is_global=not thrown_by_task(failure),
        )
        tracker.change(JobStatus.FAILED, time_ms)
