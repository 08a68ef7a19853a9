"""The event of a performance issue, and its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import Counter, Event, MetricGroup
from spark_events.api.event import AttributeValue
from spark_events.api.toolkit.formatting import duration, percent
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity

CLASS_SCOPE = "spark_events.listeners.PerformanceIssue"


@dataclass(frozen=True, slots=True)
class Subject:
    """What an issue is about.

    Attributes:
        whole: what its cost is compared with, such as ``job 3``.
        whole_ms: how long that has taken, in ms.
        attributes: of the event, besides those of every issue.
    """

    entity: Entity
    group: MetricGroup
    whole: str
    whole_ms: int
    attributes: Mapping[str, AttributeValue | None]


class IssueEvents:
    """Reports the issues of one application, and counts them."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._thresholds: Thresholds = context.settings.thresholds
        # From the start on, so that whoever watches them sees the first issue as an increase.
        self._counters = {kind: self._register(kind) for kind in self._thresholds.kinds}

    def matters(self, issue: Issue, whole_ms: int) -> bool:
        """Return whether an issue costs enough to be reported, of something that took this long, in ms."""
        if issue.kind not in self._thresholds.kinds:
            return False
        if issue.lost_ms is None:
            return (issue.lost_bytes or 0) >= self._thresholds.min_bytes
        least_ms = max(self._thresholds.min_time_ms, self._thresholds.min_share * whole_ms)
        return issue.lost_ms >= least_ms

    def report(self, issue: Issue, subject: Subject, time_ms: int) -> None:
        """Report an issue, which must be reported only once for each cause, and count it.

        Args:
            issue: what is wrong.
            subject: what it is about.
            time_ms: when it was found, in ms since the epoch.
        """
        self._emit(issue, subject, time_ms, ("issue", issue.cause))
        issues, lost = self._counters[issue.kind]
        issues.inc()
        lost.inc(issue.lost_ms or 0)

    def warn(self, issue: Issue, subject: Subject, time_ms: int) -> None:
        """Report an issue while there is time to do something about it; the end says what it really was."""
        self._emit(issue, subject, time_ms, ("issue", issue.cause, "live"))

    def _emit(self, issue: Issue, subject: Subject, time_ms: int, occasion: tuple[str, ...]) -> None:
        event = (
            Event.builder(CLASS_SCOPE, "PerformanceIssueEvent")
            .set_severity(issue.severity)
            .set_body(_sentence(issue, subject))
            .set_attribute("issue", issue.kind)
            .set_attribute("subject", subject.entity.title)
            .set_attribute("summary", issue.sentence)
            .set_attribute("lostMs", issue.lost_ms)
            .set_attribute("lostBytes", issue.lost_bytes)
            .set_attribute("durationMs", subject.whole_ms)
            .set_attribute("advice", issue.advice)
            .set_attributes(subject.attributes)
            .set_attributes(issue.evidence)
        )
        self._context.emitter.emit(event, subject.entity, subject.group, time_ms, occasion)

    def _register(self, kind: str) -> tuple[Counter, Counter]:
        scopes, labels = self._context.scopes, {"issue": kind}
        issues = Counter("{issue}", "Performance issues, by kind.")
        lost = Counter("ms", "Time that performance issues have cost, by kind.")
        scopes.events().child(components=("issue", kind), variables=labels).register("issues", issues)
        scopes.application().child(components=("lost", kind), variables=labels).register("lostTime", lost)
        return issues, lost


def _sentence(issue: Issue, subject: Subject) -> str:
    sentence = f"{subject.entity.title}: {issue.sentence}"
    if issue.lost_ms is None or not subject.whole_ms:
        return sentence
    share = percent(100 * min(1.0, issue.lost_ms / subject.whole_ms))
    return f"{sentence}; that costs {duration(issue.lost_ms)}, {share} of {subject.whole}"
