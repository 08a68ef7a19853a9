"""The figures of a report, from the tables: rows for the terminal, the page and the JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest

from spark_events.api.urls import path_without_secrets
from spark_events.history.figures.issues import cost_of
from spark_events.history.figures.job_runs import LOST, UNKNOWN
from spark_events.history.figures.tables import JOB, Row, Tables
from spark_events.history.figures.timeline import DOWN, DOWN_AFTER, LAST_FAILED, NOT_HEARD
from spark_events.history.history import MOST_DAYS, History
from spark_events.history.reading.facts import PROBLEMS, Reading

MOST_SHOWN = 50
"""How many jobs a page draws, the worst first; its tables and the JSON have all."""
MOST_FAILURES = 10_000
"""How many errors of a day a report has, the latest ones."""
MOST_EXECUTORS = 10_000
"""How many executors that ended a report has, the last ones."""
MOST_ISSUES = 10_000
MOST_COUNTERS = 10_000
_MOST_INTERVALS = 400
_BINS = 240
_MOST_NAMES = 10
_BAD_STATES = (LOST, NOT_HEARD, DOWN, LAST_FAILED)
_BAD_ENDS = (*DOWN_AFTER, UNKNOWN)


@dataclass
class Report:
    """The figures of a report; times are ms since the epoch, days UTC's.

    Attributes:
        since_ms, until_ms: the period that it covers.
        sla_ms: the SLA of all queries except those in ``sla_by_query``.
        sla_by_query: the SLAs of some queries, by name.
        uptime, checkpoint_sla: rows of these ``Tables``, the worst first.
        runs: rows of this table, those whose last run failed first.
        uptime_per_day, checkpoint_sla_per_day, failures: rows of these ``Tables``, by day.
        executors: rows of this table, by their ends.
        issues: rows of this table, the costliest first.
        slower_runs: rows of this table, the latest first.
        task_counters: rows of this table, by job and counter.
        intervals: rows of ``Tables.status_intervals`` of the ``MOST_SHOWN`` worst.
        durations: the worst checkpoint in each 240th of the time, of the ``MOST_SHOWN`` worst queries: with
            ``app_name``, ``query_name``, ``time_ms``, ``duration_ms``, ``gap_ms``.
        notes: what a reader has to know about the underlying events.
        records: how many records were read.
    """

    since_ms: int
    until_ms: int
    sla_ms: int
    sla_by_query: dict[str, int]
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
    intervals: list[Row]
    durations: list[Row]
    notes: list[str] = field(default_factory=list)
    records: int = 0


def collect(history: History, tables: Tables, readings: list[Reading]) -> Report:
    """Return the report of some tables.

    Args:
        history: that has the tables.
        tables: as of ``History.tables``.
        readings: how reading went; empty if nothing new was read.
    """
    uptime = sorted(tables.uptime, key=lambda row: (_badness(row), -(row["down_ms"] or 0), _name(row)))
    sla = sorted(
        tables.checkpoint_sla,
        key=lambda row: (not row["overdue"], row["met_percent"] is None, row["met_percent"], _name(row)),
    )
    failures = nlargest(MOST_FAILURES, tables.failures, key=lambda row: (row["last_ms"], _name(row)))
    drawn = [(row["app_name"], row["query_name"]) for row in sla[:MOST_SHOWN]]
    return Report(
        since_ms=history.period.since_ms,
        until_ms=history.period.until_ms,
        sla_ms=history.sla.default_ms,
        sla_by_query=dict(history.sla.by_query),
        uptime=uptime,
        uptime_per_day=sorted(tables.uptime_per_day, key=lambda row: (row["date"], _name(row))),
        runs=sorted(tables.runs, key=lambda row: (row["last_status"] not in _BAD_ENDS, row["app_name"])),
        checkpoint_sla=sla,
        checkpoint_sla_per_day=sorted(
            tables.checkpoint_sla_per_day, key=lambda row: (row["date"], _name(row))
        ),
        failures=sorted(failures, key=lambda row: (row["date"], row["last_ms"], _name(row))),
        executors=nlargest(MOST_EXECUTORS, tables.executors, key=lambda row: row["end_ms"])[::-1],
        slower_runs=sorted(tables.slower_runs, key=lambda row: row["start_ms"], reverse=True),
        issues=nlargest(MOST_ISSUES, tables.issues, key=cost_of),
        task_counters=sorted(tables.task_counters, key=_name)[:MOST_COUNTERS],
        intervals=_longest_intervals(tables.status_intervals, uptime),
        durations=sorted(history.worst_checkpoints(drawn, _BINS), key=lambda row: row["time_ms"]),
        notes=[
            *_notes_on_silence(uptime),
            *_notes_on_sla(history, sla),
            *notes_on(readings, history.losses()),
            *_notes_on_limits(history, tables, failures),
        ],
        records=sum(reading.records for reading in readings),
    )


def job_name(row: Mapping[str, str]) -> str:
    """Return a row's name: the query's, with its application's, or the application's."""
    return f"{row['app_name']} / {row['query_name']}" if row["query_name"] else row["app_name"]


def notes_on(readings: list[Reading], losses: dict[str, int]) -> list[str]:
    """Return what a reader of the report has to know about the underlying events.

    Args:
        readings: how reading went.
        losses: how many events were dropped before they were stored, by the cause.
    """
    notes = []
    for reading in readings:
        for problem, count in reading.problems.items():
            example = path_without_secrets(reading.examples.get(problem) or "")
            problem_text = PROBLEMS[problem] + (f", {reading.times}" if problem == "time" else "")
            notes.append(f"{count:,} skipped: {problem_text} (one is in {example})")
        if reading.duplicates:
            notes.append(f"{reading.duplicates:,} repeated: they have the id of another, and count once")
        if reading.odd_numbers:
            notes.append(
                f"{reading.odd_numbers:,} values are no numbers, or none that can be: taken as missing"
            )
        if reading.own:
            notes.append(f"{reading.own:,} events are your own code's: they show only that it ran")
    for cause, count in losses.items():
        notes.append(f"{count:,} events were dropped by reporters ({cause}): the history may lack them")
    return notes


def _notes_on_silence(uptime: list[Row]) -> list[str]:
    """Return a note on the applications that would not be missed if they were gone."""
    names = {row["app_name"] for row in uptime if row["silent_ms"] is not None and not row["heartbeat_ms"]}
    if not names:
        return []
    return [
        f"applications without heartbeats: {len(names):,} (old events, a replay, or an interval of 0); their "
        "silence cannot be told from idleness, so they count as they were last heard of"
    ]


def _notes_on_sla(history: History, sla: list[Row]) -> list[str]:
    """Return a note on each SLA that is for no query."""
    names = {row["query_name"] for row in sla}
    known = ", ".join(sorted(names)[:_MOST_NAMES])
    return [
        f"the SLA of {name} is of no use: no query has this name; there are {known or 'none'}"
        for name in history.sla.by_query
        if name not in names
    ]


def _notes_on_limits(history: History, tables: Tables, failures: list[Row]) -> list[str]:
    notes = []
    if history.period.days_since_ms > history.period.since_ms:
        notes.append(f"by day, there are the last {MOST_DAYS} days alone")
    if len(failures) == MOST_FAILURES:
        notes.append(f"of the failures, there are the last {MOST_FAILURES:,} alone")
    if len(tables.executors) > MOST_EXECUTORS:
        notes.append(f"of the executors that ended, there are the last {MOST_EXECUTORS:,} alone")
    if len(tables.issues) > MOST_ISSUES:
        notes.append(f"of the performance issues, there are the costliest {MOST_ISSUES:,} alone")
    if len(tables.task_counters) > MOST_COUNTERS:
        notes.append(f"of what tasks counted, there are the first {MOST_COUNTERS:,} counters alone")
    return notes


def _badness(row: Row) -> int:
    """Return the place of a job among the others: first lost, then unknown, down, and failed ones."""
    if row["status"] == LOST:
        return 0
    return _BAD_STATES.index(row["state"]) if row["state"] in _BAD_STATES else len(_BAD_STATES)


def _name(row: Row) -> tuple[str, str]:
    return row["app_name"], row["query_name"]


def _longest_intervals(intervals: list[Row], uptime: list[Row]) -> list[Row]:
    """Return the intervals of the jobs that a page draws; if there are too many, only the longest."""
    drawn = {tuple(row[name] for name in JOB) for row in uptime[:MOST_SHOWN]}
    by_job: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in intervals:
        job = tuple(row[name] for name in JOB)
        if job in drawn:
            by_job[job].append(row)
    longest = (
        nlargest(_MOST_INTERVALS, rows, key=lambda row: (row["end_ms"] - row["start_ms"], -row["start_ms"]))
        for rows in by_job.values()
    )
    return sorted((row for rows in longest for row in rows), key=lambda row: row["start_ms"])
