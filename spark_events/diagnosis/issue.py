"""One issue: what is slow, what it cost, how that shows, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_events.api import Severity
from spark_events.api.event import AttributeValue

OUTGROWN = "outgrown"
"""The evidence that an issue, told when it was a large part of a run, is none of the run as a whole."""


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
        driver_ms: how much of its cost is time for which the driver worked.
        driver_span_ms: when that began at the earliest, and ended at the latest, in ms since the epoch.
        uneven_ms: what a late task would have cost if it had more data than others, in ms; None if not late.
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
    uneven_ms: int | None = None
    driver_ms: int = 0
    driver_span_ms: tuple[int, int] = (0, 0)

    @property
    def time_ms(self) -> int:
        """What it cost, or else how long what it is about took, in ms; 0 if neither is known."""
        return self.lost_ms or self.share_ms or 0

    def plus(self, newer: Issue) -> Issue:
        """Return a newer issue of the same cause, with what both have cost."""
        return replace(
            newer,
            lost_ms=_sum(self.lost_ms, newer.lost_ms),
            lost_bytes=_sum(self.lost_bytes, newer.lost_bytes),
            share_ms=_sum(self.share_ms, newer.share_ms),
            stages=self.stages | newer.stages,
        )


def _sum(before: int | None, newer: int | None) -> int | None:
    return None if before is None and newer is None else (before or 0) + (newer or 0)
