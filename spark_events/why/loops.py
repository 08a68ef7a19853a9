"""Loops of small jobs in the driver, with all that one change of the loop mends."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.repeated_work.looped_reads import READ_AT
from spark_events.diagnosis.thresholds import SKEW, STRAGGLER
from spark_events.diagnosis.times.program_loops import LOOP_AT, LOOP_JOBS, LOOP_SPAN, are_in_turn
from spark_events.why.found_issue import FoundIssue, order
from spark_events.why.places import name_in

_IN_TURN = " In turn with them run"


def without_idle_cores_of_loops(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues without the few or late tasks that most stages of a loop have.

    The loop costs what all cores would not need for its tasks: that has these in it. Those of a few turns say
    what is wrong with these.
    """
    kept = list(issues)
    loops = [issue for issue in kept if LOOP_AT in issue.evidence and issue.lost_ms]
    jobs = {str(loop.evidence[LOOP_AT]): loop.number(LOOP_JOBS) or 0 for loop in loops}

    def is_of_most_turns(issue: FoundIssue) -> bool:
        stages = issue.number("stages") or issue.number("stagesSeen") or 1
        return 2 * stages >= jobs.get(name_in(issue.about), sys.maxsize)

    return [issue for issue in kept if not (_leaves_cores_idle(issue) and is_of_most_turns(issue))]


def _leaves_cores_idle(issue: FoundIssue) -> bool:
    return issue.kind in (SKEW, STRAGGLER) or bool(issue.evidence.get("fewTasks"))


def with_loops_in_turn(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which loops whose small jobs run in turn are one loop of the driver."""
    merged: list[FoundIssue] = []
    for issue in issues:
        place, jobs = issue.evidence.get(LOOP_AT), issue.number(LOOP_JOBS)
        same = next((number for number, other in enumerate(merged) if _in_turn(other, issue)), None)
        if same is None or not jobs:
            merged.append(issue)
            continue
        first, more_ms = merged[same], issue.lost_ms or 0
        begins = ", and" if _IN_TURN in first.sentence else f".{_IN_TURN}"
        merged[same] = replace(
            first,
            sentence=f"{first.sentence}{begins} {jobs:,} of {place}, which cost {duration(more_ms)} of this",
            lost_ms=(first.lost_ms or 0) + more_ms,
            evidence={**first.evidence, LOOP_JOBS: (first.number(LOOP_JOBS) or 0) + jobs},
        )
    return sorted(merged, key=order)


def _in_turn(issue: FoundIssue, other: FoundIssue) -> bool:
    """Return whether the jobs of two loops run at about the same time."""
    return are_in_turn(_span(issue), _span(other))


def _span(issue: FoundIssue) -> tuple[int, int]:
    begun, ended = LOOP_SPAN
    return issue.number(begun) or 0, issue.number(ended) or 0


def with_reads_of_loops(issues: Iterable[FoundIssue]) -> list[FoundIssue]:
    """Return issues, sorted again, in which what the jobs of a loop read again is a part of the loop.

    Its own cost is what they take beyond what all cores could do; the rest of them reads the same table.
    """
    kept = list(issues)
    for reads in [issue for issue in kept if READ_AT in issue.evidence and issue.lost_ms]:
        loop = next((each for each in kept if each.evidence.get(LOOP_AT) == reads.evidence[READ_AT]), None)
        if loop is None:
            continue
        kept.remove(reads)
        kept[kept.index(loop)] = replace(
            loop,
            sentence=f"{loop.sentence}. Of the cost, {duration(reads.lost_ms)} is for what they read: "
            f"{reads.sentence}",
            advice=f"{loop.advice} {reads.advice}",
            lost_ms=(loop.lost_ms or 0) + (reads.lost_ms or 0),
        )
    return sorted(kept, key=order)
