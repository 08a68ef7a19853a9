"""What several issues of one stage cost together: no more than the stage took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import (
    CROSS_JOIN,
    EXPLODING_JOIN,
    FULL_SCAN,
    GC,
    MISSING_BROADCAST,
    PYTHON,
    RECOMPUTATION,
    RETRIES,
    SKEW,
    SMALL_FILES,
    STRAGGLER,
    TASK_COUNT,
    WINDOW,
)
from spark_events.diagnosis.writes.small_files import WRITES

_FIRST = (
    EXPLODING_JOIN, CROSS_JOIN, WINDOW, RETRIES, SKEW, STRAGGLER, GC, TASK_COUNT, SMALL_FILES, FULL_SCAN,
    MISSING_BROADCAST, RECOMPUTATION, PYTHON,
)  # fmt: skip
"""Of two kinds, the cause comes before what follows from it: a join that explodes makes its tasks uneven, and
without the uneven task, a filter on partitions would save a share of the time that remains."""


def booked(issues: Sequence[Issue], wall_ms: Mapping[int, int]) -> list[Issue]:
    """Return issues, in the same order, whose costs do not overlap: a stage loses each ms to one of them.

    Args:
        issues: with the stages that each is about; those without any are returned as they are.
        wall_ms: how long each stage took, in ms.
    """
    left_ms, all_booked = dict(wall_ms), list(issues)
    by_window = frozenset().union(*(issue.stages for issue in issues if issue.cause == WINDOW))
    for place in sorted(range(len(issues)), key=lambda place: _precedence(issues[place])):
        all_booked[place] = _booked(issues[place], left_ms)
        of_window = issues[place].kind == TASK_COUNT and issues[place].stages & by_window
        if of_window and issues[place].lost_ms is not None:
            all_booked[place] = replace(all_booked[place], lost_ms=0)  # one task is what the window makes
    return all_booked


def _precedence(issue: Issue) -> tuple[int, bool, int]:
    # More tasks would write more of the small files, not fewer.
    kind = TASK_COUNT if issue.cause == WRITES else issue.kind
    place = _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
    return place, issue.cause != WRITES, -(issue.lost_ms or 0)


def _booked(issue: Issue, left_ms: dict[int, int]) -> Issue:
    stages = [stage for stage in sorted(issue.stages) if stage in left_ms]
    if issue.lost_ms is None or not stages:
        return issue
    lost_ms = min(issue.lost_ms, sum(left_ms[stage] for stage in stages))
    rest_ms = lost_ms
    for stage in sorted(stages, key=lambda stage: -left_ms[stage]):
        taken_ms = min(rest_ms, left_ms[stage])
        left_ms[stage] -= taken_ms
        rest_ms -= taken_ms
    return replace(issue, lost_ms=lost_ms)
