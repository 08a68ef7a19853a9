"""Issues of many stages or SQL executions of one place in the code, or of scans of one table: told as one.

What they cost together is what is to be gained.
"""

from __future__ import annotations

from collections import Counter
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
_OF_EXECUTIONS = (
    kinds.CROSS_JOIN,
    kinds.EXPANDED_ROWS,
    kinds.EXPLODING_JOIN,
    kinds.LARGE_BROADCAST,
    kinds.LATE_FILTER,
    kinds.LONG_CASE,
    kinds.MISSING_BROADCAST,
    kinds.NEEDLESS_SHUFFLE,
    kinds.NO_DUPLICATES,
    kinds.REWRITE,
    kinds.SLOW_PATTERN,
    kinds.WINDOW,
)
_EXECUTION = "SQL execution "
_LATEST = "the latest: "
_TABLE = "scan.table"


def grouped(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, those of the same kind and place in the code as one, sorted again."""
    groups: dict[object, list[FoundIssue]] = {}
    of_executions: Counter[tuple[str, str]] = Counter()
    for number, issue in enumerate(issues):
        of_executions[issue.kind, issue.about] += 1
        key = _key(issue, of_executions[issue.kind, issue.about])
        groups.setdefault(key or number, []).append(issue)
    together = (_together(group) if len(group) > 1 else group[0] for group in groups.values())
    return sorted(together, key=order)


def _key(issue: FoundIssue, nth: int) -> tuple[object, ...] | None:
    """Return what issues that are told as one have in common; None for those that are told alone.

    Args:
        issue: it.
        nth: how many of its kind what it is about has so far, with this one: of two joins in each turn of a
            loop, those that cost more are one issue, and the others another.
    """
    if issue.kind == kinds.FULL_SCAN and issue.evidence.get(_TABLE) and not _is_of_query(issue):
        column = issue.evidence.get("scan.column")  # that a filter converts
        return issue.kind, str(issue.evidence[_TABLE]), str(issue.lost_ms is None), str(column)
    place = _place(issue)
    if issue.about.startswith(_EXECUTION):
        is_one = issue.kind in _OF_EXECUTIONS and place
        return (issue.kind, place, issue.lost_ms is None, nth) if is_one else None
    if issue.kind not in _OF_STAGES or not place:
        return None
    # Of a run of a query, all stages have the same place: functions are told apart by their names.
    said = issue.sentence.rpartition(": ")[2] if _is_of_query(issue) else ""
    of_run, few = str(issue.evidence.get("run_id")), str(issue.evidence.get("fewTasks"))
    return issue.kind, place, said, of_run, few, issue.lost_ms is None


def _place(issue: FoundIssue) -> str:
    """Return the query or the place in the code that an issue is about; empty if nobody knows it."""
    if _is_of_query(issue):
        return issue.about
    name = name_in(issue.about)
    # What changes a table again and again, with the same tables, does so in a loop, or for each run of a job.
    is_one = " at " in name or (issue.kind == kinds.REWRITE and " of " in name)
    return name if issue.about.startswith(("stage ", _EXECUTION)) and is_one else ""


def _is_of_query(issue: FoundIssue) -> bool:
    return issue.about.startswith("query ")


def _together(group: list[FoundIssue]) -> FoundIssue:
    """Return several issues as one, which says of the costliest what it is."""
    most = max(
        group, key=lambda issue: (issue.lost_ms or 0, issue.lost_bytes or 0, issue.number("shareMs") or 0)
    )
    in_executions = most.about.startswith(_EXECUTION)
    count = len(group) if in_executions else sum(issue.number("stagesSeen") or 1 for issue in group)
    advice = most.advice
    if most.evidence.get("fewTasks"):
        advice += " Jobs that run one after the other can also run at the same time, from threads."
    said = most.sentence.partition(_LATEST)[2] or most.sentence
    what, place = ("SQL executions", name_in(most.about)) if in_executions else ("stages", _place(most))
    # Stages are listed where other rules ask for them.
    listed = {
        name: ", ".join(str(issue.evidence[name]) for issue in group if name in issue.evidence)
        for name in most.evidence
        if name.endswith(".stages")
    }
    shares_ms = [share_ms for issue in group if (share_ms := issue.number("shareMs")) is not None]
    return replace(
        most,
        about=most.about if _is_of_query(most) else f"{count} {what} ({place})",
        sentence=f"in {count} {what}, the costliest: {said}",
        advice=advice,
        lost_ms=_sum(issue.lost_ms for issue in group),
        lost_bytes=_sum(issue.lost_bytes for issue in group),
        evidence={
            **most.evidence,
            **listed,
            **({"shareMs": sum(shares_ms)} if shares_ms else {}),
            "stages": count,
        },
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
