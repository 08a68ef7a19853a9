"""The uptime of an application or query, its outages, and its recovery times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from spark_events.history.plausible import DAY_MS
from spark_events.history.timeline import (
    DOWN,
    STARTING,
    STOPPED,
    UP,
    Interval,
    Outage,
    Transition,
    outages,
)

FIGURES = {
    **{f"{state}_ms": "BIGINT" for state in (UP, DOWN, STARTING, STOPPED)},
    "uptime_percent": "DOUBLE",
    "failures": "BIGINT",
    "restarts": "BIGINT",
    "mtbf_ms": "BIGINT",
    "mttr_ms": "BIGINT",
    "longest_outage_ms": "BIGINT",
}
"""The columns that the uptime of a job and that of its days have in common, and their types."""
Row = dict[str, Any]
_T = TypeVar("_T", Interval, Outage)


def uptime(
    kind: str,
    intervals: Sequence[Interval],
    transitions: Iterable[Transition],
    since_ms: int,
    until_ms: int,
) -> Row:
    """Return the uptime of a job.

    Args:
        kind: ``application`` or ``query``.
        intervals: as of ``timeline.status_intervals``.
        transitions: of the job.
        since_ms: the beginning, in ms since the epoch; anything before is left out.
        until_ms: the end of the known period.

    Returns:
        ``status``, ``state``, ``status_since_ms``: at the end; ``up_ms``, ``down_ms``, ``starting_ms``,
        ``stopped_ms``; ``uptime_percent``: of the time in which it was up or down, None where there is none;
        ``failures``: outages that began; ``restarts``: of a query RESTARTING statuses, as
        ``spark_query_num_restarts`` counts them, of an application outages that ended; ``mtbf_ms``:
        ``up_ms`` for each failure; ``mttr_ms``: the mean length of the outages that ended;
        ``longest_outage_ms``.
    """
    times: Counter[str] = Counter()
    for interval, _ in _clipped(intervals, since_ms, until_ms):
        times[interval.state] += interval.end_ms - interval.start_ms
    downtimes = list(_clipped(outages(intervals), since_ms, until_ms))
    repairs_ms = [outage.end_ms - outage.start_ms for outage, _ in downtimes if outage.over]
    restarts = sum(_is_restart(transition, since_ms) for transition in transitions)
    last = intervals[-1]
    return {
        "status": last.status,
        "state": last.state,
        "status_since_ms": last.start_ms,
        **_figures(
            times,
            failures=sum(began_ms >= since_ms for _, began_ms in downtimes),
            restarts=restarts if kind == "query" else len(repairs_ms),
            repairs_ms=repairs_ms,
            longest_ms=max((outage.end_ms - outage.start_ms for outage, _ in downtimes), default=0),
        ),
    }


def uptime_per_day(
    kind: str,
    intervals: Sequence[Interval],
    transitions: Iterable[Transition],
    since_ms: int,
    until_ms: int,
) -> Iterator[tuple[int, Row]]:
    """Yield the uptime of a job on each UTC day.

    Args:
        kind, intervals, transitions, since_ms, until_ms: as for ``uptime``.

    Yields:
        The day, in days since the epoch; the figures of ``uptime``, each of the part within the day;
        ``mttr_ms``: of the outages that ended on the day; ``longest_outage_ms``: of it, the part within the
        day.
    """
    times: dict[int, Counter[str]] = defaultdict(Counter)
    for interval, _ in _clipped(intervals, since_ms, until_ms):
        for day, length_ms in _by_day(interval):
            times[day][interval.state] += length_ms
    failures: Counter[int] = Counter()
    longest_ms: Counter[int] = Counter()
    repairs_ms: dict[int, list[int]] = defaultdict(list)
    for outage, began_ms in _clipped(outages(intervals), since_ms, until_ms):
        if began_ms >= since_ms:
            failures[began_ms // DAY_MS] += 1
        if outage.over:
            repairs_ms[outage.end_ms // DAY_MS].append(outage.end_ms - outage.start_ms)
        for day, length_ms in _by_day(outage):
            longest_ms[day] = max(longest_ms[day], length_ms)
    restarts = Counter(
        transition.time_ms // DAY_MS for transition in transitions if _is_restart(transition, since_ms)
    )
    for day in sorted(times):
        repairs = repairs_ms[day]
        restarted = restarts[day] if kind == "query" else len(repairs)
        yield day, _figures(times[day], failures[day], restarted, repairs, longest_ms[day])


def _figures(
    times: Counter[str], failures: int, restarts: int, repairs_ms: list[int], longest_ms: int
) -> Row:
    """Return the values of ``FIGURES``."""
    up_ms = times[UP]
    counted_ms = up_ms + times[DOWN]
    return {
        **{f"{state}_ms": times[state] for state in (UP, DOWN, STARTING, STOPPED)},
        "uptime_percent": 100 * up_ms / counted_ms if counted_ms else None,
        "failures": failures,
        "restarts": restarts,
        "mtbf_ms": up_ms // failures if failures else None,
        "mttr_ms": sum(repairs_ms) // len(repairs_ms) if repairs_ms else None,
        "longest_outage_ms": longest_ms,
    }


def _is_restart(transition: Transition, since_ms: int) -> bool:
    return transition.status == "RESTARTING" and transition.time_ms >= since_ms


def _clipped(intervals: Iterable[_T], since_ms: int, until_ms: int) -> Iterator[tuple[_T, int]]:
    """Yield the parts of intervals within a period, with the time at which each whole interval began."""
    for interval in intervals:
        start_ms, end_ms = max(interval.start_ms, since_ms), min(interval.end_ms, until_ms)
        if end_ms > start_ms or start_ms == until_ms:
            yield interval._replace(start_ms=start_ms, end_ms=end_ms), interval.start_ms


def _by_day(interval: Interval | Outage) -> Iterator[tuple[int, int]]:
    """Yield the days that an interval touches, and how much of it is in each, in ms."""
    first = interval.start_ms // DAY_MS
    last = max(interval.start_ms, interval.end_ms - 1) // DAY_MS
    for day in range(first, last + 1):
        begin_ms, end_ms = max(interval.start_ms, day * DAY_MS), min(interval.end_ms, (day + 1) * DAY_MS)
        yield day, end_ms - begin_ms
