"""Issues that many stages of one place in the code have, or scans of one table: told as one.

What they cost together is what is to be gained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_events.diagnosis import thresholds as kinds
from spark_events.why.found_issue import FoundIssue, order
from spark_events.why.places import name_in

_OF_STAGES = (
    kinds.GC,
    kinds.PYTHON,
    kinds.RETRIES,
    kinds.SKEW,
    kinds.SPILL,
    kinds.STRAGGLER,
    kinds.TASK_COUNT,
)
_LATEST = "the latest: "
_TABLE = "scan.table"


def grouped(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, those of the same kind and place in the code as one, sorted again."""
    groups: dict[object, list[FoundIssue]] = {}
    for number, issue in enumerate(issues):
        groups.setdefault(_key(issue) or number, []).append(issue)
    together = (_together(group) if len(group) > 1 else group[0] for group in groups.values())
    return sorted(together, key=order)


def _key(issue: FoundIssue) -> tuple[str, ...] | None:
    """Return what issues that are told as one have in common; None for those that are told alone."""
    if issue.kind == kinds.FULL_SCAN and issue.evidence.get(_TABLE) and not _is_of_query(issue):
        column = issue.evidence.get("scan.column")  # that a filter converts
        return issue.kind, str(issue.evidence[_TABLE]), str(issue.lost_ms is None), str(column)
    place = _place(issue)
    if issue.kind not in _OF_STAGES or not place:
        return None
    # Of a run of a query, all stages have the same place: functions are told apart by their names.
    said = issue.sentence.rpartition(": ")[2] if _is_of_query(issue) else ""
    return issue.kind, place, said, str(issue.evidence.get("run_id")), str(issue.evidence.get("fewTasks"))


def _place(issue: FoundIssue) -> str:
    """Return the query or the place in the code that a stage's issue is about; empty if nobody knows it."""
    if _is_of_query(issue):
        return issue.about
    name = name_in(issue.about)
    return name if issue.about.startswith("stage ") and " at " in name else ""


def _is_of_query(issue: FoundIssue) -> bool:
    return issue.about.startswith("query ")


def _together(group: list[FoundIssue]) -> FoundIssue:
    """Return several issues as one, which says of the costliest what it is."""
    most = max(
        group, key=lambda issue: (issue.lost_ms or 0, issue.lost_bytes or 0, issue.number("shareMs") or 0)
    )
    stages = sum(issue.number("stagesSeen") or 1 for issue in group)
    advice = most.advice
    if most.evidence.get("fewTasks"):
        advice += " Jobs that run one after the other can also run at the same time, from threads."
    said = most.sentence.partition(_LATEST)[2] or most.sentence
    what, place = (
        ("SQL executions", name_in(most.about)) if _TABLE in most.evidence else ("stages", _place(most))
    )
    shares_ms = [share_ms for issue in group if (share_ms := issue.number("shareMs")) is not None]
    return replace(
        most,
        about=most.about if _is_of_query(most) else f"{stages} {what} ({place})",
        sentence=f"in {stages} {what}, the costliest: {said}",
        advice=advice,
        lost_ms=_sum(issue.lost_ms for issue in group),
        lost_bytes=_sum(issue.lost_bytes for issue in group),
        evidence={**most.evidence, **({"shareMs": sum(shares_ms)} if shares_ms else {}), "stages": stages},
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
