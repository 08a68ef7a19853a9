"""The uptime of an application or query, its outages, and its recovery times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from spark_events.history.figures.timeline import DOWN, STATES, UP, Interval, Outage, outages
from spark_events.history.reading.plausible import DAY_MS

FIGURES = {
    **{f"{state}_ms": "BIGINT" for state in STATES},
    "uptime_percent": "DOUBLE",
    "failures": "BIGINT",
    "outages": "BIGINT",
    "restarts": "BIGINT",
    "mtbf_ms": "BIGINT",
    "mttr_ms": "BIGINT",
    "longest_outage_ms": "BIGINT",
}
"""The columns that the uptime of a job and that of its days have in common, and their types."""
Row = dict[str, Any]
_T = TypeVar("_T", Interval, Outage)


class CountedJob(NamedTuple):
    """An application or query, over time.

    Attributes:
        kind: ``application`` or ``query``.
        intervals: as of ``timeline.status_intervals``.
        failures_ms: when it failed or was lost, each time, in ms since the epoch.
        restarts_ms: of a query, when it was RESTARTING, each time.
        batch: whether it is a batch application, of which only failures are counted here.
    """

    kind: str
    intervals: Sequence[Interval]
    failures_ms: Sequence[int]
    restarts_ms: Sequence[int]
    batch: bool = False


class _Counted(NamedTuple):
    """What is counted of a job, in all or on a day: ms by state, and so on."""

    times: Counter[str]
    failures: int
    outages: int
    restarts: int
    repairs_ms: list[int]
    longest_ms: int


def uptime(job: CountedJob, since_ms: int, until_ms: int) -> Row:
    """Return the uptime of a job.

    Args:
        job: has at least one interval.
        since_ms: the beginning, in ms since the epoch; anything before is left out.
        until_ms: the end of the known period.

    Returns:
        ``status``, ``state``, ``status_since_ms``: at the end; ``up_ms``, ``down_ms``, ``unknown_ms``,
        ``starting_ms``, ``stopped_ms``; ``uptime_percent``: of the time in which it was up or down, None
        where there is none; ``failures``: how often it failed or was lost; ``outages``: that began;
        ``restarts``: of a query RESTARTING statuses, as ``spark_query_num_restarts`` counts them, of an
        application outages that ended; ``mtbf_ms``: ``up_ms`` for each outage; ``mttr_ms``: the mean length
        of the outages that ended; ``longest_outage_ms``. Of a batch application, all but ``failures`` and
        the status are None.
    """
    times: Counter[str] = Counter()
    for interval, _ in _clipped(job.intervals, since_ms, until_ms):
        times[interval.state] += interval.end_ms - interval.start_ms
    downtimes = list(_clipped(outages(job.intervals), since_ms, until_ms))
    repairs_ms = [outage.end_ms - outage.start_ms for outage, _ in downtimes if outage.over]
    restarts = sum(time_ms >= since_ms for time_ms in job.restarts_ms)
    counted = _Counted(
        times,
        failures=sum(time_ms >= since_ms for time_ms in job.failures_ms),
        outages=sum(began_ms >= since_ms for _, began_ms in downtimes),
        restarts=restarts if job.kind == "query" else len(repairs_ms),
        repairs_ms=repairs_ms,
        longest_ms=max((outage.end_ms - outage.start_ms for outage, _ in downtimes), default=0),
    )
    last = job.intervals[-1]
    now = {"status": last.status, "state": last.state, "status_since_ms": last.start_ms}
    return {**now, **_figures(counted, job.batch)}


def uptime_per_day(job: CountedJob, since_ms: int, until_ms: int) -> Iterator[tuple[int, Row]]:
    """Yield the uptime of a job on each UTC day.

    Args:
        job, since_ms, until_ms: as for ``uptime``.

    Yields:
        The day, in days since the epoch; the figures of ``uptime``, each of the part within the day;
        ``mttr_ms``: of the outages that ended on the day; ``longest_outage_ms``: of it, the part within the
        day.
    """
    times: dict[int, Counter[str]] = defaultdict(Counter)
    for interval, _ in _clipped(job.intervals, since_ms, until_ms):
        for day, length_ms in _by_day(interval):
            times[day][interval.state] += length_ms
    began: Counter[int] = Counter()
    longest_ms: Counter[int] = Counter()
    repairs_ms: dict[int, list[int]] = defaultdict(list)
    for outage, began_ms in _clipped(outages(job.intervals), since_ms, until_ms):
        if began_ms >= since_ms:
            began[began_ms // DAY_MS] += 1
        if outage.over:
            repairs_ms[outage.end_ms // DAY_MS].append(outage.end_ms - outage.start_ms)
        for day, length_ms in _by_day(outage):
            longest_ms[day] = max(longest_ms[day], length_ms)
    failures, restarts = _days_of(job.failures_ms, since_ms), _days_of(job.restarts_ms, since_ms)
    # It may have failed before its first status.
    for day in sorted({*times, *failures, *restarts}):
        repairs = repairs_ms[day]
        restarted = restarts[day] if job.kind == "query" else len(repairs)
        counted = _Counted(times[day], failures[day], began[day], restarted, repairs, longest_ms[day])
        yield day, _figures(counted, job.batch)


def _figures(counted: _Counted, batch: bool) -> Row:
    """Return the values of ``FIGURES``."""
    if batch:
        return {**dict.fromkeys(FIGURES), "failures": counted.failures}
    times, repairs_ms = counted.times, counted.repairs_ms
    up_ms = times[UP]
    counted_ms = up_ms + times[DOWN]
    return {
        **{f"{state}_ms": times[state] for state in STATES},
        "uptime_percent": 100 * up_ms / counted_ms if counted_ms else None,
        "failures": counted.failures,
        "outages": counted.outages,
        "restarts": counted.restarts,
        "mtbf_ms": up_ms // counted.outages if counted.outages else None,
        "mttr_ms": sum(repairs_ms) // len(repairs_ms) if repairs_ms else None,
        "longest_outage_ms": counted.longest_ms,
    }


def _days_of(times_ms: Iterable[int], since_ms: int) -> Counter[int]:
    return Counter(time_ms // DAY_MS for time_ms in times_ms if time_ms >= since_ms)


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
