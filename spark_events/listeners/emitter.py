"""Builds events, with ids that a replay reproduces, and counts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_events.api import ApplicationInfo, Counter, EventBuilder, Failure, JobStatus, MetricGroup
from spark_events.runtime.scope import ScopeGroup
from spark_events.task.trace_ids import digest


@dataclass(frozen=True, slots=True)
class Entity:
    """The subject of an event.

    Attributes:
        kind: ``application``, ``query``, ``job`` or ``stage``.
        id: what distinguishes it from others of its kind in the application, such as a run id.
        title: its name in sentences.
        query_name: the streaming query that it is or belongs to; empty if none.
    """

    kind: str
    id: str
    title: str
    query_name: str = ""


StatusObserver = Callable[[Entity, MetricGroup, "JobStatus | None", JobStatus, int, "Failure | None"], None]
"""Told whose status changed, its group, the status before and now, when in ms, and why it failed."""


class Emitter:
    """Reports the events of one application.

    Attributes:
        series: where events are counted.
        status_observer: called for each status change.
    """

    def __init__(self, series: ScopeGroup, application: ApplicationInfo) -> None:
        self.application = application
        self.series = series
        self.status_observer: StatusObserver | None = None
        self._counters: dict[tuple[str, ...], tuple[Counter, ScopeGroup]] = {}

    def emit(
        self,
        event: EventBuilder,
        entity: Entity,
        group: MetricGroup,
        time_ms: int,
        occasion: tuple[str, ...],
        status: str = "",
    ) -> None:
        """Give an event its id, time and kind, report it, and count it.

        Args:
            event: what happened.
            entity: whom it happened to.
            group: the group whose variables it carries.
            time_ms: when, in ms since the epoch.
            occasion: what distinguishes it from the entity's other events, and is the same in a replay.
            status: the status that it is counted under; empty if it has none.
        """
        event.set_observed_time_ms(time_ms).set_id(self.digest(16, entity, event.name, *occasion))
        event.set_attribute("job.kind", entity.kind)
        group.add_event(event)
        self._count(event.name, entity, status)

    def digest(self, size: int, entity: Entity, *occasion: str) -> str:
        """Return ``size`` bytes in hexadecimal digits that are the same in every replay."""
        application = self.application
        return digest(size, application.id, application.attempt_id, entity.kind, entity.id, *occasion)

    def forget(self, query_name: str) -> None:
        """Called when the metrics of a query are gone: the counters of its events go with them."""
        for key in [key for key in self._counters if key[2] == query_name]:
            self._counters.pop(key)[1].close()

    def _count(self, name: str, entity: Entity, status: str) -> None:
        key = (name, entity.kind, entity.query_name, status)
        if key not in self._counters:
            labels = dict(zip(("event_name", "job_kind", "query_name", "status"), key, strict=True))
            group = self.series.child(components=key, variables=labels)
            counter = Counter("{event}", "Events by name, kind of job and status.")
            self._counters[key] = (group.register("events", counter), group)
        self._counters[key][0].inc()
