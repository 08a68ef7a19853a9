"""The table of the failures of applications, queries, jobs and executors, counted by day and error.

A run that was lost is a failure as well, of which there is no event. The failure of an application or a query
is mostly that of one of its jobs: that of the job is left out then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import NamedTuple

from spark_events.api.toolkit.formatting import moment, size
from spark_events.history.figures.application import KnownApplication, KnownJob
from spark_events.history.figures.job_runs import LOST, RunOfJob
from spark_events.history.figures.told_again import OneFailure, told_by_owners
from spark_events.history.reading.facts import FAILURE, Fact
from spark_events.history.reading.plausible import iso_day
from spark_events.history.table import (
    BIGINT,
    DAY,
    JOB,
    MESSAGE,
    NEW_LINE,
    PAGE,
    STRING,
    TERMINAL,
    Column,
    How,
    Part,
    Row,
    Shown,
    Table,
    by_name,
    job_name,
    latest_first,
)

_MOST = 10_000
_OF_SPARK = ("org.apache.spark.", "pyspark.errors.")
"""The exceptions that say no more than their condition."""
_END_WITH_DRIVER = ("application", "query")
_ALIKE = ("kind", "app_name", "query_name", "error", "exception", "labels")
"""The columns of failures that are one, whatever their day."""
_CAUSES = {
    "type=USER": "likely cause: user code or data",
    "type=SYSTEM": "likely cause: machines, networks or memory",
    "type=UNKNOWN": "",
}
"""The labels of the built-in failure enricher, in words."""


class _LostRun(NamedTuple):
    """A run that was lost, of which job, and whether its application went on."""

    job: KnownJob
    run: RunOfJob
    alone: bool

    @property
    def time_ms(self) -> int:
        """When it was last heard of, in ms since the epoch."""
        return self.run.spans[-1].start_ms


def _rows(known: KnownApplication) -> Iterator[Row]:
    since_ms, until_ms = known.period.days_since_ms, known.period.until_ms
    alike: dict[tuple[str, ...], list[tuple[int, str, str | None]]] = defaultdict(list)
    failed = [fact for fact in known.facts if fact.fact == FAILURE]
    told_again = told_by_owners(
        [OneFailure(*(getattr(fact, name) for name in OneFailure._fields)) for fact in failed]
    )
    for fact in failed:
        if since_ms <= fact.time_ms <= until_ms and fact.event_id not in told_again:
            error, raised = fact.error_class or fact.exception_type or "", _raised(fact)
            of_job = (iso_day(fact.time_ms), fact.kind or "", fact.app_name, fact.query_name or "")
            key = (*of_job, error, raised, fact.labels or "", _end_of(of_job[1], error, fact.message))
            alike[key].append((fact.time_ms, fact.event_id, _message(fact)))
    for lost in _lost_runs(known.jobs):
        if since_ms <= lost.time_ms <= until_ms:
            job = lost.job
            key = (iso_day(lost.time_ms), job.kind, job.app_name, job.query_name, LOST, "", "", "")
            alike[key].append((lost.time_ms, "", _message_of_lost(lost)))
    for values, of_key in alike.items():
        # Within one ms, order by id, so that the last one does not depend on the reading order.
        last_ms, _, message = max(of_key, key=lambda failure: failure[:2])
        counted = (len(of_key), min(time_ms for time_ms, *_ in of_key), last_ms, message)
        yield dict(zip(FAILURES.types, (*values[:-1], *counted), strict=True))


def _lost_runs(jobs: Sequence[KnownJob]) -> list[_LostRun]:
    """Return the lost runs, but for those of queries whose application was lost itself."""
    applications = {run.application for job in jobs if job.kind == "application" for run in job.lost}
    return [
        _LostRun(job, run, alone=job.kind == "query")
        for job in jobs
        for run in job.lost
        if job.kind == "application" or run.application not in applications
    ]


def _message_of_lost(lost: _LostRun) -> str:
    at = f"{moment(lost.time_ms)} UTC, without an end"
    return f"gone by {at}" if lost.alone else f"not heard of since {at}: killed, or its machine is gone"


def _raised(fact: Fact) -> str:
    """Return the class of what a condition of Spark only wraps, ``PYTHON_EXCEPTION`` say; empty if none."""
    thrown = fact.exception_type or ""
    is_executor = fact.executor_id is not None
    return "" if is_executor or not fact.error_class or thrown.startswith(_OF_SPARK) else thrown


def _end_of(kind: str, error: str, message: str | None) -> str:
    """Return how a driver ended that raised nothing, such as by which signal; empty for any other failure."""
    ends_with_driver = kind in _END_WITH_DRIVER and not error
    return (message or "").strip().partition("\n")[0] if ends_with_driver else ""


def _message(fact: Fact) -> str | None:
    """Return the message of a failure, with what raised it where the error is Spark's condition.

    That of an executor says which one, and how full its heap was.
    """
    if fact.executor_id is None:
        said = (fact.message or "").lstrip()  # a place alone has a space before it
        thrown = _raised(fact)
        if not thrown:
            return said or None
        name = thrown.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
        return said if said.startswith((name, thrown)) else f"{name}: {said}" if said else name
    host = f" on {fact.host}" if fact.host else ""  # one that never registered has none
    parts = [f"executor {fact.executor_id}{host}", fact.message]
    if fact.heap_highest is not None and fact.heap_limit is not None:
        parts.append(f"heap {size(fact.heap_highest)} of {size(fact.heap_limit)}")
    return "; ".join(filter(None, parts))


def _in_order(rows: list[Row]) -> list[Row]:
    latest = nlargest(_MOST, rows, key=lambda row: (row["last_ms"], by_name(row)))
    return sorted(latest, key=lambda row: (row["date"], row["last_ms"], by_name(row)))


def _by_error(rows: list[Row]) -> list[Row]:
    """Join the days of each error, the latest first; the message is that of the last."""
    last_rows: dict[tuple[str, ...], Row] = {}
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for row in rows:
        key = (*(row[name] for name in _ALIKE), _end_of(row["kind"], row["error"], row["message"]))
        counts[key] += row["count"]
        if key not in last_rows or row["last_ms"] >= last_rows[key]["last_ms"]:
            last_rows[key] = row
    joined = [{**row, "count": counts[key]} for key, row in last_rows.items()]
    return sorted(joined, key=lambda row: (-row["last_ms"], -row["count"]))


def _what(row: Row) -> str:
    return f"{row['kind']} {job_name(row)}"


def _error(row: Row) -> list[Part]:
    return [Part(row["error"]), NEW_LINE, Part(row["message"] or "", MESSAGE)]


def _label_in_words(label: str) -> str:
    """Return what a label says; that the cause is not known says nothing."""
    return _CAUSES.get(label, label)


def _error_and_labels(row: Row) -> list[Part]:
    labels = ", ".join(filter(None, map(_label_in_words, (row["labels"] or "").split(", "))))
    texts = [Part(text, MESSAGE) for text in (row["error"], labels, row["message"]) if text]
    return [part for text in texts for part in (text, NEW_LINE)][:-1]


FAILURES = Table(
    "failures",
    "day, application or query, error, exception and labels; without an error, how the driver ended",
    (
        DAY,
        Column("kind", STRING, "`application`, `query`, `job`, `stage` or `executor`"),
        *JOB[1:],
        Column(
            "error",
            STRING,
            "Spark's error condition, or else the exception's class; `LOST` for a lost run",
        ),
        Column(
            "exception",
            STRING,
            "the exception's class, if `error` is a condition that only wraps it, as of Python functions",
        ),
        Column("labels", STRING, "the labels from failure enrichers: `team=x, type=USER`"),
        Column("count", BIGINT),
        Column("first_ms", BIGINT),
        Column("last_ms", BIGINT),
        Column(
            "message",
            STRING,
            "the message of the last of these, after the exception's class if `error` is a condition",
        ),
    ),
    _rows,
    _in_order,
    most=_MOST,
    cut="of the failures, there are the last {most:,} alone",
    heading="Failures",
    first="the latest first",
    id="failed",
    on_page=latest_first,
    on_terminal=_by_error,
    shown=(
        Shown("day (UTC)", "date", where=PAGE),
        Shown("count", "count", How.COUNT, TERMINAL),
        Shown("what", _what),
        Shown("error, and the message of the last", _error, where=PAGE, wraps=True),
        Shown("error", _error_and_labels, where=TERMINAL),
        Shown("labels", "labels", where=PAGE),
        Shown("count", "count", How.COUNT, PAGE),
        Shown("last (UTC)", "last_ms", How.CLOCK, PAGE),
        Shown("last (UTC)", "last_ms", How.MOMENT, TERMINAL),
    ),
)
