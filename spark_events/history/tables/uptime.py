"""The tables of uptime: of applications and queries, of their days, and the statuses behind both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from spark_events.history.figures.application import KnownApplication, KnownJob
from spark_events.history.figures.job_runs import LOST, UNKNOWN
from spark_events.history.figures.timeline import (
    BAD_STATES,
    DOWN,
    STATES,
    STOPS,
    UP,
    Interval,
    Outage,
    outages,
)
from spark_events.history.reading.plausible import DAY_MS, iso_date
from spark_events.history.table import (
    BIGINT,
    DAY,
    DOUBLE,
    JOB,
    NOW,
    PAGE,
    PAST,
    STRING,
    TERMINAL,
    WIDE,
    Column,
    How,
    Part,
    Row,
    Shown,
    Table,
    by_name,
    job_name,
)

FIGURES = (
    *(Column(f"{state}_ms", BIGINT) for state in STATES),
    Column("uptime_percent", DOUBLE, "`up_ms` as a share of `up_ms` and `down_ms`; null if both are 0"),
    Column("failures", BIGINT, "how often it failed or was lost"),
    Column("outages", BIGINT, "how many outages began"),
    Column(
        "restarts", BIGINT, "for a query, how often it was RESTARTING; for an application, outages that ended"
    ),
    Column("mtbf_ms", BIGINT, "mean time between failures: `up_ms` per outage"),
    Column("mttr_ms", BIGINT, "mean time to recovery: the mean length of the outages that ended"),
    Column("longest_outage_ms", BIGINT, "per day, only the part within the day counts"),
)
"""What the uptime of a job and that of its days have in common; of batch applications, mostly null."""
_ENDED = (*STOPS, "FAILED")
"""The statuses of a run whose end was reported."""
_T = TypeVar("_T", Interval, Outage)


class _Counted(NamedTuple):
    """What is counted of a job, in all or on a day: ms by state, and so on."""

    times: Counter[str]
    failures: int
    outages: int
    restarts: int
    repairs_ms: list[int]
    longest_ms: int


def _uptime(job: KnownJob, since_ms: int, until_ms: int) -> Row:
    """Return the uptime of a job.

    Args:
        job: has at least one interval.
        since_ms: the beginning, in ms since the epoch; anything before is left out.
        until_ms: the end of the known period.

    Returns:
        The columns of the figures, and of the status at the end. ``restarts`` are of a query RESTARTING
        statuses, as ``spark_query_num_restarts`` counts them, of an application outages that ended. Of a
        batch application, all but ``failures`` and the status are None.
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


def _uptime_per_day(job: KnownJob, since_ms: int, until_ms: int) -> Iterator[tuple[int, Row]]:
    """Yield the uptime of a job on each UTC day.

    Args:
        job, since_ms, until_ms: as for ``_uptime``.

    Yields:
        The day, in days since the epoch; the figures of ``_uptime``, each of the part within the day;
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
        return {**dict.fromkeys(column.name for column in FIGURES), "failures": counted.failures}
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
        if end_ms > start_ms or start_ms == end_ms == until_ms:
            yield interval._replace(start_ms=start_ms, end_ms=end_ms), interval.start_ms


def _by_day(interval: Interval | Outage) -> Iterator[tuple[int, int]]:
    """Yield the days that an interval touches, and how much of it is in each, in ms."""
    first = interval.start_ms // DAY_MS
    last = max(interval.start_ms, interval.end_ms - 1) // DAY_MS
    for day in range(first, last + 1):
        begin_ms, end_ms = max(interval.start_ms, day * DAY_MS), min(interval.end_ms, (day + 1) * DAY_MS)
        yield day, end_ms - begin_ms


def _rows(known: KnownApplication) -> Iterator[Row]:
    for job in known.jobs:
        figures = _uptime(job, known.period.since_ms, known.period.until_ms)
        yield {**job.names, **figures, **_heard(job, known)}


def _rows_of_days(known: KnownApplication) -> Iterator[Row]:
    for job in known.jobs:
        for day, figures in _uptime_per_day(job, known.period.days_since_ms, known.period.until_ms):
            yield {"date": iso_date(day), **job.names, **figures}


def _rows_of_intervals(known: KnownApplication) -> Iterator[Row]:
    for job in known.jobs:
        for interval in job.intervals:
            if interval.end_ms > known.period.since_ms:
                start_ms = max(interval.start_ms, known.period.since_ms)
                yield {**job.names, **interval._replace(start_ms=start_ms)._asdict()}


def _heard(job: KnownJob, known: KnownApplication) -> Row:
    """Return when a job was last heard of, for how long it is silent, and its interval of heartbeats."""
    heard_ms = known.heard_of.last_ms
    if job.kind == "query":
        # A query says nothing while it is idle, but its application does.
        of_runs = (run.heard for run in job.runs if run.status not in _ENDED)
        own_ms = known.heard_of.query_ms(job.query_name)
        heard_ms = max([own_ms, *(heard.time_ms for heard in of_runs if heard.heartbeat_ms)])
    over = job.intervals[-1].status in _ENDED
    last = max(job.runs, key=lambda run: (run.heard.time_ms, run.run))
    return {
        "last_heard_ms": heard_ms,
        "silent_ms": None if over else known.period.until_ms - heard_ms,
        "heartbeat_ms": last.heard.heartbeat_ms,
    }


def _worst_first(rows: list[Row]) -> list[Row]:
    """Put those that were lost first, then the unknown, the down, and the failed ones."""

    def badness(row: Row) -> int:
        if row["status"] == LOST:
            return -1
        return BAD_STATES.index(row["state"]) if row["state"] in BAD_STATES else len(BAD_STATES)

    return sorted(rows, key=lambda row: (badness(row), -(row["down_ms"] or 0), by_name(row)))


def _without_batch(rows: list[Row]) -> list[Row]:
    """Leave out batch applications, which have runs in place of uptime."""
    return [row for row in rows if row["up_ms"] is not None]


UPTIME = Table(
    "uptime",
    "application or query",
    (
        *JOB,
        Column("status", STRING, "the last status before the end of the report"),
        Column(
            "state",
            STRING,
            "`up`, `down`, `unknown`, `starting` or `stopped`; `failed` only for batch applications",
        ),
        Column("status_since_ms", BIGINT),
        *FIGURES,
        Column("last_heard_ms", BIGINT),
        Column(
            "silent_ms",
            BIGINT,
            "the time from `last_heard_ms` to the end of the report; null if it has ended",
        ),
        Column("heartbeat_ms", BIGINT, "the interval of its heartbeats; null if it sends none"),
    ),
    _rows,
    _worst_first,
    heading="Uptime",
    first="the worst first",
    on_page=_without_batch,
    on_terminal=_without_batch,
    shown=(
        Shown("application / query", job_name),
        Shown("status", lambda row: (Part(row["status"], row["state"]),)),
        Shown("since (UTC)", "status_since_ms", How.MINUTE, PAGE),
        Shown("uptime", "uptime_percent", How.PERCENT),
        Shown("up", "up_ms", How.DURATION, PAGE),
        Shown("down", "down_ms", How.DURATION),
        Shown("failures", "failures", How.COUNT),
        Shown("outages", "outages", How.COUNT, PAGE | WIDE),
        Shown("restarts", "restarts", How.COUNT, PAGE | WIDE),
        Shown("last heard", "last_heard_ms", How.AGO, TERMINAL | NOW),
        Shown("last heard\n(UTC)", "last_heard_ms", How.MINUTE, TERMINAL | PAST),
        Shown("MTBF", "mtbf_ms", How.DURATION, PAGE),
        Shown("MTTR", "mttr_ms", How.DURATION, PAGE | WIDE),
        Shown("longest\noutage", lambda row: row["longest_outage_ms"] or None, How.DURATION, PAGE | WIDE),
        Shown(
            "last heard (UTC)",
            "last_heard_ms",
            How.SHORT_MOMENT,
            PAGE,
            left=False,
            is_bad=lambda row: row["status"] in (LOST, UNKNOWN),
        ),
    ),
)
UPTIME_PER_DAY = Table(
    "uptime_per_day",
    "application or query, and day",
    (DAY, *JOB, *FIGURES),
    _rows_of_days,
    lambda rows: sorted(rows, key=lambda row: (row["date"], by_name(row))),
)
STATUS_INTERVALS = Table(
    "status_intervals",
    "status of an application or query",
    (
        *JOB,
        Column("status", STRING),
        Column("state", STRING),
        Column("start_ms", BIGINT),
        Column("end_ms", BIGINT),
    ),
    _rows_of_intervals,
    in_report=False,
)
