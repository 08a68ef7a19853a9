"""The figures of a report, collected from the tables: rows for the terminal, the page and the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_events.history.checkpoints import QUERY
from spark_events.history.facts import PROBLEMS, Reading
from spark_events.history.history import MOST_DAYS, History, Tables
from spark_events.history.timeline import JOB

Row = dict[str, Any]
MOST_SHOWN = 50
"""How many jobs a page draws, the worst first; its tables and the JSON have all."""
MOST_FAILURES = 10_000
"""How many errors of a day a report has, the latest ones."""
_MOST_INTERVALS = 400
_BINS = 240
_AT_ONCE = 3


@dataclass
class Report:
    """The figures of a report; times are ms since the epoch, days UTC's.

    Attributes:
        since_ms, until_ms: the period that it covers.
        sla_ms: the SLA of all queries except those in ``sla_by_query``.
        sla_by_query: the SLAs of some queries, by name.
        uptime, checkpoint_sla: rows of these ``Tables``, the worst first.
        uptime_per_day, checkpoint_sla_per_day, failures: rows of these ``Tables``, by day.
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
    checkpoint_sla: list[Row]
    checkpoint_sla_per_day: list[Row]
    failures: list[Row]
    intervals: list[Row]
    durations: list[Row]
    notes: list[str] = field(default_factory=list)
    records: int = 0


def collect(history: History, tables: Tables, readings: list[Reading]) -> Report:
    """Compute the tables and return the report.

    Args:
        readings: how reading went; empty if nothing new was read.
    """
    latest = tables.failures.orderBy(F.desc("last_ms"), "app_name", "query_name", "error", "labels")
    frames = (tables.uptime, tables.checkpoint_sla, tables.uptime_per_day, tables.checkpoint_sla_per_day)
    # With little data, Spark mostly spends its time planning, so plan several tables in parallel.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        uptime, sla, uptime_per_day, sla_per_day, failures = pool.map(
            _rows, (*frames, latest.limit(MOST_FAILURES))
        )
        # First those that are down, then by downtime, then by name.
        uptime.sort(key=lambda row: (row["state"] != "down", -row["down_ms"], _name(row)))
        sla.sort(
            key=lambda row: (not row["overdue"], row["met_percent"] is None, row["met_percent"], _name(row))
        )
        drawn = (_longest_intervals(tables.status_intervals, uptime), _worst_checkpoints(history, sla))
        intervals, durations = pool.map(_rows, drawn)
    return Report(
        since_ms=history.period.since_ms,
        until_ms=history.period.until_ms,
        sla_ms=history.sla.default_ms,
        sla_by_query=dict(history.sla.by_query),
        uptime=uptime,
        uptime_per_day=sorted(uptime_per_day, key=lambda row: (row["date"], _name(row))),
        checkpoint_sla=sla,
        checkpoint_sla_per_day=sorted(sla_per_day, key=lambda row: (row["date"], _name(row))),
        failures=sorted(failures, key=lambda row: (row["date"], row["last_ms"], _name(row))),
        intervals=sorted(intervals, key=lambda row: row["start_ms"]),
        durations=sorted(durations, key=lambda row: row["time_ms"]),
        notes=[*notes_on(readings, history.losses()), *_notes_on_limits(history, failures)],
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
            example = reading.examples.get(problem)
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


def _notes_on_limits(history: History, failures: list[Row]) -> list[str]:
    notes = []
    if history.days_since_ms > history.period.since_ms:
        notes.append(f"by day, there are the last {MOST_DAYS} days alone")
    if len(failures) == MOST_FAILURES:
        notes.append(f"of the failures, there are the last {MOST_FAILURES:,} alone")
    return notes


def _rows(frame: DataFrame) -> list[Row]:
    rows = [row.asDict() for row in frame.collect()]
    for row in rows:
        if "date" in row:
            row["date"] = row["date"].isoformat()
    return rows


def _name(row: Row) -> tuple[str, str]:
    return row["app_name"], row["query_name"]


def _longest_intervals(intervals: DataFrame, uptime: list[Row]) -> DataFrame:
    """Return the intervals of the jobs that a page draws; if there are very many, only the longest."""
    drawn = intervals.where(_is_one_of(uptime[:MOST_SHOWN], JOB))
    longest_first = Window.partitionBy(*JOB).orderBy((F.col("end_ms") - F.col("start_ms")).desc(), "start_ms")
    numbered = drawn.withColumn("number", F.row_number().over(longest_first))
    return numbered.where(F.col("number") <= _MOST_INTERVALS).drop("number")


def _worst_checkpoints(history: History, sla: list[Row]) -> DataFrame:
    """Return the worst checkpoint in each part of the time, of the queries that a page draws."""
    since_ms, until_ms = history.period
    drawn = _is_one_of(sla[:MOST_SHOWN], QUERY)
    completed = history.checkpoints.where(drawn & (F.col("status") == "COMPLETED"))
    bin_ms = max(1, -(-(until_ms - since_ms) // _BINS))
    number = F.floor((F.col("time_ms") - since_ms) / bin_ms)
    return completed.groupBy(*QUERY, number.alias("bin")).agg(
        F.max_by("time_ms", "duration_ms").alias("time_ms"),
        F.max("duration_ms").alias("duration_ms"),
        F.max("owed_ms").alias("gap_ms"),
    )


def _is_one_of(rows: list[Row], key: tuple[str, ...]) -> Column:
    """Return a condition: whether a row of a frame has the same key as one of these rows."""
    return F.concat_ws("\0", *key).isin(["\0".join(row[name] for name in key) for row in rows])
