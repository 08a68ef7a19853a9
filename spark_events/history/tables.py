"""The tables of a history, computed application by application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from spark_events.history import checkpoints, executors, issues, slower_runs, task_counters, uptime
from spark_events.history.checkpoints import DaySums, by_day, sums_of_query
from spark_events.history.facts import STATUS, Fact
from spark_events.history.failures import COLUMNS as FAILURES
from spark_events.history.failures import failures
from spark_events.history.plausible import DAY_MS, iso_date
from spark_events.history.sla import Sla
from spark_events.history.timeline import Interval, Transition, status_intervals

Row = dict[str, Any]
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
    },
    "uptime_per_day": {"date": "DATE", **_JOB, **uptime.FIGURES},
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
        uptime, uptime_per_day: see the functions of these names in ``uptime``.
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


def _add(tables: Tables, application: Application, sla: Sla, period: Period) -> None:
    """Add the rows of the applications of one name."""
    heard_of_runs, heard_of_queries = _last_heard(application)
    jobs: dict[tuple[str, str], list[Transition]] = {}
    for kind, query_name, transition in _transitions(application.facts):
        jobs.setdefault((kind, query_name), []).append(transition)
    intervals_of: dict[tuple[str, str], list[Interval]] = {}
    for job, transitions in jobs.items():
        kind, query_name = job
        intervals = intervals_of[job] = status_intervals(transitions, heard_of_runs, period.until_ms)
        heard_ms = heard_of_queries.get(query_name) if query_name else max(heard_of_runs.values())
        named = dict(zip(JOB, (kind, application.name, query_name), strict=True))
        _add_job(tables, named, intervals, transitions, heard_ms, period)
    days_of: dict[str, list[DaySums]] = defaultdict(list)
    facts_of: dict[str, list[Fact]] = defaultdict(list)
    for days in application.days:
        days_of[days.query_name].append(days)
    for fact in application.facts:
        if fact.query_name:
            facts_of[fact.query_name].append(fact)
    for query_name in {**days_of, **facts_of}:
        sla_ms = sla.by_query.get(query_name, sla.default_ms)
        sums = sums_of_query(
            days_of.get(query_name, ()),
            facts_of.get(query_name, ()),
            intervals_of.get(("query", query_name), []),
            jobs.get(("query", query_name), []),
            sla_ms,
            period.until_ms,
        )
        if sums:
            _add_checkpoints(
                tables, {"app_name": application.name, "query_name": query_name}, sums, sla_ms, period
            )
    tables.failures.extend(failures(application.facts, period.days_since_ms, period.until_ms))
    for table, rows_of in (
        (tables.executors, executors.ended_executors),
        (tables.issues, issues.issues),
        (tables.slower_runs, slower_runs.slower_runs),
        (tables.task_counters, task_counters.task_counters),
    ):
        table.extend(rows_of(application.facts, period.since_ms, period.until_ms))


def _add_job(
    tables: Tables,
    job: Row,
    intervals: list[Interval],
    transitions: list[Transition],
    heard_ms: int | None,
    period: Period,
) -> None:
    since_ms, until_ms, days_since_ms = period
    for interval in intervals:
        if interval.end_ms > since_ms:
            start_ms = max(interval.start_ms, since_ms)
            tables.status_intervals.append({**job, **interval._replace(start_ms=start_ms)._asdict()})
    whole = uptime.uptime(job["kind"], intervals, transitions, since_ms, until_ms)
    tables.uptime.append({**job, **whole, "last_heard_ms": heard_ms})
    for day, figures in uptime.uptime_per_day(job["kind"], intervals, transitions, days_since_ms, until_ms):
        tables.uptime_per_day.append({"date": iso_date(day), **job, **figures})


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
            run = "/".join(part for part in (fact.app_id, fact.attempt) if part is not None)
            query_name = ""
            if fact.kind == "query":
                run, query_name = fact.run_id or run, fact.query_name or ""
            yield (
                fact.kind,
                query_name,
                Transition(run, fact.app_id or "", fact.time_ms, fact.status, fact.event_id),
            )


def _last_heard(application: Application) -> tuple[dict[str, int], dict[str, int]]:
    """Return when each run of an application was last heard of, by id, and each query, by name."""
    of_runs: dict[str, int] = defaultdict(int)
    of_queries: dict[str, int] = defaultdict(int)
    heard = (
        *((fact.app_id, fact.query_name, fact.time_ms) for fact in application.facts),
        *((days.app_id, days.query_name, days.heard_ms) for days in application.days),
    )
    for app_id, query_name, time_ms in heard:
        of_runs[app_id or ""] = max(of_runs[app_id or ""], time_ms)
        if query_name:
            of_queries[query_name] = max(of_queries[query_name], time_ms)
    return of_runs, of_queries
