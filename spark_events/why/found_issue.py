"""Issues as their events tell them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_events.api.toolkit.formatting import cost, duration
from spark_events.diagnosis import thresholds as kinds
from spark_events.diagnosis.issue import OUTGROWN

_OF_AN_ISSUE = frozenset(
    ("issue", "subject", "summary", "advice", "lostMs", "lostBytes", "app_name", "app_id", "job_kind")
)
SHARES = {
    kinds.UNREAD_CACHE: "goes to stages that fill a cache which nothing reads",
    kinds.EXPANDED_ROWS: "goes to the additional rows that are made of each for an aggregation",
    kinds.NO_DUPLICATES: "may go to looking for duplicates where there are none",
    kinds.LATE_FILTER: "may go to duplicates of rows that the next filter drops",
    kinds.CROSS_JOIN: "may go to comparing all pairs of rows",
    kinds.NEEDLESS_SHUFFLE: "may go to moving rows that the next step moves again",
    kinds.LONG_CASE: "goes to the conditions of a long CASE",
    kinds.COMPRESSION: "may go to compressing files at a high level",
    kinds.SLOW_PATTERN: "goes to regular expressions that take long for each row",
    kinds.REWRITE: "may go to writing rows again that have not changed",
    kinds.FOREACH_BATCH: "may go to waiting while foreach writes rows",
    kinds.EXPLODING_JOIN: "may go to pairs of rows that the condition of a join throws away",
    kinds.FULL_SCAN: "may go to reading partitions of which no row is needed",
    kinds.WINDOW: "may go to a window that goes through many rows for each row",
    kinds.RECOMPUTATION: "may go to computing {what} again",
}
"""What takes the time of issues of which nobody knows the cost, but which may be lost as a whole."""
_SETTING = re.compile(r"spark(?:\.[A-Za-z]+)+")
_STARTED_WITH = " The run was started with "
_LONGEST_VALUE = 100
_LARGEST = 2**53
"""Of the whole numbers that JSON's readers take."""


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

    @property
    def cost(self) -> str:
        """What it cost, or else how long what it is about took; empty if neither is known."""
        if self.lost_ms is not None or self.lost_bytes is not None:
            return cost(self.lost_ms, self.lost_bytes)
        share_ms = self.number("shareMs")
        return f"{duration(share_ms)} in all" if share_ms else ""

    def is_worth(self, least_ms: int) -> bool:
        """Return whether it costs so much time, or may; what costs no time, always."""
        time_ms = self.number("shareMs") if self.lost_ms is None else self.lost_ms
        return time_ms is None or time_ms >= least_ms

    def within(self, whole_ms: int) -> FoundIssue:
        """Return it with no more time than there was, in ms: of stages side by side, it was added up."""
        lost_ms, share_ms = self.lost_ms, self.number("shareMs")
        if max(lost_ms or 0, share_ms or 0) <= whole_ms:
            return self
        shares = {} if share_ms is None else {"shareMs": min(share_ms, whole_ms)}
        lost_ms = None if lost_ms is None else min(lost_ms, whole_ms)
        return replace(self, lost_ms=lost_ms, evidence={**self.evidence, **shares})

    def number(self, name: str) -> int | None:
        """Return a number of the evidence, which stored events may have as a text; None if it is none."""
        return _number(self.evidence.get(name))


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


def with_present_values(issue: FoundIssue, conf: Mapping[str, str]) -> FoundIssue:
    """Return an issue whose advice says which values a run has given to the settings that it names.

    Args:
        issue: it.
        conf: the settings that the run was started with.
    """
    named = dict.fromkeys(_SETTING.findall(issue.advice))
    values = [f"{name}={conf[name][:_LONGEST_VALUE]}" for name in named if name in conf]
    if not values or _STARTED_WITH in issue.advice:
        return issue
    return replace(issue, advice=f"{issue.advice}{_STARTED_WITH}{' and '.join(values)}.")


def _about(attributes: Mapping[str, Any]) -> str:
    """Return what has an issue, with the place in the code that the live driver has seen, if any."""
    subject, path = str(attributes.get("subject") or ""), str(attributes.get("code.file.path") or "")
    place = f"{path.rpartition('/')[2]}:{attributes.get('code.line.number')}"
    return f"{subject}, {place}" if path and place not in subject else subject


def by_cost(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues as they were told last: those that cost most time first.

    An issue is told again while its cost grows, with the same id; in the end, it may be too small a part of
    the run.
    """
    latest: dict[str, FoundIssue] = {}
    for number, issue in enumerate(issues):
        latest[str(issue.evidence.get("issueId") or number)] = issue
    return sorted((issue for issue in latest.values() if not issue.evidence.get(OUTGROWN)), key=order)


def order(issue: FoundIssue) -> tuple[bool, int, int, bool, int, str]:
    """Return by what issues are sorted: time that was lost, bytes, and time of which a part may be lost.

    Of time that may be lost as a whole, half counts as lost; but of stages that read the same RDD, nobody
    knows whether they do the same with it. Of the rest, what functions in Python take comes
    after what may be done for nothing: they are needed. Memory that nobody needed slows nothing, and comes
    last.
    """
    of_rdd = str(issue.evidence.get("recomputation.what") or "").startswith("RDD ")
    may_be_lost = issue.kind in SHARES and not of_rdd
    may_be_lost_ms = (issue.number("shareMs") or 0) // 2 if may_be_lost else 0
    lost = -(issue.lost_ms or may_be_lost_ms), -(issue.lost_bytes or 0)
    needed = issue.kind == kinds.PYTHON and issue.lost_ms is None
    return issue.kind == kinds.MEMORY, *lost, needed, -(issue.number("shareMs") or 0), issue.about


def _number(value: Any) -> int | None:
    """Return a number of stored events, which may be damaged; None if it is none, or none that can be."""
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if 0 <= number <= _LARGEST else None
