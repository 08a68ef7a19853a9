"""The table of the runs of batch applications: whether the last one was fine, and how long one takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from spark_events.history.figures.application import KnownApplication, Period
from spark_events.history.figures.job_runs import ENDS, LOST, UNKNOWN, RunOfJob
from spark_events.history.figures.timeline import DOWN, DOWN_AFTER, NOT_HEARD, STOPPED, UP
from spark_events.history.table import (
    BAD,
    BIGINT,
    NOW,
    PAGE,
    STRING,
    TERMINAL,
    WIDE,
    Column,
    How,
    Part,
    Row,
    Shown,
    Table,
    state_of,
)

_BAD_ENDS = (*DOWN_AFTER, UNKNOWN)
_STATES = {"FINISHED": UP, "FAILED": DOWN, LOST: DOWN, UNKNOWN: NOT_HEARD, "CANCELED": STOPPED}
"""By the status of the last run, how it is colored; one that goes on is starting."""


def _rows(known: KnownApplication) -> Iterator[Row]:
    for job in known.jobs:
        if job.batch:
            yield {"app_name": known.name, **_figures(job.runs, known.period)}


def _figures(runs: Sequence[RunOfJob], period: Period) -> Row:
    """Return the figures of a batch application with some runs.

    Those that were over before the period are not counted; the last one is known, whenever it was.
    """
    since_ms, until_ms, _ = period
    counted = [run for run in runs if since_ms <= (until_ms if run.end_ms is None else run.end_ms)]
    ok = [run for run in counted if run.status == "FINISHED"]
    going_on = [run for run in counted if run.status not in ENDS]
    unknown = sum(run.status == UNKNOWN for run in going_on)
    last = max(runs, key=lambda run: (run.begun_ms, run.run))
    others_ok = [run for run in runs if run.status == "FINISHED" and run is not last]
    durations_ms = [duration_ms for run in others_ok if (duration_ms := _duration_ms(run)) is not None]
    return {
        "runs": len(counted),
        "ok": len(ok),
        "failed": sum(run.status in DOWN_AFTER for run in counted),
        "canceled": sum(run.status == "CANCELED" for run in counted),
        "running": len(going_on) - unknown,
        "unknown": unknown,
        "last_status": last.status,
        "last_start_ms": _start_ms(last),
        "last_end_ms": last.end_ms,
        "last_duration_ms": _duration_ms(last),
        "usual_ms": int(statistics.median(durations_ms)) if durations_ms else None,
        "last_ok_end_ms": max(
            (run.end_ms for run in runs if run.status == "FINISHED" and run.end_ms), default=None
        ),
    }


def _start_ms(run: RunOfJob) -> int | None:
    """Return when a run began; None where only its end is known."""
    return None if run.spans[0].status in ENDS else run.begun_ms


def _duration_ms(run: RunOfJob) -> int | None:
    start_ms = _start_ms(run)
    return None if start_ms is None or run.end_ms is None else run.end_ms - start_ms


def _failed(row: Row) -> list[Part]:
    return [Part(str(row["failed"]), BAD if row["failed"] else "")]


RUNS = Table(
    "runs",
    "batch application",
    (
        Column("app_name", STRING),
        Column("runs", BIGINT, "the number of all runs"),
        Column("ok", BIGINT, "the number of runs that are FINISHED"),
        Column("failed", BIGINT, "the number of runs that are FAILED or LOST"),
        Column("canceled", BIGINT),
        Column("running", BIGINT, "the number of runs that have not ended"),
        Column("unknown", BIGINT, "the number of runs that are silent, and may or may not have ended"),
        Column("last_status", STRING, "the status of the run that began last"),
        Column("last_start_ms", BIGINT, "null if not known"),
        Column("last_end_ms", BIGINT, "null if that run has not ended"),
        Column("last_duration_ms", BIGINT),
        Column("usual_ms", BIGINT, "the median duration of all other runs that were ok; null if none was"),
        Column("last_ok_end_ms", BIGINT, "when the last run that was ok ended; null if none was"),
    ),
    _rows,
    lambda rows: sorted(rows, key=lambda row: (row["last_status"] not in _BAD_ENDS, row["app_name"])),
    heading="Batch applications",
    first="those that failed last first",
    shown=(
        Shown("application", "app_name"),
        Shown("last run", state_of(_STATES, "last_status")),
        Shown("started (UTC)", "last_start_ms", How.MOMENT, PAGE),
        Shown("began\n(UTC)", "last_start_ms", How.MINUTE, TERMINAL),
        Shown("how long\nago", "last_start_ms", How.AGO, PAGE | TERMINAL | NOW),
        Shown("took", "last_duration_ms", How.DURATION),
        Shown("usual", "usual_ms", How.DURATION, PAGE | WIDE),
        Shown("runs", "runs", How.COUNT, PAGE | WIDE),
        Shown("ok", "ok", How.COUNT),
        Shown("failed", _failed, where=PAGE, left=False),
        Shown("failed", "failed", How.COUNT, TERMINAL),
        Shown("canceled", "canceled", How.COUNT, PAGE | WIDE),
        Shown("running", "running", How.COUNT, PAGE),
        Shown("last ok (UTC)", "last_ok_end_ms", How.MOMENT, PAGE),
        Shown("last ok\n(UTC)", "last_ok_end_ms", How.MINUTE, WIDE),
    ),
)
