"""The tables of checkpoints against the SLA: of queries, and of their days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from spark_events.history.figures.application import KnownApplication
from spark_events.history.figures.checkpoints import largest, newest_sla_ms
from spark_events.history.figures.day_sums import DaySums
from spark_events.history.reading.plausible import DAY_MS, iso_date
from spark_events.history.table import (
    BAD,
    BIGINT,
    BOOLEAN,
    DAY,
    DOUBLE,
    PAGE,
    QUERY,
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

_FIGURES = (
    Column(
        "sla_ms",
        BIGINT,
        "given, or set by the newest application: each micro-batch is compared with that of its own",
    ),
    Column("completed", BIGINT),
    Column("failed", BIGINT),
    Column("late_by_duration", BIGINT),
    Column("late_by_gap", BIGINT, "includes `stopped_late`, and a micro-batch that is overdue at the end"),
    Column("overdue", BOOLEAN, "whether a micro-batch is overdue at the end of the report"),
    Column(
        "stopped_late",
        BIGINT,
        "micro-batches that never committed: overdue already when their query was stopped on purpose",
    ),
    Column("met", BIGINT, "completed and not late"),
    Column(
        "met_percent",
        DOUBLE,
        "`met` as a share of the micro-batches that completed, are overdue, or never committed; "
        "null if there are none",
    ),
    Column("worst_duration_ms", BIGINT),
    Column("worst_gap_ms", BIGINT),
    Column("mean_duration_ms", DOUBLE),
)


def _rows(known: KnownApplication) -> Iterator[Row]:
    for query_name, sums, sla_ms in known.checkpoints:
        yield {"app_name": known.name, "query_name": query_name, **_figures(sums, sla_ms)}


def _rows_of_days(known: KnownApplication) -> Iterator[Row]:
    for query_name, sums, _ in known.checkpoints:
        names = {"app_name": known.name, "query_name": query_name}
        for day, of_day in _by_day(sums):
            if day >= known.period.days_since_ms // DAY_MS:
                yield {"date": iso_date(day), **names, **_figures(of_day, newest_sla_ms(of_day, (), None))}


def _figures(sums: Sequence[DaySums], sla_ms: int) -> Row:
    """Return the figures of a query, or of one of its days.

    Args:
        sums: as of ``sums_of_query``, or those of a day.
        sla_ms: the newest that they were compared with.
    """
    completed = sum(day.completed for day in sums)
    overdue = any(day.overdue for day in sums)
    never = sum(day.stopped_late for day in sums)
    owed = completed + overdue + never
    met = completed - sum(day.late for day in sums)
    duration_ms = sum(day.duration_sum_ms or 0 for day in sums)
    return {
        "sla_ms": sla_ms,
        "completed": completed,
        "failed": sum(day.failed for day in sums),
        "late_by_duration": sum(day.late_by_duration for day in sums),
        "late_by_gap": sum(day.late_by_gap for day in sums),
        "overdue": overdue,
        "stopped_late": never,
        "met": met,
        "met_percent": 100 * met / owed if owed else None,
        "worst_duration_ms": largest(day.worst_duration_ms for day in sums),
        "worst_gap_ms": largest(day.worst_gap_ms for day in sums),
        "mean_duration_ms": duration_ms / completed if completed else None,
    }


def _by_day(sums: Iterable[DaySums]) -> Iterator[tuple[int, list[DaySums]]]:
    """Yield the days of some sums, in order, each with its own."""
    days: dict[int, list[DaySums]] = defaultdict(list)
    for of_day in sums:
        days[of_day.day].append(of_day)
    yield from sorted(days.items())


def _worst_first(rows: list[Row]) -> list[Row]:
    return sorted(
        rows,
        key=lambda row: (not row["overdue"], row["met_percent"] is None, row["met_percent"], by_name(row)),
    )


def _name(row: Row) -> list[Part]:
    overdue = (Part(" "), Part("overdue", BAD)) if row["overdue"] else ()
    return [Part(job_name(row)), *overdue]


CHECKPOINT_SLA = Table(
    "checkpoint_sla",
    "query",
    (*QUERY, *_FIGURES),
    _rows,
    _worst_first,
    heading="Micro-batches against the SLA",
    first="the worst first",
    id="checkpoints",
    shown=(
        Shown("application / query", _name),
        Shown("SLA", "sla_ms", How.DURATION),
        Shown("met", "met_percent", How.PERCENT),
        Shown("completed", "completed", How.COUNT),
        Shown("late by\nduration", "late_by_duration", How.COUNT),
        Shown("late by\ngap", "late_by_gap", How.COUNT),
        Shown("failed", "failed", How.COUNT, PAGE | WIDE),
        Shown("slowest", "worst_duration_ms", How.DURATION, PAGE | WIDE),
        Shown("mean", "mean_duration_ms", How.DURATION, PAGE),
        Shown("longest\ngap", "worst_gap_ms", How.DURATION, PAGE | WIDE),
    ),
)
CHECKPOINT_SLA_PER_DAY = Table(
    "checkpoint_sla_per_day",
    "query and day",
    (DAY, *QUERY, *_FIGURES),
    _rows_of_days,
    lambda rows: sorted(rows, key=lambda row: (row["date"], by_name(row))),
)
