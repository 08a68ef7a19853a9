"""Since when a checkpoint is owed, across the applications of one name, and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from spark_events.history.figures.day_sums import DaySums
from spark_events.history.figures.heard import ApplicationRun, application_run
from spark_events.history.figures.job_runs import RunOfJob
from spark_events.history.figures.timeline import DOWN, STOPPED, STOPS, Interval, outages
from spark_events.history.reading.facts import OVERDUE, Fact

AT_WORK_MS = 10_000
"""How long after its last checkpoint a query that went down was at work. Spark says that an idle one is idle
after as long."""
_INEXACT_MS = 1_000
"""By how much the time since a restart and the time that is owed may differ without any idleness."""
_FIRST, _LAST, _STOP = range(3)
"""Within one ms, a checkpoint comes before that of another application, and before the query's end."""


class _Before(NamedTuple):
    """What came before an application's first checkpoint.

    Attributes:
        time_ms: when, in ms since the epoch; 0 if nothing did.
        committed: whether it was a checkpoint, rather than a stop of the query, or nothing.
    """

    time_ms: int = 0
    committed: bool = False


def owed_since(
    days: Sequence[DaySums], intervals: Sequence[Interval], runs: Sequence[RunOfJob]
) -> dict[int, int]:
    """Return since when the first checkpoint of each application is owed.

    Args:
        days: of a query, in the order of their first checkpoints.
        intervals, runs: of the query.

    Returns:
        In ms since the epoch, by the index of the sums that have the checkpoint; without those whose own
        event says all.
    """
    return {
        index: since_ms
        for index, before in _before_first_checkpoints(days, runs).items()
        if (since_ms := _owed_since(days[index], before, intervals, runs)) is not None
    }


def overdue_ms(
    facts: Iterable[Fact], intervals: Sequence[Interval], last_ms: int | None, until_ms: int
) -> int | None:
    """Return for how long a query's next checkpoint is owed at the end; None if it is not known to be.

    Args:
        facts, intervals: of the query.
        last_ms: when its last checkpoint was, in ms since the epoch.
        until_ms: the end.
    """
    state = intervals[-1].state if intervals else STOPPED
    if state == STOPPED:
        return None
    # Reported live, as owed for longer than the SLA set at that time.
    reports = [
        (fact.time_ms, fact.owed_ms) for fact in facts if fact.fact == OVERDUE and fact.owed_ms is not None
    ]
    reported_ms, owed_ms = max(reports, default=(0, 0))
    if reports and (last_ms is None or reported_ms > last_ms):
        return until_ms - (reported_ms - owed_ms)
    if state != DOWN or last_ms is None:
        return None
    *_, outage = outages(intervals)
    return until_ms - _since(outage.start_ms, _Before(last_ms, committed=True))


def _before_first_checkpoints(days: Sequence[DaySums], runs: Iterable[RunOfJob]) -> dict[int, _Before]:
    """Return what came before the first checkpoint of each application.

    Args:
        days: in the order of their first checkpoints.
        runs: of the query.

    Returns:
        By the index of the sums that have the checkpoint.
    """
    spans = (span for run in runs for span in run.spans)
    moments = [(span.start_ms, _STOP, 0) for span in spans if span.status in STOPS]
    applications: set[ApplicationRun] = set()
    for index, sums in enumerate(days):
        if sums.first_ms is None or sums.last_ms is None:
            continue
        moments.append((sums.last_ms, _LAST, index))
        application = application_run(sums.app_id, sums.attempt)
        if application not in applications:
            applications.add(application)
            moments.append((sums.first_ms, _FIRST, index))
    before_first: dict[int, _Before] = {}
    before = _Before()
    for time_ms, of_this_ms in groupby(sorted(moments), key=itemgetter(0)):
        after = before
        for _, moment, index in of_this_ms:
            if moment == _FIRST:
                before_first[index] = before
            after = _Before(time_ms, committed=moment != _STOP)
        before = after
    return before_first


def _owed_since(
    sums: DaySums, before: _Before, intervals: Sequence[Interval], runs: Iterable[RunOfJob]
) -> int | None:
    """Return since when an application's first checkpoint is owed; None if its own event says all.

    Args:
        sums: that have the checkpoint.
        before: what came before it.
        intervals, runs: of the query.
    """
    assert sums.first_ms is not None
    assert sums.first_owed_ms is not None
    application = application_run(sums.app_id, sums.attempt)
    begins = (run.begun_ms for run in runs if run.application == application)
    begun_ms = max((begun_ms for begun_ms in begins if begun_ms <= sums.first_ms), default=None)
    if begun_ms is not None and sums.first_owed_ms + _INEXACT_MS < sums.first_ms - begun_ms:
        return None  # it was idle first
    if not intervals:
        return before.time_ms if before.committed else None
    # Before an earlier outage, it was up without a checkpoint, and so idle.
    between = [
        each for each in outages(intervals) if before.time_ms < each.end_ms and each.start_ms < sums.first_ms
    ]
    return _since(between[-1].start_ms, before) if between else None


def _since(down_ms: int, before: _Before) -> int:
    """Return since when a checkpoint is owed of a query that went down after what came before."""
    at_work = before.committed and down_ms - before.time_ms <= AT_WORK_MS
    return before.time_ms if at_work else down_ms
