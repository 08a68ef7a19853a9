"""What is known of the applications of one name: their runs, those of their queries, and the checkpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_events.history.figures.checkpoints import newest_sla_ms, stopped_late, sums_of_query
from spark_events.history.figures.day_sums import DaySums
from spark_events.history.figures.heard import HeardOf, application_run
from spark_events.history.figures.job_runs import LOST, RunOfJob, Transition, runs_of
from spark_events.history.figures.timeline import Interval, status_intervals
from spark_events.history.options import Sla
from spark_events.history.reading.facts import FAILURE, STATUS, Fact

OWNERS = ("application", "query")
"""The kinds of jobs that have runs."""


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


class KnownJob(NamedTuple):
    """An application or query, over time.

    Attributes:
        kind: ``application`` or ``query``.
        app_name, query_name: its names; the latter is empty for an application.
        runs: of it.
        intervals: as of ``timeline.status_intervals``; at least one.
        failures_ms: when it failed or was lost, each time, in ms since the epoch.
        restarts_ms: of a query, when it was RESTARTING, each time.
        batch: whether it is a batch application.
    """

    kind: str
    app_name: str
    query_name: str
    runs: Sequence[RunOfJob]
    intervals: Sequence[Interval]
    failures_ms: Sequence[int]
    restarts_ms: Sequence[int]
    batch: bool

    @property
    def names(self) -> dict[str, str]:
        """The columns that say which it is."""
        return {"kind": self.kind, "app_name": self.app_name, "query_name": self.query_name}

    @property
    def lost(self) -> list[RunOfJob]:
        """Its runs that were lost."""
        return [run for run in self.runs if run.status == LOST]


class QueryCheckpoints(NamedTuple):
    """The checkpoints of a query: its name, the sums that count, and its SLA in ms."""

    query_name: str
    sums: list[DaySums]
    sla_ms: int


@dataclass(frozen=True, slots=True)
class KnownApplication:
    """What the tables are made from, of the applications of one name.

    Attributes:
        name: of them.
        facts: all except single checkpoints.
        jobs: the application, if anything is known of its status, and its queries.
        heard_of: when they were last heard of.
        checkpoints: of the queries that have any.
        period: that the tables cover.
    """

    name: str
    facts: list[Fact]
    jobs: list[KnownJob]
    heard_of: HeardOf
    checkpoints: list[QueryCheckpoints]
    period: Period


def known_of(application: Application, sla: Sla, period: Period) -> KnownApplication:
    """Return what is known of the applications of one name, over a period."""
    heard_of = HeardOf(application.facts, application.days)
    jobs = _jobs(application, heard_of, period.until_ms)
    checkpoints = list(_checkpoints(application, jobs, sla, period))
    return KnownApplication(application.name, application.facts, jobs, heard_of, checkpoints, period)


def _jobs(application: Application, heard_of: HeardOf, until_ms: int) -> list[KnownJob]:
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
        lost_ms = [run.spans[-1].start_ms for run in runs if run.status == LOST]
        jobs.append(
            KnownJob(
                kind,
                application.name,
                query_name,
                runs,
                intervals=status_intervals(runs, until_ms, batch),
                failures_ms=[*failures_of[kind, query_name], *lost_ms],
                restarts_ms=[change.time_ms for change in transitions if change.status == "RESTARTING"],
                batch=batch,
            )
        )
    return jobs


def _checkpoints(
    application: Application, jobs: Iterable[KnownJob], sla: Sla, period: Period
) -> Iterator[QueryCheckpoints]:
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
        sums_of_days, facts = days_of.get(query_name, ()), facts_of.get(query_name, ())
        given_ms = sla.by_query.get(query_name, sla.default_ms)
        sla_ms = newest_sla_ms(sums_of_days, facts, given_ms)
        sums = sums_of_query(
            sums_of_days,
            facts,
            job.intervals if job else (),
            job.runs if job else (),
            sla_ms,
            period.until_ms,
        )
        sums += stopped_late(facts, given_ms, period.since_ms)
        if sums:
            yield QueryCheckpoints(query_name, sums, sla_ms)


def _transitions(facts: Iterable[Fact]) -> Iterator[tuple[str, str, Transition]]:
    """Yield the status changes of applications and queries, with the kind and the query's name."""
    for fact in facts:
        if fact.fact == STATUS and fact.kind and fact.status:
            application = application_run(fact.app_id, fact.attempt)
            run, query_name, query_id = "/".join(filter(None, application)), "", ""
            if fact.kind == "query":
                run, query_name = fact.run_id or run, fact.query_name or ""
                query_id = fact.query_id or ""
            yield (
                fact.kind,
                query_name,
                Transition(run, application, query_id, fact.time_ms, fact.status, fact.event_id),
            )
