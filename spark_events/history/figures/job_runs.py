"""The runs of one application or query: how each began, went on, and ended, or fell silent."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from spark_events.history.figures.heard import ApplicationRun, Heard, HeardOf

LOST = "LOST"
"""The status of a run whose end nobody reported, and that is over: another began later, or it is silent."""
UNKNOWN = "UNKNOWN"
"""The status of a run that should have been heard of, and was not: it may be over."""
UNKNOWN_AFTER, LOST_AFTER = 3, 10
"""After how many intervals of heartbeats without a word a run is ``UNKNOWN``, and ``LOST``.

One heartbeat may be late, and a reporter may wait for a second; ten minutes, by default, no reporter waits.
"""
ENDS = (LOST, "FINISHED", "CANCELED", "FAILED")
"""The statuses of a run that is over; of several that end in the same ms, the last of these counts."""
CHRONOLOGY = (
    "CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED"
)  # fmt: skip
"""In which order a run comes to several statuses in the same ms."""


Begin = tuple[int, ApplicationRun, str]
"""When a run began, in ms since the epoch, in which run of the application, and of which query."""


class Transition(NamedTuple):
    """A change of the status of one run of a job.

    Attributes:
        run: of the job; ids of different runs differ.
        application: the run of the application that reported it.
        query_id: of a query, which only one of its runs can have at a time; empty if unknown.
        time_ms: since the epoch.
        status: from then on.
        event_id: of the event.
    """

    run: str
    application: ApplicationRun
    query_id: str
    time_ms: int
    status: str
    event_id: str

    @property
    def begin(self) -> Begin:
        """When it was, in ms since the epoch, of which application and query."""
        return self.time_ms, self.application, self.query_id


class StatusSpan(NamedTuple):
    """A status of one run: from when, and until when, in ms since the epoch; None if it is the last."""

    status: str
    start_ms: int
    end_ms: int | None


class RunOfJob(NamedTuple):
    """One run of a job.

    Attributes:
        run: its id.
        application: the run of the application that it belongs to, or is.
        spans: its statuses, in order; the last is its status now.
        heard: when its application was last heard of.
    """

    run: str
    application: ApplicationRun
    spans: Sequence[StatusSpan]
    heard: Heard

    @property
    def begun_ms(self) -> int:
        """When it began, as far as is known, in ms since the epoch."""
        return self.spans[0].start_ms

    @property
    def status(self) -> str:
        """Its last status; LOST and UNKNOWN are among them."""
        return self.spans[-1].status

    @property
    def end_ms(self) -> int | None:
        """When it ended, or was last heard of before it was lost; None if it goes on, or may."""
        return self.spans[-1].start_ms if self.status in ENDS else None


def runs_of(transitions: Iterable[Transition], heard_of: HeardOf, until_ms: int) -> list[RunOfJob]:
    """Return the runs of a job, in no order.

    A run whose end was not reported goes on, unless it is silent: where its application sends heartbeats, it
    is UNKNOWN after ``UNKNOWN_AFTER`` of their intervals, and LOST after ``LOST_AFTER``, or once another run
    has begun. Without heartbeats, nobody can tell silence from idleness: it is LOST once another has begun,
    and goes on until then. Either status holds from when the run was last heard of.

    Args:
        transitions: of the job, in any order.
        heard_of: when its application was.
        until_ms: the end of what is known, in ms since the epoch.
    """
    changes_of: dict[str, list[Transition]] = defaultdict(list)
    for transition in transitions:
        changes_of[transition.run].append(transition)
    for changes in changes_of.values():
        changes.sort(key=lambda change: (change.time_ms, CHRONOLOGY.index(change.status), change.event_id))
    begins = sorted(changes[0].begin for changes in changes_of.values())
    return [_run(changes, begins, heard_of, until_ms) for changes in changes_of.values()]


def _run(
    changes: Sequence[Transition],
    begins: Sequence[Begin],
    heard_of: HeardOf,
    until_ms: int,
) -> RunOfJob:
    spans = [StatusSpan(change.status, change.time_ms, after.time_ms) for change, after in pairwise(changes)]
    last = changes[-1]
    heard = heard_of.run(last.application)
    over = None if last.status in ENDS else _over(last, changes[0].time_ms, begins, heard, until_ms)
    spans.append(StatusSpan(last.status, last.time_ms, over.start_ms if over else None))
    if over:
        spans.append(over)
    return RunOfJob(last.run, last.application, spans, heard)


def _over(
    last: Transition,
    begun_ms: int,
    begins: Sequence[Begin],
    heard: Heard,
    until_ms: int,
) -> StatusSpan | None:
    """Return what became of a run whose end was not reported; None if it goes on.

    Args:
        last: its last transition.
        begun_ms: when it began, in ms since the epoch.
        begins: when each run of the job began, in which run of the application, and of which query, in order.
        heard: when its application was last heard of.
        until_ms: the end of what is known.
    """
    # Runs that began in the same ms are none that came after it.
    later = begins[bisect_right(begins, begun_ms, key=_time_ms) :]
    silent_since_ms = max(last.time_ms, heard.time_ms)
    if later:
        next_ms = later[0][0]
        # The heartbeats of an application say nothing of a query that began again in it; but two queries of
        # one name, in different sessions, may run at once.
        again = any(
            application == last.application
            and (query_id == last.query_id or not (query_id and last.query_id))
            for ms, application, query_id in later
            if ms == next_ms
        )
        if again or heard.heartbeat_ms is None:
            return StatusSpan(LOST, max(last.time_ms, min(silent_since_ms, next_ms)), None)
    if heard.heartbeat_ms is None:
        return None
    # Of two that overlap, the later one does not say that the earlier one is over.
    followed = bool(later) and later[-1][0] > silent_since_ms
    status = LOST if followed else status_of_silence(until_ms - silent_since_ms, heard.heartbeat_ms)
    return StatusSpan(status, silent_since_ms, None) if status else None


def status_of_silence(silent_ms: float, heartbeat_ms: float) -> str | None:
    """Return ``UNKNOWN`` or ``LOST`` for a run that was silent for so long; None if that means nothing yet.

    Args:
        silent_ms: since it was last heard of.
        heartbeat_ms: how often its application says that it lives.
    """
    if silent_ms >= LOST_AFTER * heartbeat_ms:
        return LOST
    return UNKNOWN if silent_ms >= UNKNOWN_AFTER * heartbeat_ms else None


def _time_ms(begin: Begin) -> int:
    return begin[0]
