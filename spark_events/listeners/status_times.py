"""How long a job was in each status: Flink's job status metrics, and its uptime and downtime."""

from __future__ import annotations

from collections.abc import Callable, Collection

from spark_events.api import Gauge, MetricGroup
from spark_events.api.event import now_ms
from spark_events.listeners.job_status import JobStatus
from spark_events.listeners.settings import CURRENT_TIME, STATE, TOTAL_TIME


class StatusTimes:
    """Adds up the times of one job in each status; of a query, over all its runs.

    Args:
        clock: the present in ms since the epoch.
    """

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._clock = clock
        self._status: JobStatus | None = None
        self._since_ms = 0
        self._left_running_ms: int | None = None
        self._totals = dict.fromkeys(JobStatus, 0)

    def changed(self, status: JobStatus, time_ms: int) -> None:
        """Take a change of status at a time in ms since the epoch."""
        if self._status is not None:
            self._totals[self._status] += max(0, time_ms - self._since_ms)
        if self._status is JobStatus.RUNNING:
            self._left_running_ms = time_ms
        self._status, self._since_ms = status, time_ms

    def is_in(self, status: JobStatus) -> int:
        """Return 1 while the job is in a status, 0 otherwise."""
        return int(self._status is status)

    def time_ms(self, status: JobStatus) -> int:
        """Return how long it has been in a status, in ms; 0 while it is in another."""
        return max(0, self._clock() - self._since_ms) if self._status is status else 0

    def total_ms(self, status: JobStatus) -> int:
        """Return how long it was in a status in sum, the present stay included, in ms."""
        return self._totals[status] + self.time_ms(status)

    def downtime_ms(self) -> int | None:
        """Return how long it has not been running, in ms; 0 while it runs, None after it ended on purpose.

        Flink says -1 there, which would be a time in a chart.
        """
        if self._status in (JobStatus.FINISHED, JobStatus.CANCELED):
            return None
        if self._status is JobStatus.RUNNING or self._left_running_ms is None:
            return 0
        return max(0, self._clock() - self._left_running_ms)

    def register(self, group: MetricGroup, enabled: Collection[str]) -> None:
        """Register the gauges that are asked for, and uptime and downtime."""
        for status in JobStatus:
            self._register(group, status, enabled)
        described = "How long the job has been running; 0 while it does not."
        group.register("uptime", Gauge(lambda: self.time_ms(JobStatus.RUNNING), "ms", described))
        described = "How long the job has not been running; 0 while it does, none after it ended on purpose."
        group.register("downtime", Gauge(self.downtime_ms, "ms", described))

    def _register(self, group: MetricGroup, status: JobStatus, enabled: Collection[str]) -> None:
        base = status.value.lower()
        if STATE in enabled:
            gauge = Gauge(lambda: self.is_in(status), description=f"1 while the job is {status.value}.")
            group.register(f"{base}State", gauge)
        if CURRENT_TIME in enabled:
            described = f"How long the job has been {status.value}; 0 while it is not."
            group.register(f"{base}Time", Gauge(lambda: self.time_ms(status), "ms", described))
        if TOTAL_TIME in enabled:
            described = f"How long the job was {status.value} in sum."
            group.register(f"{base}TimeTotal", Gauge(lambda: self.total_ms(status), "ms", described))
