"""Issues that another one leads to: told after it, for whoever mends that mends them, too."""

from __future__ import annotations

from collections.abc import Iterable

from spark_events.diagnosis.thresholds import GC, SPILL, UNREAD_CACHE
from spark_events.why.found_issue import FoundIssue

_STAGES = "cache.stages"
_OF_MEMORY = (GC, SPILL)


def causes_first(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues in the same order, but for those that a cache leads to which nothing reads.

    It takes memory of the stages that fill it. What it takes in all is not known, so that it would come after
    what these stages lose for want of memory.
    """
    waiting = list(issues)
    ordered: list[FoundIssue] = []
    while waiting:
        issue = waiting.pop(0)
        cause = next((other for other in waiting if _leads_to(other, issue)), None)
        if cause is not None:
            waiting.remove(cause)
            ordered.append(cause)
        ordered.append(issue)
    return ordered


def _leads_to(cause: FoundIssue, issue: FoundIssue) -> bool:
    """Return whether a cache that nothing reads is filled by the stage that lacks memory."""
    if cause.kind != UNREAD_CACHE or issue.kind not in _OF_MEMORY:
        return False
    return _stage(issue.about) in _numbers(cause.evidence.get(_STAGES))


def _numbers(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else []


def _stage(about: str) -> str:
    """Return the number of the stage that an issue is about, as ``stage 3.0 (count at a.py:1)`` says it."""
    word, _, rest = about.partition(" ")
    return rest.partition(".")[0] if word == "stage" else ""
