"""The table of the runs of batch applications that took much longer than those before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spark_events.api import JobStatus
from spark_events.api.toolkit.formatting import cost
from spark_events.diagnosis.earlier_runs.usual import LEAST_COMPARED, usual
from spark_events.history.figures.application import KnownApplication
from spark_events.history.reading.facts import FAILURE, ISSUE, STATUS, Fact
from spark_events.history.table import (
    BIGINT,
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
)

COMPARED = 20
"""With how many earlier runs a run is compared at most."""
_FACTOR, _LEAST_MORE_MS = 1.5, 30_000
"""What of the 95th percentile a slower run took more than, and how much more than the median."""
_BEGUN = (JobStatus.CREATED.value, JobStatus.RUNNING.value)


@dataclass
class _Run:
    """One run of an application: when it began and finished, and what was reported of it."""

    app_name: str
    app_id: str
    start_ms: int | None = None
    end_ms: int | None = None
    issues: dict[str, Fact] = field(default_factory=dict)
    lost_executors: int = 0
    failed_jobs: int = 0
    has_queries: bool = False

    @property
    def duration_ms(self) -> int:
        assert self.start_ms is not None
        assert self.end_ms is not None
        return self.end_ms - self.start_ms


def _rows(known: KnownApplication) -> Iterator[Row]:
    """Yield a row for each run that took more than 1.5 times the 95th percentile of the runs before it.

    A run is compared with the last ``COMPARED`` before it that finished, of which there have to be five. How
    long a streaming query runs says nothing, so applications with queries are left out.
    """
    since_ms, until_ms, _ = known.period
    runs: dict[tuple[str | None, str | None], _Run] = {}
    for fact in known.facts:
        key = fact.app_id, fact.attempt
        if key not in runs:
            runs[key] = _Run(fact.app_name, fact.app_id or "")
        _add(runs[key], fact)
    finished = [
        run
        for run in runs.values()
        if run.start_ms is not None and run.end_ms is not None and not run.has_queries
    ]
    finished.sort(key=lambda run: (run.start_ms, run.app_id))
    for number, run in enumerate(finished):
        earlier = finished[max(0, number - COMPARED) : number]
        if len(earlier) >= LEAST_COMPARED and since_ms <= (run.end_ms or 0) <= until_ms:
            yield from _if_slower(run, earlier)


def _add(run: _Run, fact: Fact) -> None:
    if fact.query_name:
        run.has_queries = True
    if fact.fact == STATUS and fact.kind == "application":
        if fact.status in _BEGUN:
            run.start_ms = fact.time_ms if run.start_ms is None else min(run.start_ms, fact.time_ms)
        elif fact.status == JobStatus.FINISHED.value:
            run.end_ms = max(run.end_ms or 0, fact.time_ms)
    elif fact.fact == ISSUE and fact.issue:
        known = run.issues.get(fact.issue)
        if known is None or (fact.lost_ms or 0) > (known.lost_ms or 0):
            run.issues[fact.issue] = fact
    elif fact.fact == FAILURE and fact.executor_id is not None:
        run.lost_executors += 1
    elif fact.fact == FAILURE:
        run.failed_jobs += 1


def _if_slower(run: _Run, earlier: Sequence[_Run]) -> list[Row]:
    """Return the row of a run that took much longer than those before it; nothing for another."""
    before = usual(each.duration_ms for each in earlier)
    if not before.is_exceeded_by(run.duration_ms, _FACTOR, _LEAST_MORE_MS):
        return []
    return [
        {
            "app_name": run.app_name,
            "app_id": run.app_id,
            "start_ms": run.start_ms,
            "duration_ms": run.duration_ms,
            "usual_ms": before.median_ms,
            "p95_ms": before.p95_ms,
            "compared": before.compared,
            "changed": "; ".join(_changed(run, earlier)),
        }
    ]


def _changed(run: _Run, earlier: Sequence[_Run]) -> list[str]:
    """Return what was reported of a run and of none before it, the costliest first."""
    usual = {kind for each in earlier for kind in each.issues}
    new = [fact for kind, fact in run.issues.items() if kind not in usual]
    new.sort(key=lambda fact: (-(fact.lost_ms or 0), -(fact.lost_bytes or 0), fact.issue or ""))
    changed = [f"{fact.issue} ({cost(fact.lost_ms, fact.lost_bytes)}): {fact.subject}" for fact in new]
    for what, number, most in (
        ("lost executors", run.lost_executors, max(each.lost_executors for each in earlier)),
        ("failures", run.failed_jobs, max(each.failed_jobs for each in earlier)),
    ):
        if number > most:
            changed.append(f"{what}: {number}, before at most {most}")
    return changed


def _run_name(row: Row) -> list[Part]:
    return [Part(row["app_name"]), NEW_LINE, Part(row["app_id"])]


SLOWER_RUNS = Table(
    "slower_runs",
    "run of a batch application that took much longer than those before it",
    (
        Column("app_name", STRING),
        Column("app_id", STRING),
        Column("start_ms", BIGINT),
        Column("duration_ms", BIGINT),
        Column("usual_ms", BIGINT, "the median duration of the earlier runs that it is compared with"),
        Column("p95_ms", BIGINT, "the 95th percentile of their durations"),
        Column("compared", BIGINT, "the number of these earlier runs"),
        Column(
            "changed", STRING, "what was reported for this run and for none of the earlier ones, in words"
        ),
    ),
    _rows,
    lambda rows: sorted(rows, key=lambda row: row["start_ms"], reverse=True),
    heading="Slower than usual",
    first="the latest first",
    shown=(
        Shown("application", "app_name", where=PAGE),
        Shown("run", "app_id", where=PAGE),
        Shown("application", _run_name, where=TERMINAL),
        Shown("started (UTC)", "start_ms", How.MOMENT),
        Shown("took", "duration_ms", How.DURATION, is_bad=lambda row: True),
        Shown("usual", "usual_ms", How.DURATION),
        Shown("95th percentile", "p95_ms", How.DURATION, PAGE),
        Shown("of runs", "compared", How.COUNT, PAGE),
        Shown("what is new", "changed", wraps=True),
    ),
)
