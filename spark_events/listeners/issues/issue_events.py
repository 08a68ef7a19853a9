"""The event of a performance issue, and its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from spark_events.api import Counter, Event, MetricGroup
from spark_events.api.event import AttributeValue
from spark_events.api.toolkit.formatting import duration, percent
from spark_events.diagnosis.claims import Claims
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import REGRESSION, Thresholds
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.runtime import event_names

CLASS_SCOPE = "spark_events.listeners.PerformanceIssue"
OPEN, CLOSED = "OPEN", "CLOSED"
_MOST_GROWING = 200


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


class TakeIssue(Protocol):
    """Takes what an issue has cost so far; see ``ApplicationIssues``."""

    def __call__(
        self,
        issue: Issue,
        time_ms: int,
        lost_in: tuple[int, int] | None = None,
        of: tuple[str, int] | None = None,
    ) -> None:
        """Take it."""


class IssueEvents:
    """Reports the issues of one application, and counts them.

    Attributes:
        claims: what they have cost so far, but for those of streaming queries, each of which has its own.
    """

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._thresholds: Thresholds = context.settings.thresholds
        self.claims = Claims()
        # From the start on, so that whoever watches them sees the first issue as an increase.
        self._counters = {kind: self._register(kind) for kind in self._thresholds.kinds}

    def matters(self, issue: Issue, whole_ms: int) -> bool:
        """Return whether an issue costs enough to be reported, of something that took this long, in ms."""
        if issue.kind not in self._thresholds.kinds:
            return False
        time_ms = issue.share_ms if issue.lost_ms is None else issue.lost_ms
        if time_ms is None and issue.lost_bytes is None:
            return True  # it has cost nothing yet, and will
        least_ms = max(self._thresholds.min_time_ms, self._thresholds.min_share * whole_ms)
        if time_ms is not None and time_ms >= least_ms:
            return True
        return issue.lost_bytes is not None and issue.lost_bytes >= self._thresholds.min_bytes

    def report(
        self, issue: Issue, subject: Subject, time_ms: int, lost_in: tuple[int, int] | None = None
    ) -> None:
        """Report an issue, which must be reported only once for each cause, and count it.

        Of its cost, only what no other issue has cost already counts; if that is too little, the others tell
        enough.

        Args:
            issue: what is wrong.
            subject: what it is about.
            time_ms: when it was found, in ms since the epoch.
            lost_in: from when until when it has lost time, in ms since the epoch; None if nobody knows.
        """
        if issue.lost_ms and issue.kind != REGRESSION:
            if lost_in is None:
                lost_ms = self.claims.claim_some(subject.whole_ms, issue.lost_ms)
            else:
                lost_ms = self.claims.claim(*lost_in, issue.lost_ms)
            issue = replace(issue, lost_ms=lost_ms)
            if not self.matters(issue, subject.whole_ms):
                return
        self.update(issue, subject, time_ms, 0, 0, CLOSED)

    def update(
        self, issue: Issue, subject: Subject, time_ms: int, number: int, told_ms: int, state: str
    ) -> None:
        """Report what an issue has cost so far.

        Args:
            issue: what is wrong.
            subject: what it is about.
            time_ms: when it was found, in ms since the epoch.
            number: how often it was reported before.
            told_ms: what it had cost by the last report, in ms; 0 before the first.
            state: whether it may cost more.
        """
        occasion = ("issue", issue.cause, str(number)) if number else ("issue", issue.cause)
        self._emit(issue, subject, time_ms, occasion, state)
        issues, lost = self._counters[issue.kind]
        if not number:
            issues.inc()
        lost.inc(max(0, (issue.lost_ms or 0) - told_ms))

    def warn(self, issue: Issue, subject: Subject, time_ms: int) -> None:
        """Report an issue while there is time to do something about it; the end says what it really was."""
        self._emit(issue, subject, time_ms, ("issue", issue.cause, "live"), OPEN)

    def _emit(
        self, issue: Issue, subject: Subject, time_ms: int, occasion: tuple[str, ...], state: str
    ) -> None:
        issue_id = self._context.emitter.digest(
            8, subject.entity, event_names.PERFORMANCE_ISSUE, "issue", issue.cause
        )
        event = (
            Event.builder(CLASS_SCOPE, event_names.PERFORMANCE_ISSUE)
            .set_severity(issue.severity)
            .set_body(_sentence(issue, subject))
            .set_attribute("issue", issue.kind)
            .set_attribute("issueId", issue_id)
            .set_attribute("issueState", state)
            .set_attribute("subject", subject.entity.title)
            .set_attribute("summary", issue.sentence)
            .set_attribute("lostMs", issue.lost_ms)
            .set_attribute("lostBytes", issue.lost_bytes)
            .set_attribute("shareMs", issue.share_ms)
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


@dataclass(slots=True)
class _Growing:
    """An issue that was found.

    Attributes:
        number: how often it was told.
        told_cost: what it had cost by then.
        claimed_ms, counted_ms: what it has cost that was claimed, and what of that no other issue had.
        told_ms: what of that was told.
    """

    issue: Issue
    subject: Subject
    number: int = 0
    told_cost: int = 0
    claimed_ms: int = 0
    counted_ms: int = 0
    told_ms: int = 0


class GrowingIssues:
    """The issues of something that goes on: told when they matter, when they have doubled, and at the end.

    Args:
        events: reports them.
        claims: what its issues have cost so far.
    """

    def __init__(self, events: IssueEvents, claims: Claims) -> None:
        self._events = events
        self._claims = claims
        self._by_cause: dict[str, _Growing] = {}

    def take(
        self, issue: Issue, subject: Subject, time_ms: int, lost_in: tuple[int, int] | None = None
    ) -> None:
        """Called with what an issue has cost so far; of causes beyond the first 200, none is told.

        Args:
            issue: what is wrong.
            subject: what it is about.
            time_ms: when it was found, in ms since the epoch.
            lost_in: when it has cost the latest of it: from and until, in ms since the epoch; or None.
        """
        growing = self._by_cause.get(issue.cause)
        if growing is None:
            if len(self._by_cause) >= _MOST_GROWING:
                return
            growing = self._by_cause[issue.cause] = _Growing(issue, subject)
        growing.issue, growing.subject = issue, subject
        matters = self._events.matters(issue, subject.whole_ms)
        if lost_in is not None and (matters or growing.number):
            self._claim(growing, lost_in)
        if matters and (not growing.number or _cost(issue) >= 2 * growing.told_cost):
            self._tell(growing, time_ms, OPEN)

    def tell(self, time_ms: int) -> None:
        """Called when somebody wants to know how it is now: what has cost more since it was told is told."""
        for growing in self._by_cause.values():
            costs_more = growing.number and _cost(growing.issue) > growing.told_cost
            if costs_more or self._events.matters(growing.issue, growing.subject.whole_ms):
                self._tell(growing, time_ms, OPEN)

    def close(self, time_ms: int) -> None:
        """Called when it has ended: what was told is told with what it has cost in all."""
        for growing in self._by_cause.values():
            if growing.number or self._events.matters(growing.issue, growing.subject.whole_ms):
                self._tell(growing, time_ms, CLOSED)
        self._by_cause.clear()

    def _claim(self, growing: _Growing, lost_in: tuple[int, int] | None) -> None:
        more_ms = max(0, (growing.issue.lost_ms or 0) - growing.claimed_ms)
        growing.claimed_ms += more_ms
        counted_ms = self._claims.claim(*lost_in, more_ms) if lost_in else 0
        counted_ms += self._claims.claim_some(growing.subject.whole_ms, more_ms - counted_ms)
        growing.counted_ms += counted_ms

    def _tell(self, growing: _Growing, time_ms: int, state: str) -> None:
        issue, subject = growing.issue, growing.subject
        if issue.lost_ms:
            self._claim(growing, None)
            issue = replace(issue, lost_ms=growing.counted_ms)
            if not growing.number and not self._events.matters(issue, subject.whole_ms):
                return
        self._events.update(issue, subject, time_ms, growing.number, growing.told_ms, state)
        growing.number += 1
        growing.told_ms = growing.counted_ms
        growing.told_cost = _cost(growing.issue)


def _cost(issue: Issue) -> int:
    return issue.lost_ms or issue.share_ms or issue.lost_bytes or 1


def _sentence(issue: Issue, subject: Subject) -> str:
    sentence = f"{subject.entity.title}: {issue.sentence}"
    if issue.lost_ms is None or not subject.whole_ms:
        return sentence
    share = percent(100 * min(1.0, issue.lost_ms / subject.whole_ms))
    return f"{sentence}; that costs {duration(issue.lost_ms)}, {share} of {subject.whole}"
