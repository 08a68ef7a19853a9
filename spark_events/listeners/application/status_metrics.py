"""A job's status as metrics: the current one, its duration, and Flink's times in each status."""

from __future__ import annotations

from collections.abc import Callable, Collection

from spark_events.api import Gauge, JobStatus
from spark_events.api.event import now_ms
from spark_events.listeners.application.job_status import JobStatusTracker
from spark_events.listeners.settings import CURRENT_TIME, STATE, TOTAL_TIME
from spark_events.runtime.scope import Reading, ScopeGroup, register_gauges

Clock = Callable[[], int]
_UPTIME = "How long the job has been running; 0 while it does not."
_ENDED_ON_PURPOSE = (JobStatus.FINISHED, JobStatus.CANCELED)
_DOWNTIME = "How long the job has not been running; 0 while it does, none after it ended on purpose."


class Stays:
    """Adds up how long something was in each of its states.

    Attributes:
        state: the current state; None before the first.
        since_ms: when it began, in ms since the epoch.
    """

    def __init__(self, clock: Clock = now_ms) -> None:
        self._clock = clock
        self.state: object = None
        self.since_ms = 0
        self._totals: dict[object, int] = {}

    def enter(self, state: object, time_ms: int) -> None:
        """Enter a state at a time in ms since the epoch; re-entering the current state changes nothing."""
        if state == self.state:
            return
        if self.state is not None:
            stayed = max(0, time_ms - self.since_ms)
            self._totals[self.state] = self._totals.get(self.state, 0) + stayed
        self.state, self.since_ms = state, time_ms

    def is_in(self, state: object) -> int:
        """Return 1 if the current state is this one, 0 otherwise."""
        return int(self.state == state)

    def time_ms(self, state: object) -> int:
        """Return how long it has been in a state, in ms; 0 while it is in another."""
        return max(0, self._clock() - self.since_ms) if self.state == state else 0

    def total_ms(self, state: object) -> int:
        """Return the total time in a state, including the current stay, in ms."""
        return self._totals.get(state, 0) + self.time_ms(state)


def register_stays(
    group: ScopeGroup, base: str, stays: Stays, state: object, described_as: str, enabled: Collection[str]
) -> None:
    """Register those of ``<base>State``, ``<base>Time`` and ``<base>TimeTotal`` that are enabled.

    ``described_as`` is a clause that describes the state; ``enabled`` contains some of STATE, CURRENT_TIME
    and TOTAL_TIME.
    """
    if STATE in enabled:
        gauge = Gauge(lambda: stays.is_in(state), description=f"1 while {described_as}, 0 otherwise.")
        group.register(f"{base}State", gauge)
    if CURRENT_TIME in enabled:
        described = f"How long {described_as}; 0 otherwise."
        group.register(f"{base}Time", Gauge(lambda: stays.time_ms(state), "ms", described))
    if TOTAL_TIME in enabled:
        described = f"How long {described_as}, in total."
        group.register(f"{base}TimeTotal", Gauge(lambda: stays.total_ms(state), "ms", described))


class StatusMetrics:
    """The status of one job; for a query, across all its runs, showing the newest."""

    def __init__(self, group: ScopeGroup, enabled: Collection[str], clock: Clock = now_ms) -> None:
        self._clock = clock
        self._stays = Stays(clock)
        self._left_running_ms: int | None = None
        self._watched: JobStatusTracker | None = None
        for status in JobStatus:
            self._register_status(group, status)
            described_as = f"the job has been {status.value}"
            register_stays(group, status.value.lower(), self._stays, status, described_as, enabled)
        readings: dict[str, Reading] = {
            "statusAge": (self._age_ms, "ms", "How long the job has been in its status."),
            "uptime": (lambda: self._stays.time_ms(JobStatus.RUNNING), "ms", _UPTIME),
            "downtime": (self.downtime_ms, "ms", _DOWNTIME),
        }
        register_gauges(group, readings)

    def watch(self, tracker: JobStatusTracker) -> None:
        """Show only the changes of this run from now on, no longer those of an earlier run."""
        self._watched = tracker
        tracker.on_change = lambda status, time_ms: self._changed(tracker, status, time_ms)

    def watches(self, tracker: JobStatusTracker) -> bool:
        """Return whether these metrics show this run, and not a later one."""
        return tracker is self._watched

    @property
    def status(self) -> object:
        """The current status; None before the first."""
        return self._stays.state

    def downtime_ms(self) -> int | None:
        """Return how long it has not been running, in ms; 0 while it runs, None after it ended on purpose.

        Flink returns -1 in the last case, which would look like a time in a chart.
        """
        if self.status in _ENDED_ON_PURPOSE:
            return None
        if self.status is JobStatus.RUNNING or self._left_running_ms is None:
            return 0
        return max(0, self._clock() - self._left_running_ms)

    def _changed(self, tracker: JobStatusTracker, status: JobStatus, time_ms: int) -> None:
        if tracker is not self._watched:
            return
        if status in _ENDED_ON_PURPOSE:
            self._left_running_ms = None  # a start after that is no outage, however long it takes
        elif self.status is JobStatus.RUNNING:
            self._left_running_ms = time_ms
        self._stays.enter(status, time_ms)

    def _register_status(self, group: ScopeGroup, status: JobStatus) -> None:
        labelled = group.child(components=(status.value,), variables={"status": status.value})
        described = "1 for the status that the job is in, 0 for the others."
        labelled.register("status", Gauge(lambda: self._stays.is_in(status), description=described))

    def _age_ms(self) -> int | None:
        return None if self.status is None else self._stays.time_ms(self.status)
