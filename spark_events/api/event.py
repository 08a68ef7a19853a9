"""An event: something that happened once, at a time, to a job of some kind (FLIP-481)."""

from __future__ import annotations

import enum
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_events.api.wrong_values import attributes_of, beside, drop, is_a, plain_of, text_of, time_of

Scalar = str | int | float | bool
AttributeValue = Scalar | tuple[Scalar, ...]
Attributes = Mapping[str, AttributeValue]


class Severity(enum.IntEnum):
    """Severities, with OpenTelemetry's numbers."""

    TRACE = 1
    DEBUG = 5
    INFO = 9
    WARN = 13
    ERROR = 17
    FATAL = 21

    @classmethod
    def of(cls, value: Severity | str) -> Severity | None:
        """Return the severity of a name in any case, also of logging's ``warning`` and ``critical``.

        None of what is not a severity.
        """
        if is_a(value, str):
            name = text_of(value).upper()
            return cls.__members__.get(_AS_IN_LOGGING.get(name, name))
        known: Any = value
        return known if is_a(known, Severity) else None


_AS_IN_LOGGING = {"WARNING": "WARN", "CRITICAL": "FATAL"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event, immutable.

    Attributes:
        id: the same in every replay of the same occurrence, so that consumers can drop duplicates.
        name: such as ``JobStatusChangeEvent``; matched by filters.
        class_scope: which part of the framework saw it; OTLP's instrumentation scope.
        time_ms: when it happened according to Spark's own record, in ms since the epoch.
        severity: as in OpenTelemetry.
        body: one sentence for a person; may be empty.
        attributes: what happened, as values that OTLP and JSON can carry.
        variables: whom it happened to, from the metric group that it was added to.
    """

    id: str
    name: str
    class_scope: str
    time_ms: int
    severity: Severity = Severity.INFO
    body: str = ""
    attributes: Attributes = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def builder(class_scope: str, name: str) -> EventBuilder:
        """Start to build an event; pass the builder to ``MetricGroup.add_event``."""
        return EventBuilder(class_scope, name)

    @property
    def all_attributes(self) -> dict[str, AttributeValue]:
        """Variables and attributes together.

        An attribute that has the name of a variable overrides it; the builder makes none: it calls such an
        attribute ``exported_<name>``.
        """
        return {**self.variables, **self.attributes}

    def with_variables(self, variables: Mapping[str, str]) -> Event:
        """Return this event with other variables."""
        return replace(self, variables=variables)


class EventBuilder:
    """Collects the parts of an event; each setter returns the builder, and none raises.

    What is of another type than it should be becomes text, or is left out and counted.

    Attributes:
        name: the event's name.
        routine: whether a full queue drops it before others.
        history_only: whether it goes only to reporters that keep history.
    """

    def __init__(self, class_scope: str, name: str) -> None:
        self.name = name if type(name) is str else text_of(name)
        self.routine = False
        self.history_only = False
        self._class_scope = class_scope if type(class_scope) is str else text_of(class_scope)
        self._id = ""
        self._time_ms = -1
        self._severity = Severity.INFO
        self._body = ""
        self._attributes: dict[str, AttributeValue] = {}

    def set_routine(self, routine: bool = True) -> EventBuilder:
        """Mark the event as one of many, which a full queue drops first."""
        self.routine = routine
        return self

    def set_history_only(self) -> EventBuilder:
        """Leave the event out where nobody reads it later: see ``EventReporterFactory.keeps_history``."""
        self.history_only = True
        return self

    def set_id(self, event_id: str) -> EventBuilder:
        """Set an id that a replay would repeat; otherwise ``build`` makes a random one."""
        self._id = event_id if type(event_id) is str else text_of(event_id)
        return self

    def set_time_ms(self, time_ms: int) -> EventBuilder:
        """Set when it happened, in ms since the epoch; the default is the current time."""
        at_ms = time_of(time_ms)
        if at_ms is None:
            drop("event", "EventBuilder.set_time_ms", time_ms, "is not a time")
        else:
            self._time_ms = at_ms
        return self

    def set_severity(self, severity: Severity | str) -> EventBuilder:
        """Set the severity, or the one of a name in any case, such as ``warn``; the default is INFO."""
        known = Severity.of(severity)
        if known is not None:
            self._severity = known
        else:
            drop("event", "EventBuilder.set_severity", severity, "is not a Severity")
        return self

    def set_body(self, body: str) -> EventBuilder:
        """Set the sentence for human readers."""
        self._body = body if type(body) is str else text_of(body)
        return self

    def set_attribute(self, key: str, value: AttributeValue | None) -> EventBuilder:
        """Add one attribute; None means unknown and adds nothing."""
        if type(key) is str and type(value) is str:  # as most are
            self._attributes[key] = value
        elif value is not None:
            self._attributes[key if type(key) is str else text_of(key)] = plain_of(value)
        return self

    def set_attributes(self, attributes: Mapping[str, AttributeValue | None]) -> EventBuilder:
        """Add several attributes, as ``set_attribute`` does one."""
        self._attributes.update(attributes_of(attributes, "event", "EventBuilder.set_attributes"))
        return self

    def build(self, variables: Mapping[str, str]) -> Event:
        """Build the event. The metric group calls this, because it has the variables."""
        return Event(
            self._id or uuid.uuid4().hex,
            self.name,
            self._class_scope,
            self._time_ms if self._time_ms >= 0 else now_ms(),
            self._severity,
            self._body,
            beside(variables, self._attributes),
            variables,
        )


def now_ms() -> int:
    """Return the current time in ms since the epoch."""
    return time.time_ns() // 1_000_000
