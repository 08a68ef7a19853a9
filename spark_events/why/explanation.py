"""The answer for one application: where its time went, what slowed it, and what cores would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import Event
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.cores_model import Estimate, critical_path_ms, estimates
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.runtime.settings import key_of
from spark_events.why.run_figures import RunFigures

LEAST = key_of(Thresholds, "min_time_ms")
_OF_AN_ISSUE = frozenset(
    ("issue", "subject", "summary", "advice", "lostMs", "lostBytes", "app_name", "app_id", "job.kind")
)


@dataclass(frozen=True, slots=True)
class FoundIssue:
    """An issue as an event tells it.

    Attributes:
        severity: of its event; empty if that is not known.
        about: what has it.
        lost_ms, lost_bytes: what it cost; None where it cost no time, or no bytes.
        evidence: the other attributes of its event.
    """

    kind: str
    severity: str
    about: str
    sentence: str
    advice: str
    lost_ms: int | None
    lost_bytes: int | None
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an application took as long as it did.

    Attributes:
        begun_ms, ended_ms: in ms since the epoch.
        ended: whether its end is known.
        parts: how long each part took, in ms; they add up to all of it. None if only its events are known.
        issues: by what they cost, the costliest first.
        critical_path_ms: the least time with endless cores; None as above.
        estimates: with other numbers of cores.
        figures: what it read, wrote and was given; None as above.
        least_ms: what an issue costs at least that is looked for, in ms; None if that is not known.
    """

    app_name: str
    app_id: str
    begun_ms: int
    ended_ms: int
    ended: bool
    issues: list[FoundIssue]
    parts: Mapping[str, int] | None = None
    critical_path_ms: int | None = None
    estimates: list[Estimate] = field(default_factory=list)
    figures: RunFigures | None = None
    least_ms: int | None = None

    @property
    def none_found(self) -> str:
        """What to say where there is no issue: small ones are not looked for."""
        if self.least_ms is None:
            return (
                "no performance issue found among the stored events: "
                f"smaller ones than {LEAST} said, 30 s by default, are not stored"
            )
        least = duration(self.least_ms)
        return f"no performance issue found that cost {least} or more; for smaller ones: --conf {LEAST}=1s"

    @property
    def duration_ms(self) -> int:
        """How long it took, in ms."""
        return max(0, self.ended_ms - self.begun_ms)


def explain(
    app_name: str,
    app_id: str,
    timeline: ApplicationTimeline,
    figures: RunFigures,
    ended: bool,
    events: Iterable[Event],
    least_ms: int,
) -> Explanation:
    """Return the explanation of an application whose event log was read."""
    timeline.end()
    figures.end(timeline)
    return Explanation(
        app_name,
        app_id,
        timeline.begun_ms,
        timeline.ended_ms,
        ended,
        by_cost(issue_of(event.all_attributes, event.severity.name) for event in events),
        timeline.time_use(),
        critical_path_ms(timeline.run) if timeline.run else None,
        estimates(timeline.run) if timeline.run else [],
        figures,
        least_ms,
    )


_LARGEST = 2**53
"""Of the whole numbers that JSON's readers take."""


def issue_of(attributes: Mapping[str, Any], severity: str = "") -> FoundIssue:
    """Return what a PerformanceIssueEvent with these attributes tells."""
    return FoundIssue(
        kind=str(attributes["issue"]),
        severity=severity,
        about=_about(attributes),
        sentence=str(attributes.get("summary") or ""),
        advice=str(attributes.get("advice") or ""),
        lost_ms=_number(attributes.get("lostMs")),
        lost_bytes=_number(attributes.get("lostBytes")),
        evidence={key: value for key, value in attributes.items() if key not in _OF_AN_ISSUE},
    )


def _about(attributes: Mapping[str, Any]) -> str:
    """Return what has an issue, with the place in the code that the live driver has seen, if any."""
    subject, path = str(attributes.get("subject") or ""), str(attributes.get("code.file.path") or "")
    place = f"{path.rpartition('/')[2]}:{attributes.get('code.line.number')}"
    return f"{subject}, {place}" if path and place not in subject else subject


def by_cost(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues as they were told last: those that cost most time first, then those that cost most bytes.

    An issue is told again while its cost grows, with the same id.
    """
    latest: dict[str, FoundIssue] = {}
    for number, issue in enumerate(issues):
        latest[str(issue.evidence.get("issue.id") or number)] = issue
    return _sorted(latest.values())


def _sorted(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    return sorted(issues, key=lambda issue: (-(issue.lost_ms or 0), -(issue.lost_bytes or 0), issue.about))


def _number(value: Any) -> int | None:
    """Return a number of stored events, which may be damaged; None if it is none, or none that can be."""
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if 0 <= number <= _LARGEST else None
