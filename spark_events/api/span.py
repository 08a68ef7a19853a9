"""A span: something that took a time, such as one checkpoint (FLIP-384)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_events.api.event import Attributes, AttributeValue


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

    @staticmethod
    def builder(class_scope: str, name: str) -> SpanBuilder:
        """Begin a span; hand the builder to ``MetricGroup.add_span``."""
        return SpanBuilder(class_scope, name)

    @property
    def all_attributes(self) -> dict[str, AttributeValue]:
        """Variables and attributes in one; an attribute wins over a variable of its name."""
        return {**self.variables, **self.attributes}

    def with_variables(self, variables: Mapping[str, str]) -> Span:
        """Return this span with other variables."""
        return replace(self, variables=variables)


class SpanBuilder:
    """Collects the parts of a span; each setter returns the builder.

    Attributes:
        routine: whether a full queue does without it first: always, for there are many spans.
    """

    routine = True

    def __init__(self, class_scope: str, name: str) -> None:
        self._span = Span(name, class_scope, 0, 0, trace_id="", span_id="")
        self._attributes: dict[str, AttributeValue] = {}

    @property
    def name(self) -> str:
        """The span's name."""
        return self._span.name

    def set_times_ms(self, start_ms: int, end_ms: int) -> SpanBuilder:
        """Set start and end in ms since the epoch.

        Raises:
            ValueError: the end is before the start.
        """
        if end_ms < start_ms:
            raise ValueError(f"span {self.name!r} ends at {end_ms} ms, before its start at {start_ms} ms")
        self._span = replace(self._span, start_ms=start_ms, end_ms=end_ms)
        return self

    def set_ids(self, trace_id: str, span_id: str, parent_span_id: str | None = None) -> SpanBuilder:
        """Give ids that a replay would repeat; without them, ``build`` makes random ones."""
        self._span = replace(self._span, trace_id=trace_id, span_id=span_id, parent_span_id=parent_span_id)
        return self

    def set_error(self, message: str | None) -> SpanBuilder:
        """Mark the span as failed, unless the message is None."""
        self._span = replace(self._span, error=message)
        return self

    def set_attribute(self, key: str, value: AttributeValue | None) -> SpanBuilder:
        """Add one attribute; None, a value that is not known, adds nothing."""
        if value is not None:
            self._attributes[key] = value
        return self

    def build(self, variables: Mapping[str, str]) -> Span:
        """Make the span; called by the metric group, which knows the variables."""
        return replace(
            self._span,
            trace_id=self._span.trace_id or secrets.token_hex(16),
            span_id=self._span.span_id or secrets.token_hex(8),
            attributes=dict(self._attributes),
            variables=variables,
        )
