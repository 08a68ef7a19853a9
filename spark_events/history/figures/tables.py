"""The tables of a history, computed application by application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from spark_events.history.figures import (
    batch_runs,
    checkpoints,
    executors,
    issues,
    slower_runs,
    task_counters,
    uptime,
)
from spark_events.history.figures.checkpoints import by_day, sums_of_query
from spark_events.history.figures.day_sums import DaySums
from spark_events.history.figures.failures import COLUMNS as FAILURES
from spark_events.history.figures.failures import OWNERS, LostRun, failures
from spark_events.history.figures.heard import HeardOf, application_run
from spark_events.history.figures.job_runs import LOST, RunOfJob, Transition, runs_of
from spark_events.history.figures.timeline import Interval, status_intervals
from spark_events.history.options import Sla
from spark_events.history.reading.facts import FAILURE, STATUS, Fact
from spark_events.history.reading.plausible import DAY_MS, iso_date

Row = dict[str, Any]
STOPPED_OR_FAILED = ("FINISHED", "CANCELED", "FAILED")
"""The statuses of a run whose end was reported."""
_JOB = {"kind": "STRING", "app_name": "STRING", "query_name": "STRING"}
JOB = tuple(_JOB)
"""The key of a job: names, which outlive a restart; ``query_name`` is empty for an application."""
_QUERY = {"app_name": "STRING", "query_name": "STRING"}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "status_intervals": {
        **_JOB, "status": "STRING", "state": "STRING", "start_ms": "BIGINT", "end_ms": "BIGINT"
    },
    "uptime": {
        **_JOB,
        "status": "STRING",
        "state": "STRING",
        "status_since_ms": "BIGINT",
        **uptime.FIGURES,
        "last_heard_ms": "BIGINT",
        "silent_ms": "BIGINT",
        "heartbeat_ms": "BIGINT",
    },
    "uptime_per_day": {"date": "DATE", **_JOB, **uptime.FIGURES},
    "runs": batch_runs.COLUMNS,
    "checkpoint_sla": {**_QUERY, **checkpoints.FIGURES},
    "checkpoint_sla_per_day": {"date": "DATE", **_QUERY, **checkpoints.FIGURES},
    "failures": FAILURES,
    "executors": executors.COLUMNS,
    "issues": issues.COLUMNS,
    "slower_runs": slower_runs.COLUMNS,
    "task_counters": task_counters.COLUMNS,
}  # fmt: skip
"""The columns of each table in order, and their types."""


class Tables(NamedTuple):
    """The tables, as rows; times in them are ms since the epoch, days are UTC's: ``2026-11-20``.

    Attributes:
        status_intervals: see ``timeline.Interval``.
        uptime, uptime_per_day: see the functions of these names in ``uptime``; the former with
            ``last_heard_ms``; ``silent_ms``: how long that was before the end, None of what is over;
            ``heartbeat_ms``: how often it says that it lives, None where it does not.
        runs: of batch applications, see ``batch_runs.batch_runs``.
        checkpoint_sla, checkpoint_sla_per_day: see ``checkpoints.figures``.
        failures: see ``failures.failures``.
        executors: see ``executors.ended_executors``.
        issues: see ``issues.issues``.
        slower_runs: see ``slower_runs.slower_runs``.
        task_counters: see ``task_counters.task_counters``.
    """

    status_intervals: list[Row]
    uptime: list[Row]
    uptime_per_day: list[Row]
    runs: list[Row]
    checkpoint_sla: list[Row]
    checkpoint_sla_per_day: list[Row]
    failures: list[Row]
    executors: list[Row]
    issues: list[Row]
    slower_runs: list[Row]
    task_counters: list[Row]


class Period(NamedTuple):
    """The period that a history covers, in ms since the epoch.

    Attributes:
        since_ms: its beginning.
        until_ms: its end: nothing is known after it.
        days_since_ms: the beginning of the first day in the tables by day.
    """

    since_ms: int
    until_ms: int
    days_since_ms: int


class Application(NamedTuple):
    """Everything that is known of the applications of one name.

    Attributes:
        name: of them.
        facts: all except single checkpoints.
        days: the sums of their queries' checkpoints.
    """

    name: str
    facts: list[Fact]
    days: list[DaySums]


def tables_of(applications: Iterable[Application], sla: Sla, period: Period) -> Tables:
    """Return the tables of some applications, whose facts need not be in memory at once."""
    tables = Tables(*([] for _ in Tables._fields))
    for application in applications:
        _add(tables, application, sla, period)
    return tables


class _Job(NamedTuple):
    """An application or query: its names, its runs, its statuses and what is counted."""

    kind: str
    app_name: str
    query_name: str
    runs: list[RunOfJob]
    intervals: list[Interval]
    counted: uptime.CountedJob

    @property
    def names(self) -> Row:
        """The columns of ``JOB``."""
        return {"kind": self.kind, "app_name": self.app_name, "query_name": self.query_name}


def _add(tables: Tables, application: Application, sla: Sla, period: Period) -> None:
    """Add the rows of the applications of one name."""
    facts = application.facts
    heard_of = HeardOf(facts, application.days)
    jobs = _jobs(application, heard_of, period.until_ms)
    for job in jobs:
        _add_job(tables, job, heard_of, period)
    _add_queries(tables, application, jobs, sla, period)
    lost = [
        LostRun(job.kind, job.app_name, job.query_name, run.application, run.spans[-1].start_ms)
        for job in jobs
        for run in job.runs
        if run.status == LOST
    ]
    tables.failures.extend(failures(facts, lost, period.days_since_ms, period.until_ms))
    for table, rows_of in (
        (tables.executors, executors.ended_executors),
        (tables.issues, issues.issues),
        (tables.slower_runs, slower_runs.slower_runs),
        (tables.task_counters, task_counters.task_counters),
    ):
        table.extend(rows_of(facts, period.since_ms, period.until_ms))


def _jobs(application: Application, heard_of: HeardOf, until_ms: int) -> list[_Job]:
    """Return the application, if anything is known of its status, and its queries."""
    batch = not application.days and not any(fact.query_name for fact in application.facts)
    transitions_of: dict[tuple[str, str], list[Transition]] = {}
    for kind, query_name, transition in _transitions(application.facts):
        transitions_of.setdefault((kind, query_name), []).append(transition)
    failures_of: dict[tuple[str, str], list[int]] = defaultdict(list)
    for fact in application.facts:
        if fact.fact == FAILURE and fact.kind in OWNERS:
            query_name = (fact.query_name or "") if fact.kind == "query" else ""
            failures_of[fact.kind, query_name].append(fact.time_ms)
    jobs = []
    for (kind, query_name), transitions in transitions_of.items():
        runs = runs_of(transitions, heard_of, until_ms)
        intervals = status_intervals(runs, until_ms, batch)
        lost_ms = [run.spans[-1].start_ms for run in runs if run.status == LOST]
        restarts_ms = [change.time_ms for change in transitions if change.status == "RESTARTING"]
        failed_ms = [*failures_of[kind, query_name], *lost_ms]
        counted = uptime.CountedJob(kind, intervals, failed_ms, restarts_ms, batch)
        jobs.append(_Job(kind, application.name, query_name, runs, intervals, counted))
    return jobs


def _add_job(tables: Tables, job: _Job, heard_of: HeardOf, period: Period) -> None:
    since_ms, until_ms, days_since_ms = period
    for interval in job.intervals:
        if interval.end_ms > since_ms:
            start_ms = max(interval.start_ms, since_ms)
            tables.status_intervals.append({**job.names, **interval._replace(start_ms=start_ms)._asdict()})
    figures = uptime.uptime(job.counted, since_ms, until_ms)
    tables.uptime.append({**job.names, **figures, **_heard(job, heard_of, until_ms)})
    for day, of_day in uptime.uptime_per_day(job.counted, days_since_ms, until_ms):
        tables.uptime_per_day.append({"date": iso_date(day), **job.names, **of_day})
    if job.counted.batch:
        tables.runs.append(batch_runs.batch_runs(job.app_name, job.runs, since_ms, until_ms))


def _heard(job: _Job, heard_of: HeardOf, until_ms: int) -> Row:
    """Return when a job was last heard of, for how long it is silent, and its interval of heartbeats."""
    heard_ms = heard_of.last_ms
    if job.kind == "query":
        # A query says nothing while it is idle, but its application does.
        of_runs = (run.heard for run in job.runs if run.status not in STOPPED_OR_FAILED)
        own_ms = heard_of.query_ms(job.query_name)
        heard_ms = max([own_ms, *(heard.time_ms for heard in of_runs if heard.heartbeat_ms)])
    over = job.intervals[-1].status in STOPPED_OR_FAILED
    last = max(job.runs, key=lambda run: (run.heard.time_ms, run.run))
    return {
        "last_heard_ms": heard_ms,
        "silent_ms": None if over else until_ms - heard_ms,
        "heartbeat_ms": last.heard.heartbeat_ms,
    }


def _add_queries(
    tables: Tables, application: Application, jobs: Iterable[_Job], sla: Sla, period: Period
) -> None:
    """Add the checkpoints of an application's queries."""
    queries = {job.query_name: job for job in jobs if job.kind == "query"}
    days_of: dict[str, list[DaySums]] = defaultdict(list)
    facts_of: dict[str, list[Fact]] = defaultdict(list)
    for days in application.days:
        days_of[days.query_name].append(days)
    for fact in application.facts:
        if fact.query_name:
            facts_of[fact.query_name].append(fact)
    for query_name in {**days_of, **facts_of}:
        job = queries.get(query_name)
        sla_ms = sla.by_query.get(query_name, sla.default_ms)
        sums = sums_of_query(
            days_of.get(query_name, ()),
            facts_of.get(query_name, ()),
            job.intervals if job else (),
            job.runs if job else (),
            sla_ms,
            period.until_ms,
        )
        if sums:
            query = {"app_name": application.name, "query_name": query_name}
            _add_checkpoints(tables, query, sums, sla_ms, period)


def _add_checkpoints(tables: Tables, query: Row, sums: list[DaySums], sla_ms: int, period: Period) -> None:
    tables.checkpoint_sla.append({**query, **checkpoints.figures(sums, sla_ms)})
    for day, of_day in by_day(sums):
        if day >= period.days_since_ms // DAY_MS:
            row = {"date": iso_date(day), **query, **checkpoints.figures(of_day, sla_ms)}
            tables.checkpoint_sla_per_day.append(row)


def _transitions(facts: Iterable[Fact]) -> Iterator[tuple[str, str, Transition]]:
    """Yield the status changes of applications and queries, with the kind and the query's name."""
    for fact in facts:
        if fact.fact == STATUS and fact.kind and fact.status:
            application = application_run(fact.app_id, fact.attempt)
            run, query_name = "/".join(filter(None, application)), ""
            if fact.kind == "query":
                run, query_name = fact.run_id or run, fact.query_name or ""
            yield (
                fact.kind,
                query_name,
                Transition(run, application, fact.time_ms, fact.status, fact.event_id),
            )
