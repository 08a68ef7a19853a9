"""Builds events and spans, with ids that a replay reproduces.

It counts events, and gives spans their places in traces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_events.api import (
    ApplicationInfo,
    Counter,
    EventBuilder,
    Failure,
    JobStatus,
    MetricGroup,
    Span,
    SpanBuilder,
)
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.scope import ScopeGroup
from spark_events.task.traces import digest, is_sampled


@dataclass(frozen=True, slots=True)
class Entity:
    """The subject of an event.

    Attributes:
        kind: its ``job_kind``, such as ``query`` or ``executor``; of what has only spans, ``sql_execution``.
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
        self._identity = application.identity
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
        event.set_time_ms(time_ms).set_id(self.digest(16, entity, event.name, *occasion))
        event.set_attribute("job_kind", entity.kind)
        group.add_event(event)
        self._count(event.name, entity, status)

    def digest(self, size: int, entity: Entity, *occasion: str) -> str:
        """Return ``size`` bytes in hexadecimal digits that are the same in every replay."""
        return digest(size, *self._identity, entity.kind, entity.id, *occasion)

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


SPAN_SCOPE = "spark_events.listeners.Traces"
APPLICATION = Entity("application", "", "application")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a span in a trace, known before the span has ended.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent: the place of its parent span; None for the root.
    """

    trace_id: str
    span_id: str
    parent: Place | None = None

    @property
    def parent_span_id(self) -> str | None:
        """16 hexadecimal digits; None for the root."""
        return self.parent.span_id if self.parent else None


_SKEW_MS = 1_000


def ended_span(name: str, start_ms: int, end_ms: int, failure: Failure | None = None) -> SpanBuilder:
    """Return the builder of a span that has ended, with an end that is never before its start."""
    end_ms = max(start_ms, end_ms)
    return Span.builder(SPAN_SCOPE, name).set_times_ms(start_ms, end_ms).set_failure(failure, end_ms)


class RecentTimes:
    """The times of the most recent spans, by span id."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._times: dict[str, int] = {}

    def put(self, span_id: str, time_ms: int) -> None:
        """Keep a time in ms; if a span has several, keep the latest."""
        self._times[span_id] = max(time_ms, self._times.pop(span_id, 0))
        if len(self._times) > self._most:
            del self._times[next(iter(self._times))]

    def get(self, span_id: str) -> int:
        """Return a span's time in ms; 0 if unknown."""
        return self._times.get(span_id, 0)

    def take(self, span_id: str) -> int:
        """Return and forget a span's time in ms; 0 if unknown."""
        return self._times.pop(span_id, 0)


class Traces:
    """Gives the spans of one application their places, and reports them.

    The application is a trace, or part of the one that ``spark.traces.parent`` names; its queries, SQL
    executions and jobs are below it. Each checkpoint is its own trace, because a query may run for weeks.
    """

    def __init__(self, emitter: Emitter, settings: ListenerSettings) -> None:
        self._emitter = emitter
        self._parent = settings.trace_parent
        self._ratio = settings.sampling_ratio
        self.application = self._place_of_application()
        self._ended = RecentTimes()
        self._latest_part = RecentTimes()

    def below(self, parent: Place, name: str, entity: Entity, *occasion: str) -> Place:
        """Return the place of an entity's span below another; the occasion tells apart spans of one name."""
        return Place(parent.trace_id, self._span_id(name, entity, *occasion), parent)

    def own_trace(self, name: str, entity: Entity, *occasion: str) -> Place:
        """Return the place of a span that is the root of a trace of its own."""
        trace_id = self._emitter.digest(16, entity, "trace", name, *occasion)
        return Place(trace_id, self._span_id(name, entity, *occasion))

    def report(self, span: SpanBuilder, place: Place, entity: Entity, group: MetricGroup) -> None:
        """Report a span at its place, unless its trace is not sampled."""
        self._align(span, place)
        if self.is_sampled(place.trace_id):
            span.set_ids(place.trace_id, place.span_id, place.parent_span_id)
            group.add_span(span.set_attribute("job_kind", entity.kind))

    def is_sampled(self, trace_id: str) -> bool:
        """Return whether the spans of a trace are reported."""
        if self._parent is not None and trace_id == self._parent.trace_id:
            return self._parent.sampled  # decided by whoever began the trace
        return is_sampled(trace_id, self._ratio)

    def _align(self, span: SpanBuilder, place: Place) -> None:
        """Make a span end no earlier than its children.

        Spark takes the times of a job and of the SQL execution around it on two threads, and gives no time
        for the end of a query, so a child may seem to end some ms after its parent.
        """
        start_ms, end_ms = span.times_ms
        end_ms = max(end_ms, self._latest_part.take(place.span_id))
        whole_ms = self._end_of_whole(place)
        if whole_ms and start_ms <= whole_ms < end_ms <= whole_ms + _SKEW_MS:
            end_ms = whole_ms
        if place.parent is not None:
            self._latest_part.put(place.parent.span_id, end_ms)
        self._ended.put(place.span_id, end_ms)
        span.set_times_ms(start_ms, end_ms)

    def _end_of_whole(self, place: Place) -> int:
        """Return when the nearest ancestor that was already reported ended, in ms; 0 for none."""
        whole = place.parent
        while whole is not None and not self._ended.get(whole.span_id):
            whole = whole.parent
        return self._ended.get(whole.span_id) if whole else 0

    def _place_of_application(self) -> Place:
        if self._parent is None:
            return self.own_trace("Application", APPLICATION)
        span_id = self._span_id("Application", APPLICATION)
        outer = Place(self._parent.trace_id, self._parent.span_id)
        return Place(outer.trace_id, span_id, outer)

    def _span_id(self, name: str, entity: Entity, *occasion: str) -> str:
        return self._emitter.digest(8, entity, "span", name, *occasion)
