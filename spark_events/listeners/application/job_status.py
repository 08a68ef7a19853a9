"""Keeps the status of a job of any kind, and reports its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spark_events.api import AttributeValue, Event, EventBuilder, Failure, JobStatus, MetricGroup, Severity
from spark_events.listeners.emitter import Emitter, Entity

CLASS_SCOPE = "spark_events.listeners.JobStatus"


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
            event.set_attribute("durationMs", time_ms - self.since_ms)
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
            Event.builder(CLASS_SCOPE, "JobStatusChangeEvent")
            .set_severity(Severity.ERROR if new is JobStatus.FAILED else Severity.INFO)
            .set_routine(self.entity.kind == "job" and new is not JobStatus.FAILED)
            .set_body(f"{self.entity.title} {came}")
            .set_attribute("newJobStatus", new.value)
        )
