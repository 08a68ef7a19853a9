"""How far streaming queries have come, as it is reported once an interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import DataWritten
from spark_events.jobs.query_progress import QueryProgress
from spark_events.jobs.tracked_job import TrackedJob
from spark_events.jobs.versioned_queries import VersionedQueries


class QueryReports:
    """Reports the progress of queries, with the versions that they write.

    Args:
        interval_ms: how often a query is reported at most, in ms; 0 for never.
        patience_ms: how long a report, or a query's end, waits at most for its version.

    Attributes:
        versioned: the queries whose versions are told.
    """

    def __init__(self, interval_ms: int, patience_ms: int) -> None:
        self.versioned = VersionedQueries(patience_ms)
        self._interval_ms = interval_ms
        self._patience_ms = patience_ms
        self._running: dict[str, tuple[TrackedJob, QueryProgress]] = {}

    def add_progress(self, job: TrackedJob, progress: Mapping[str, Any], time_ms: int) -> None:
        """Take Spark's progress of a micro-batch, and report if it is time."""
        self._progress(job).add(progress)
        self._report_if_due(job.common.job_id, time_ms)

    def add_version(self, job: TrackedJob, batch: int, made: tuple[DataWritten, ...], time_ms: int) -> None:
        """Take the version that a micro-batch has written, before or after Spark's progress of it."""
        run_id = job.common.job_id
        self.versioned.set_version(run_id, made)
        self._progress(job).add_version(batch, made)
        self._report_if_due(run_id, time_ms)

    def end(self, run_id: str) -> None:
        """Forget a run."""
        self._running.pop(run_id, None)

    def tick(self, now_ms: int) -> None:
        """Report what has waited too long for a version."""
        self.versioned.tick(now_ms)
        for run_id in self._running:
            self._report_if_due(run_id, now_ms)

    def _progress(self, job: TrackedJob) -> QueryProgress:
        run_id = job.common.job_id
        if run_id not in self._running:
            self._running[run_id] = job, QueryProgress(job.common.time_ms, run_id in self.versioned)
        return self._running[run_id][1]

    def _report_if_due(self, run_id: str, time_ms: int) -> None:
        job, progress = self._running[run_id]
        if progress.is_due(time_ms, self._interval_ms, self._patience_ms):
            job.report(progress, time_ms)
