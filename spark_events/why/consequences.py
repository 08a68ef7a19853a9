"""Issues that another one leads to: told after it, for whoever mends that mends them, too."""

from __future__ import annotations

from collections.abc import Iterable

from spark_events.diagnosis.thresholds import EXPANDED_ROWS, GC, SPILL, UNREAD_CACHE
from spark_events.why.found_issue import FoundIssue

_TAKE_MEMORY = {UNREAD_CACHE: "cache.stages", EXPANDED_ROWS: "expand.stages"}
"""The issues that take memory, and which evidence says of which stages."""
_LACK_MEMORY = (GC, SPILL)


def causes_first(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues in the same order, but for those that are about memory which others take for nothing.

    What a cache costs that nothing reads is not known, nor what additional rows cost: both would come after
    what their stages lose for want of memory.
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
    """Return whether an issue is that a stage lacks memory which another one takes."""
    if cause.kind not in _TAKE_MEMORY or issue.kind not in _LACK_MEMORY:
        return False
    stages = str(cause.evidence.get(_TAKE_MEMORY[cause.kind]) or "").split(", ")
    return bool(_stage(issue.about)) and _stage(issue.about) in stages


def _stage(about: str) -> str:
    """Return the number of the stage that an issue is about, as ``stage 3.0 (count at a.py:1)`` says it."""
    word, _, rest = about.partition(" ")
    return rest.partition(".")[0] if word == "stage" else ""
