"""Where spans belong: ids that a replay repeats, parents, and which traces are reported."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api import MetricGroup, SpanBuilder
from spark_events.listeners.emitter import Emitter, Entity
from spark_events.listeners.settings import ListenerSettings

CLASS_SCOPE = "spark_events.listeners.Traces"
APPLICATION = Entity("application", "", "application")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a span in a trace, known before the span has ended.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_span_id: 16 hexadecimal digits; None for the root.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None = None


class Traces:
    """Gives the spans of one application their places, and reports them.

    The application is a trace, or a part of the one that ``spark.traces.parent`` names; its queries, SQL
    executions and jobs are below it. Each checkpoint is a trace of its own, for a query may run for weeks.

    Args:
        emitter: makes ids.
        settings: what is configured.

    Attributes:
        application: the application's place.
        latest_ms: the latest end of a span in the application's trace, in ms since the epoch.
    """

    def __init__(self, emitter: Emitter, settings: ListenerSettings) -> None:
        self._emitter = emitter
        self._parent = settings.trace_parent
        # As OpenTelemetry's TraceIdRatioBased: the lower 64 bits against a bound.
        self._bound = round(settings.sampling_ratio * 2**64)
        self.application = self._place_of_application()
        self.latest_ms = 0

    def below(self, parent: Place, name: str, entity: Entity, *what: str) -> Place:
        """Return the place of a span that is a part of another.

        Args:
            parent: the place of the other.
            name: of the span.
            entity: whose span it is.
            what: what tells it from the entity's other spans of that name.
        """
        return Place(parent.trace_id, self._span_id(name, entity, *what), parent.span_id)

    def own_trace(self, name: str, entity: Entity, *what: str) -> Place:
        """Return the place of a span that is the root of a trace of its own."""
        trace_id = self._emitter.digest(16, entity, "trace", name, *what)
        return Place(trace_id, self._span_id(name, entity, *what))

    def report(self, span: SpanBuilder, place: Place, entity: Entity, group: MetricGroup) -> None:
        """Report a span at its place, unless its trace is not sampled."""
        if place.trace_id == self.application.trace_id:
            self.latest_ms = max(self.latest_ms, span.end_ms)
        if self._sampled(place.trace_id):
            span.set_ids(place.trace_id, place.span_id, place.parent_span_id)
            group.add_span(span.set_attribute("job.kind", entity.kind))

    def _place_of_application(self) -> Place:
        if self._parent is None:
            return self.own_trace("Application", APPLICATION)
        span_id = self._span_id("Application", APPLICATION)
        return Place(self._parent.trace_id, span_id, self._parent.span_id)

    def _span_id(self, name: str, entity: Entity, *what: str) -> str:
        return self._emitter.digest(8, entity, "span", name, *what)

    def _sampled(self, trace_id: str) -> bool:
        if self._parent is not None and trace_id == self._parent.trace_id:
            return self._parent.sampled  # whoever began the trace has decided
        return int(trace_id[16:], 16) < self._bound
