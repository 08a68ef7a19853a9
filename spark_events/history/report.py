"""The figures of a report, from the tables: rows for the terminal, the page and the JSON."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from spark_events.api import ConfigError
from spark_events.api.toolkit.formatting import counted, duration, moment
from spark_events.api.wrong_values import KINDS
from spark_events.history.history import MOST_DAYS, History
from spark_events.history.options import UNSET_SLA_MS
from spark_events.history.reading.facts import Reading
from spark_events.history.table import JOB, Row, by_name
from spark_events.history.tables.all_tables import COLUMNS, TABLES, Tables

if TYPE_CHECKING:
    import pandas

MOST_SHOWN = 50
"""How many jobs a page draws, the worst first; its tables and the JSON have all."""
_MOST_INTERVALS = 400
_BINS = 240
_MOST_NAMES = 10
_TIMES = {
    *("time_ms", "start_ms", "end_ms", "first_ms", "last_ms", "status_since_ms", "last_heard_ms"),
    *("last_start_ms", "last_end_ms", "last_ok_end_ms"),
}
"""The columns that are times; all others in ms are durations."""
_OF_EXECUTORS = {"other_sender", "malformed", "too_long", "silent", "too_many", "too_many_connections"}
"""Why a driver refuses what its executors and tasks send: metrics, and why tasks failed."""


@dataclass(repr=False)
class Report:
    """The figures of a report; times are ms since the epoch, days UTC's.

    Each table is a list of rows: ``report.tables.uptime``.

    Attributes:
        since_ms, until_ms: the period that it covers.
        sla_ms: the SLA that was given for all queries except those in ``sla_by_query``; None if none was, so
            that each query has what its application had set. The tables say which that is.
        sla_by_query: the SLAs of some queries, by name.
        tables: each in its order; see ``TABLES``.
        intervals: rows of ``Tables.status_intervals`` of the ``MOST_SHOWN`` worst.
        durations: the worst checkpoint in each 240th of the time, of the ``MOST_SHOWN`` worst queries: with
            ``app_name``, ``query_name``, ``time_ms``, ``duration_ms``, ``gap_ms``.
        notes: what a reader has to know about the underlying events.
        records: how many records were read.
        until_now: whether the period ends now; times may be told as "so long ago" only then.
    """

    since_ms: int
    until_ms: int
    sla_ms: int | None
    sla_by_query: dict[str, int]
    tables: Tables
    intervals: list[Row]
    durations: list[Row]
    notes: list[str] = field(default_factory=list)
    records: int = 0
    until_now: bool = False

    def to_pandas(self, table: str = "uptime") -> pandas.DataFrame:
        """Return a table as a frame of pandas; columns in ms since the epoch become times in UTC.

        Args:
            table: such as ``uptime``, ``runs``, ``failures``, ``checkpoint_sla``, ``issues``.

        Raises:
            ConfigError: pandas is not installed.
            KeyError: there is no table of this name.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise ConfigError("Report.to_pandas needs pandas: pip install pandas") from error
        if table not in self.tables:
            raise KeyError(f"there is no table {table!r}, but {', '.join(self.tables)}")
        frame = pandas.DataFrame(self.tables[table], columns=list(COLUMNS[table]))
        times = {name: pandas.to_datetime(frame[name], unit="ms", utc=True) for name in _TIMES & set(frame)}
        return frame.assign(**times).rename(columns=lambda name: name[:-3] if name in _TIMES else name)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} ({len(rows):,})" for name, rows in self.tables.items())
        return f"<Report from {moment(self.since_ms)} to {moment(self.until_ms)} UTC: {rows}>"

    def as_values(self) -> dict[str, Any]:
        """Return all of it as values of JSON."""
        values = dict(vars(self))
        del values["until_now"]  # of how times are shown
        before = ("since_ms", "until_ms", "sla_ms", "sla_by_query")
        return {**{name: values.pop(name) for name in before}, **values.pop("tables"), **values}


def collect(history: History, tables: Tables, readings: list[Reading]) -> Report:
    """Return the report of some tables.

    Args:
        history: that has the tables.
        tables: as of ``History.tables``.
        readings: how reading went; empty if nothing new was read.
    """
    ordered = Tables({table.name: table.in_order(tables[table.name]) for table in TABLES if table.in_report})
    drawn = [by_name(row) for row in ordered.checkpoint_sla[:MOST_SHOWN]]
    return Report(
        since_ms=history.period.since_ms,
        until_ms=history.period.until_ms,
        sla_ms=history.sla.default_ms,
        sla_by_query=dict(history.sla.by_query),
        tables=ordered,
        intervals=_longest_intervals(tables.status_intervals, ordered.uptime),
        durations=sorted(history.worst_checkpoints(drawn, _BINS), key=lambda row: row["time_ms"]),
        notes=[
            *_notes_on_silence(ordered.uptime),
            *_notes_on_sla(history, ordered.checkpoint_sla),
            *notes_on(readings, history.losses()),
            *_notes_on_limits(history, tables),
        ],
        records=sum(reading.records for reading in readings),
        until_now=history.until_now,
    )


def job_of(row: Row) -> tuple[str, ...]:
    """Return the key of the job that a row is about."""
    return tuple(row[column.name] for column in JOB)


def notes_on(readings: list[Reading], losses: dict[str, int]) -> list[str]:
    """Return what a reader of the report has to know about the underlying events.

    Args:
        readings: how reading went.
        losses: how many events were dropped before they were stored, by the cause.
    """
    notes = []
    for reading in readings:
        notes += reading.skipped
        if reading.duplicates:
            notes.append(f"{counted(reading.duplicates, 'event')} with the id of another, and counted once")
        if reading.odd_numbers:
            notes.append(
                f"{reading.odd_numbers:,} values are not numbers, or impossible ones: taken as missing"
            )
        if reading.own:
            of_program = counted(reading.own, "event")
            notes.append(f"{of_program} of your own code, which only shows that the application was running")
    notes += [_note_on_loss(cause, count) for cause, count in losses.items()]
    return notes


def _note_on_loss(cause: str, count: int) -> str:
    if cause in KINDS:
        values = counted(count, "value")
        return f"{values} of your own metrics, events and spans could not be reported ({cause})"
    if cause in _OF_EXECUTORS:
        return f"the driver refused {counted(count, 'report')} of tasks or executors ({cause})"
    were = "event was" if count == 1 else "events were"
    return f"{count:,} {were} dropped by reporters ({cause}): the history may lack them"


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
    """Return a note on each SLA that is for no query, and on the one that nobody set."""
    names = {row["query_name"] for row in sla}
    known = ", ".join(sorted(names)[:_MOST_NAMES])
    notes = [
        f"--sla {name}={sla_ms / 1_000:g}s was ignored: no query is named {name}; there are {known or 'none'}"
        for name, sla_ms in history.sla.by_query.items()
        if name not in names
    ]
    of_applications = names if history.sla.default_ms is None else set()
    asked = of_applications.difference(history.sla.by_query)
    if any(row["query_name"] in asked and row["sla_ms"] == UNSET_SLA_MS for row in sla):
        notes.append(
            f"SLA: {duration(UNSET_SLA_MS)} where the application set none (spark.events.checkpoint.sla); "
            "--sla gives another"
        )
    return notes


def _notes_on_limits(history: History, tables: Tables) -> list[str]:
    notes = []
    if history.period.days_since_ms > history.period.since_ms:
        notes.append(f"by day, there are the last {MOST_DAYS} days alone")
    notes += [
        table.cut.format(most=table.most)
        for table in TABLES
        if table.most is not None and len(tables[table.name]) > table.most
    ]
    return notes


def _longest_intervals(intervals: list[Row], uptime: list[Row]) -> list[Row]:
    """Return the intervals of the jobs that a page draws; if there are too many, only the longest."""
    drawn = {job_of(row) for row in uptime[:MOST_SHOWN]}
    by_job: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in intervals:
        if job_of(row) in drawn:
            by_job[job_of(row)].append(row)
    longest = (
        nlargest(_MOST_INTERVALS, rows, key=lambda row: (row["end_ms"] - row["start_ms"], -row["start_ms"]))
        for rows in by_job.values()
    )
    return sorted((row for rows in longest for row in rows), key=lambda row: row["start_ms"])
