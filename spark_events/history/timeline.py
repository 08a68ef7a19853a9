"""The status of one application or query over time.

It is computed in three steps: the statuses of each run on its own; the times at which any run changes, with
the number of runs in each status from then on; and, from these, the status of the job.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

UP, DOWN, STARTING, STOPPED = "up", "down", "starting", "stopped"
LOST = "LOST"
"""The status of a job whose end nobody reported, and of which another run began later."""
_ACTIVE = ("RUNNING", "CANCELLING", "FAILING", "RESTARTING", "CREATED")
"""The statuses of a run that goes on; of several runs, the first of these counts."""
_UP_IN = ("RUNNING", "CANCELLING", "FAILING")
ENDS = (LOST, "FINISHED", "CANCELED", "FAILED")
"""The statuses of a run that is over; of several that end in the same ms, the last of these counts."""
STOPS = ("FINISHED", "CANCELED")
"""The statuses of a run that somebody ended on purpose."""
_DOWN_AFTER = (LOST, "FAILED")
CHRONOLOGY = (
    "CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED"
)  # fmt: skip
"""In which order a run comes to several statuses in the same ms."""


class Transition(NamedTuple):
    """A change of the status of one run of a job.

    Attributes:
        run: of the job; ids of different runs differ.
        app_id: of the application that reported it; empty where it said none.
        time_ms: since the epoch.
        status: from then on.
        event_id: of the event.
    """

    run: str
    app_id: str
    time_ms: int
    status: str
    event_id: str


class Interval(NamedTuple):
    """A period in which a job has one status.

    Attributes:
        status: of the job, or LOST.
        state: ``up`` (RUNNING), ``down`` (FAILED or LOST, and from there on until it is RUNNING again),
            ``starting`` (not yet RUNNING, and no failure before), ``stopped`` (on purpose: FINISHED,
            CANCELED).
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


def status_intervals(
    transitions: Iterable[Transition], heard_ms: Mapping[str, int], until_ms: int
) -> list[Interval]:
    """Return the status intervals of a job, in order.

    Overlapping runs (two drivers with one name) form one line, RUNNING while any of them is. A run whose end
    was not reported counts as ended when its application was last heard of (LOST), once another run has
    begun; the latest run counts as going on.

    Args:
        transitions: of the job, in any order.
        heard_ms: by ``app_id``, when the application was last heard of, in ms since the epoch.
        until_ms: the end of what is known, in ms since the epoch.
    """
    runs_at: dict[int, Counter[str]] = defaultdict(Counter)
    ended_at: dict[int, list[str]] = defaultdict(list)
    for of_run, begin_ms, over_ms, lost in _statuses_of_runs(transitions, heard_ms):
        runs_at[begin_ms][of_run] += 1
        if of_run in ENDS:
            ended_at[begin_ms].append(of_run)
        if over_ms is not None:
            runs_at[over_ms][of_run] -= 1
            if lost:
                ended_at[over_ms].append(LOST)
    intervals: list[Interval] = []
    runs: Counter[str] = Counter()
    ended_as: str | None = None
    times = sorted(runs_at)
    for start_ms, end_ms in pairwise((*times, until_ms)):
        runs.update(runs_at[start_ms])
        ended_as = max(ended_at[start_ms], key=ENDS.index, default=ended_as)
        active = next((status for status in _ACTIVE if runs[status] > 0), None)
        status = active or ended_as
        if status is not None and (end_ms > start_ms or start_ms == until_ms):
            _append(intervals, Interval(status, _state(active, ended_as), start_ms, end_ms))
    return intervals


def outages(intervals: Sequence[Interval]) -> Iterator[Outage]:
    """Yield the outages of a job, from its intervals as of ``status_intervals``."""
    start_ms: int | None = None
    for interval, after in zip(intervals, (*intervals[1:], None), strict=True):
        if interval.state != DOWN:
            continue
        start_ms = interval.start_ms if start_ms is None else start_ms
        if after is None or after.state != DOWN:
            yield Outage(start_ms, interval.end_ms, after is not None)
            start_ms = None


def _statuses_of_runs(
    transitions: Iterable[Transition], heard_ms: Mapping[str, int]
) -> Iterator[tuple[str, int, int | None, bool]]:
    """Yield the statuses of each run on its own: with begin, end (None: goes on), and whether it was lost."""
    runs: dict[str, list[Transition]] = defaultdict(list)
    for transition in transitions:
        runs[transition.run].append(transition)
    for changes in runs.values():
        changes.sort(key=lambda change: (change.time_ms, CHRONOLOGY.index(change.status), change.event_id))
    begins_ms = sorted(changes[0].time_ms for changes in runs.values())
    for changes in runs.values():
        for change, after in pairwise(changes):
            yield change.status, change.time_ms, after.time_ms, False
        last = changes[-1]
        # Runs that began in the same ms are none that came after it.
        later = bisect_right(begins_ms, changes[0].time_ms)
        if last.status in ENDS or later == len(begins_ms):
            yield last.status, last.time_ms, None, False
        else:
            lost_ms = min(heard_ms.get(last.app_id, last.time_ms), begins_ms[later])
            yield last.status, last.time_ms, max(last.time_ms, lost_ms), True


def _append(intervals: list[Interval], interval: Interval) -> None:
    """Append an interval, or let the last one go on if it is of the same status and state."""
    if intervals and intervals[-1][:2] == interval[:2] and intervals[-1].end_ms == interval.start_ms:
        intervals[-1] = intervals[-1]._replace(end_ms=interval.end_ms)
    else:
        intervals.append(interval)


def _state(active: str | None, ended_as: str | None) -> str:
    """Return a job's state from its status while a run goes on, and from how its last one ended."""
    if active in _UP_IN:
        return UP
    if ended_as in _DOWN_AFTER:
        return DOWN
    return STARTING if active else STOPPED
