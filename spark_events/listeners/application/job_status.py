"""Keeps the status of a job of any kind, reports its changes, and shows it as metrics with Flink's times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from spark_events.api import (
    AttributeValue,
    Event,
    EventBuilder,
    Failure,
    Gauge,
    JobStatus,
    MetricGroup,
    Severity,
)
from spark_events.api.event import now_ms
from spark_events.listeners.emitter import Emitter, Entity
from spark_events.listeners.settings import CURRENT_TIME, STATE, TOTAL_TIME
from spark_events.runtime import event_names
from spark_events.runtime.scope import Reading, ScopeGroup, register_gauges

CLASS_SCOPE = "spark_events.listeners.JobStatus"
STATUS_METRIC = "status"
"""The name of the metric that has a series for each status."""


class JobStatusTracker:
    """Keeps the status of one job, and reports each change as a JobStatusChangeEvent.

    Args:
        emitter: builds and reports the events.
        entity: the job.
        group: the group whose variables the events carry.
        before: the tracker of the job's previous run, whose status this one starts from; None for no status.

    Attributes:
        status: the current status; None before the first.
        since_ms: when it began, in ms since the epoch.
        on_change: called with each new status and its time.
    """

    def __init__(
        self, emitter: Emitter, entity: Entity, group: MetricGroup, before: JobStatusTracker | None = None
    ) -> None:
        self._emitter = emitter
        self.entity = entity
        self.group = group
        self.status: JobStatus | None = before.status if before is not None else None
        self.since_ms: int = before.since_ms if before is not None else 0
        self.on_change: Callable[[JobStatus, int], None] = lambda status, time_ms: None

    def change(
        self,
        new: JobStatus,
        time_ms: int,
        occasion: str = "",
        failure: Failure | None = None,
        attributes: Mapping[str, AttributeValue | None] | None = None,
    ) -> None:
        """Move to a status.

        Args:
            new: the new status; the current one changes nothing.
            time_ms: when, in ms since the epoch; never taken as before the last change.
            occasion: what distinguishes this change, in ids, from an earlier one to the same status.
            failure: why it failed.
            attributes: more of the event, such as how the process ended.
        """
        if new is self.status:
            return
        old, time_ms = self.status, max(time_ms, self.since_ms)
        # Sources differ in how much they know of how a job ended, so the id says only that it ended.
        reached = "terminated" if new.terminal else new.value
        event = self._builder(new, old)
        if old is not None:
            event.set_attribute("oldJobStatus", old.value)
            event.set_attribute("oldJobStatusMs", time_ms - self.since_ms)
        event.set_attributes(attributes or {})
        self.status, self.since_ms = new, time_ms
        self.on_change(new, time_ms)
        self._emitter.emit(event, self.entity, self.group, time_ms, ("status", reached, occasion), new.value)
        if self._emitter.status_observer is not None:
            self._emitter.status_observer(self.entity, self.group, old, new, time_ms, failure)

    def revive(self, time_ms: int) -> None:
        """Move from FAILED, which was wrongly assumed, back to RUNNING, at a time in ms since the epoch."""
        self.status = JobStatus.FAILED
        self.change(JobStatus.RUNNING, time_ms, f"alive since {time_ms}")

    def _builder(self, new: JobStatus, old: JobStatus | None) -> EventBuilder:
        came = f"{old.value} -> {new.value}" if old else new.value
        return (
            Event.builder(CLASS_SCOPE, event_names.JOB_STATUS_CHANGE)
            .set_severity(Severity.ERROR if new is JobStatus.FAILED else Severity.INFO)
            .set_routine(self.entity.kind == "job" and new is not JobStatus.FAILED)
            .set_body(f"{self.entity.title} {came}")
            .set_attribute("newJobStatus", new.value)
        )


Clock = Callable[[], int]
_ENDED_ON_PURPOSE = (JobStatus.FINISHED, JobStatus.CANCELED)


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
    """The status of an application; or of a query across all its runs, showing the newest.

    Args:
        group: the metrics' place in the scope tree.
        kind: ``application`` or ``query``, as the metrics' descriptions call it.
        enabled: contains some of STATE, CURRENT_TIME and TOTAL_TIME.
        clock: returns the current time in ms since the epoch.
    """

    def __init__(self, group: ScopeGroup, kind: str, enabled: Collection[str], clock: Clock = now_ms) -> None:
        self._clock = clock
        self._stays = Stays(clock)
        self._down_since_ms: int | None = None
        self._watched: JobStatusTracker | None = None
        for status in JobStatus:
            self._register_status(group, status, kind)
            described_as = f"the {kind} has been {status.value}"
            register_stays(group, status.value.lower(), self._stays, status, described_as, enabled)
        readings: dict[str, Reading] = {
            "statusAge": (self._age_ms, "ms", f"How long the {kind} has been in its status."),
            "uptime": (
                lambda: self._known(self._stays.time_ms(JobStatus.RUNNING)),
                "ms",
                f"How long the {kind} has been running; 0 while it does not.",
            ),
            "downtime": (
                self.downtime_ms,
                "ms",
                f"How long ago the {kind} failed, or stopped running, without running since; 0 while it "
                "runs, none after it ended on purpose.",
            ),
        }
        register_gauges(group, readings)

    def watch(self, tracker: JobStatusTracker, time_ms: int | None = None) -> None:
        """Show only the changes of this run from now on, no longer those of another run.

        Args:
            tracker: of the run.
            time_ms: from when on its status, which it had before, is shown, in ms since the epoch; None for
                a run that begins.
        """
        self._watched = tracker
        tracker.on_change = lambda status, time_ms: self._changed(tracker, status, time_ms)
        if time_ms is not None and tracker.status is not None:
            self._changed(tracker, tracker.status, time_ms)

    def watches(self, tracker: JobStatusTracker) -> bool:
        """Return whether these metrics show this run, and not a later one."""
        return tracker is self._watched

    @property
    def status(self) -> object:
        """The current status; None before the first."""
        return self._stays.state

    def downtime_ms(self) -> int | None:
        """Return how long it has not been running, in ms; 0 while it runs.

        None before the first status, and after it ended on purpose.

        Flink returns -1 in the last case, which would look like a time in a chart.
        """
        if self.status is None or self.status in _ENDED_ON_PURPOSE:
            return None
        if self.status is JobStatus.RUNNING or self._down_since_ms is None:
            return 0
        return max(0, self._clock() - self._down_since_ms)

    def _changed(self, tracker: JobStatusTracker, status: JobStatus, time_ms: int) -> None:
        if tracker is not self._watched:
            return
        if status in _ENDED_ON_PURPOSE:
            self._down_since_ms = None  # a start after that is not an outage, however long it takes
        elif self.status is JobStatus.RUNNING:
            self._down_since_ms = time_ms
        elif status is JobStatus.FAILED and self._down_since_ms is None:
            self._down_since_ms = time_ms  # it was to run, and never did
        self._stays.enter(status, time_ms)

    def _register_status(self, group: ScopeGroup, status: JobStatus, kind: str) -> None:
        labeled = group.child(components=(status.value,), variables={"status": status.value})
        described = f"1 for the status that the {kind} is in, 0 for the others."
        labeled.register(
            STATUS_METRIC, Gauge(lambda: self._known(self._stays.is_in(status)), description=described)
        )

    def _age_ms(self) -> int | None:
        return None if self.status is None else self._stays.time_ms(self.status)

    def _known(self, value: int) -> int | None:
        """Return a value, or None before the first status: no page has a job that is in none of them."""
        return None if self.status is None else value
