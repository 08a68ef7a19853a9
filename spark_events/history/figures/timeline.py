"""The status of one application or query over time.

It is computed in three steps: the statuses of each run on its own (``job_runs``); the times at which any run
changes, with the number of runs in each status from then on; and, from these, the status of the job.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from spark_events.history.figures.job_runs import ENDS, LOST, UNKNOWN, RunOfJob

UP, DOWN, NOT_HEARD, STARTING, STOPPED = "up", "down", "unknown", "starting", "stopped"
STATES = (UP, DOWN, NOT_HEARD, STARTING, STOPPED)
LAST_FAILED = "failed"
"""The state of a batch application whose last run failed or was lost: nobody expects it to run now."""
BAD_STATES = (NOT_HEARD, DOWN, LAST_FAILED)
"""The states that somebody has to look at, the worst first."""
UP_IN = ("RUNNING", "CANCELLING", "FAILING")
"""The statuses of a run that is up."""
_ACTIVE = (*UP_IN, UNKNOWN, "RESTARTING", "CREATED")
"""The statuses of a run that goes on, or may; of several runs, the first of these counts."""
STOPS = ("FINISHED", "CANCELED")
"""The statuses of a run that somebody ended on purpose."""
DOWN_AFTER = (LOST, "FAILED")
"""The statuses of a run that ended otherwise."""


_End = tuple[int, str, int, int]
"""An end of a run: the last of several is the greatest. Its last item numbers its status in ``ENDS``."""


class Interval(NamedTuple):
    """A period in which a job has one status.

    Attributes:
        status: of the job; LOST and UNKNOWN are among them.
        state: ``up`` (RUNNING), ``down`` (FAILED or LOST, and from there on until it is RUNNING again),
            ``unknown`` (not heard of: it may be either), ``starting`` (not yet RUNNING, and no failure
            before), ``stopped`` (on purpose: FINISHED, CANCELED). A batch application is never ``down``, but
            ``failed`` until its next run.
        start_ms, end_ms: since the epoch; an interval is empty only where it begins at the end of all.
    """

    status: str
    state: str
    start_ms: int
    end_ms: int


class Outage(NamedTuple):
    """A period in which a job was down without interruption.

    Attributes:
        start_ms, end_ms: since the epoch.
        over: whether the job was up again, or stopped, after that.
    """

    start_ms: int
    end_ms: int
    over: bool


def status_intervals(runs: Sequence[RunOfJob], until_ms: int, batch: bool = False) -> list[Interval]:
    """Return the status intervals of a job, in order.

    Overlapping runs (two drivers with one name) form one line, RUNNING while any of them is. After that, its
    status is the end of the run that ended last, or, of a batch application, that of the run that began last.

    Args:
        runs: of the job, in any order.
        until_ms: the end of what is known, in ms since the epoch.
        batch: whether it is a batch application.
    """
    runs_at: dict[int, Counter[str]] = defaultdict(Counter)
    ended_at: dict[int, list[_End]] = defaultdict(list)
    for run in runs:
        for status, begin_ms, over_ms in run.spans:
            runs_at[begin_ms][status] += 1
            if status in ENDS:
                began = (run.begun_ms, run.run) if batch else (0, "")
                ended_at[begin_ms].append((*began, begin_ms, ENDS.index(status)))
            if over_ms is not None:
                runs_at[over_ms][status] -= 1
    intervals: list[Interval] = []
    counts: Counter[str] = Counter()
    last: _End | None = None
    times = sorted(runs_at)
    for start_ms, end_ms in pairwise((*times, until_ms)):
        counts.update(runs_at[start_ms])
        last = max([*ended_at[start_ms], *([] if last is None else [last])], default=None)
        ended_as = None if last is None else ENDS[last[-1]]
        active = next((status for status in _ACTIVE if counts[status] > 0), None)
        status_now = active or ended_as
        if status_now is not None and (end_ms > start_ms or start_ms == until_ms):
            _append(intervals, Interval(status_now, _state(active, ended_as, batch), start_ms, end_ms))
    return intervals


def outages(intervals: Sequence[Interval]) -> Iterator[Outage]:
    """Yield the outages of a job, from its intervals as of ``status_intervals``."""
    start_ms: int | None = None
    for interval, after in zip(intervals, (*intervals[1:], None), strict=True):
        if interval.state != DOWN:
            continue
        start_ms = interval.start_ms if start_ms is None else start_ms
        if after is None or after.state != DOWN:
            yield Outage(start_ms, interval.end_ms, after is not None and after.state != NOT_HEARD)
            start_ms = None


def _append(intervals: list[Interval], interval: Interval) -> None:
    """Append an interval, or let the last one go on if it is of the same status and state."""
    if intervals and intervals[-1][:2] == interval[:2] and intervals[-1].end_ms == interval.start_ms:
        intervals[-1] = intervals[-1]._replace(end_ms=interval.end_ms)
    else:
        intervals.append(interval)


def _state(active: str | None, ended_as: str | None, batch: bool) -> str:
    """Return a job's state from its status while a run goes on, and from how its last one ended."""
    if active in UP_IN:
        return UP
    if active == UNKNOWN:
        return NOT_HEARD
    if ended_as in DOWN_AFTER and not batch:
        return DOWN
    if active:
        return STARTING
    return LAST_FAILED if ended_as in DOWN_AFTER else STOPPED
