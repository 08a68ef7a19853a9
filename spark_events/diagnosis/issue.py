"""One issue: what is slow, what it cost, how that shows, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_events.api import Severity
from spark_events.api.event import AttributeValue


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue of a stage, a query or an application.

    Attributes:
        kind: one of ``thresholds.KINDS``.
        cause: what tells it from other issues of the same subject; two kinds may have one cause.
        lost_ms: how much longer it took, in ms; None if it cost no time.
        lost_bytes: how many bytes it cost; None if it cost none.
        sentence: what is wrong, without its subject.
        advice: one thing to do, with the setting or the place in the code.
        evidence: the figures behind it, by name of an event's attribute.
        share_ms: how long what it is about took, in ms, where nobody knows how long it would take otherwise;
            None where ``lost_ms`` says what it cost.
        stages: the stages that would have taken less time; what all issues of a stage cost is no more than
            the stage took.
    """

    kind: str
    cause: str
    lost_ms: int | None
    lost_bytes: int | None
    sentence: str
    advice: str
    severity: Severity = Severity.WARN
    evidence: Mapping[str, AttributeValue] = field(default_factory=dict)
    share_ms: int | None = None
    stages: frozenset[int] = frozenset()
