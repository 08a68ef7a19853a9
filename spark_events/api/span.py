"""A span: something that took time, such as a checkpoint (FLIP-384)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_events.api.event import Attributes, AttributeValue
from spark_events.api.failure import CodePlace, Failure
from spark_events.api.toolkit.read_only import ReadOnly
from spark_events.api.wrong_values import attributes_of, beside, drop, is_a, plain_of, text_of, time_of


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span, such as an exception.

    Attributes:
        name: ``exception`` and the like.
        time_ms: when, in ms since the epoch.
        attributes: what happened.
    """

    name: str
    time_ms: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A link to a related span of another trace.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
    """

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class Span:
    """One finished span, immutable.

    Attributes:
        name: ``Checkpoint`` and the like; what filters match.
        class_scope: which part of the framework made it; OTLP's instrumentation scope.
        start_ms: its start, in ms since the epoch.
        end_ms: its end, in ms since the epoch; never before ``start_ms``.
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_span_id: 16 hexadecimal digits; None for the root of its trace.
        error: why it failed; None where it did not.
        attributes: what happened.
        variables: whom it happened to, from the metric group that it was added to.
        events: what happened at moments of it.
        links: spans of other traces.
    """

    name: str
    class_scope: str
    start_ms: int
    end_ms: int
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    error: str | None = None
    attributes: Attributes = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()

    @staticmethod
    def builder(class_scope: str, name: str) -> SpanBuilder:
        """Start to build a span; pass the builder to ``MetricGroup.add_span``."""
        return SpanBuilder(class_scope, name)

    @property
    def all_attributes(self) -> dict[str, AttributeValue]:
        """Variables and attributes together; an attribute overrides a variable of the same name."""
        return {**self.variables, **self.attributes}

    def with_variables(self, variables: Mapping[str, str]) -> Span:
        """Return this span with other variables."""
        return replace(self, variables=variables)


class SpanBuilder:
    """Collects the parts of a span and of its children; each setter returns the builder, and none raises.

    What is of another type than it should be becomes text, or is left out and counted.

    Attributes:
        routine: whether a full queue does without it first; most spans are, for there are many.
    """

    def __init__(self, class_scope: str, name: str) -> None:
        self.routine = True
        self._span = Span(text_of(name), text_of(class_scope), 0, 0, trace_id="", span_id="")
        self._attributes: dict[str, AttributeValue] = {}
        self._children: list[SpanBuilder] = []

    @property
    def name(self) -> str:
        """The span's name."""
        return self._span.name

    @property
    def times_ms(self) -> tuple[int, int]:
        """Start and end so far, in ms since the epoch."""
        return self._span.start_ms, self._span.end_ms

    def set_times_ms(self, start_ms: int, end_ms: int) -> SpanBuilder:
        """Set start and end in ms since the epoch; a span that ends before it starts has no length."""
        start, end = time_of(start_ms), time_of(end_ms)
        if start is None or end is None:
            drop("span", "SpanBuilder.set_times_ms", start_ms if start is None else end_ms, "is not a time")
            return self
        if end < start:
            drop("span", "SpanBuilder.set_times_ms", end, f"is {end}, before the start at {start}")
        self._span = replace(self._span, start_ms=start, end_ms=max(start, end))
        return self

    def set_ids(self, trace_id: str, span_id: str, parent_span_id: str | None = None) -> SpanBuilder:
        """Set ids that a replay would repeat; otherwise ``build`` makes random ones."""
        parent = None if parent_span_id is None else text_of(parent_span_id)
        self._span = replace(
            self._span, trace_id=text_of(trace_id), span_id=text_of(span_id), parent_span_id=parent
        )
        return self

    def set_routine(self, routine: bool) -> SpanBuilder:
        """Set whether a full queue drops the span first."""
        self.routine = routine
        return self

    def set_error(self, message: str | None) -> SpanBuilder:
        """Mark the span as failed, unless the message is None."""
        self._span = replace(self._span, error=None if message is None else text_of(message))
        return self

    def set_failure(self, failure: Failure | None, time_ms: int) -> SpanBuilder:
        """Mark the span as failed, with the event ``exception`` and the code's place; None marks nothing."""
        if failure is None:
            return self
        if not is_a(failure, Failure):
            drop("span", "SpanBuilder.set_failure", failure, "is not a Failure")
            return self
        attributes = {
            "exception.type": failure.exception_type,
            "exception.message": failure.message,
            "exception.stacktrace": failure.stacktrace,
        }
        known = {key: value for key, value in attributes.items() if value is not None}
        if is_a(failure.code, CodePlace):
            assert failure.code is not None
            self.set_attributes(failure.code.attributes)
        return self.set_error(failure.message).add_event("exception", time_ms, known)

    def set_attribute(self, key: str, value: AttributeValue | None) -> SpanBuilder:
        """Add one attribute; None means unknown and adds nothing."""
        if value is not None:
            self._attributes[key if type(key) is str else text_of(key)] = plain_of(value)
        return self

    def set_attributes(self, attributes: Mapping[str, AttributeValue | None]) -> SpanBuilder:
        """Add several attributes, as ``set_attribute`` does one."""
        self._attributes.update(attributes_of(attributes, "span", "SpanBuilder.set_attributes"))
        return self

    def add_event(self, name: str, time_ms: int, attributes: Attributes | None = None) -> SpanBuilder:
        """Add something that happened at one moment, in ms since the epoch."""
        at_ms = time_of(time_ms)
        if at_ms is None:
            drop("span", "SpanBuilder.add_event", time_ms, "is not a time")
            return self
        known = {} if attributes is None else attributes_of(attributes, "span", "SpanBuilder.add_event")
        event = SpanEvent(text_of(name), at_ms, ReadOnly(known))
        self._span = replace(self._span, events=(*self._span.events, event))
        return self

    def add_link(self, trace_id: str, span_id: str) -> SpanBuilder:
        """Link to a span of another trace."""
        self._span = replace(
            self._span, links=(*self._span.links, SpanLink(text_of(trace_id), text_of(span_id)))
        )
        return self

    def add_child(self, child: SpanBuilder) -> SpanBuilder:
        """Add a child span; it takes its ids from this one, and its times stay within it."""
        if is_a(child, SpanBuilder):
            self._children.append(child)
        else:
            drop("span", "SpanBuilder.add_child", child, "is not a SpanBuilder")
        return self

    def build(self, variables: Mapping[str, str]) -> Span:
        """Build the span without its children. The metric group calls this, because it has the variables."""
        return replace(
            self._span,
            trace_id=self._span.trace_id or secrets.token_hex(16),
            span_id=self._span.span_id or secrets.token_hex(8),
            attributes=beside(variables, self._attributes),
            variables=variables,
        )

    def build_tree(self, variables: Mapping[str, str]) -> list[Span]:
        """Build the span and everything below it, parents first."""
        span = self.build(variables)
        built = [span]
        for number, child in enumerate(self._children):
            built += child._below(span, number).build_tree(variables)
        return built

    def _below(self, parent: Span, number: int) -> SpanBuilder:
        """Return this builder with its place in a trace."""
        seed = f"{parent.trace_id}{parent.span_id}{self.name}\x1f{number}".encode("utf-8", "replace")
        span_id = self._span.span_id or hashlib.blake2b(seed, digest_size=8).hexdigest()
        start = min(max(self._span.start_ms, parent.start_ms), parent.end_ms)
        end = min(max(self._span.end_ms, start), parent.end_ms)
        return self.set_ids(parent.trace_id, span_id, parent.span_id).set_times_ms(start, end)
