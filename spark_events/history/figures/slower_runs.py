"""The runs of batch applications that took much longer than those before them, and what was new in them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import JobStatus
from spark_events.api.toolkit.formatting import cost
from spark_events.history.reading.facts import FAILURE, ISSUE, STATUS, Fact

COLUMNS = {
    "app_name": "STRING",
    "app_id": "STRING",
    "start_ms": "BIGINT",
    "duration_ms": "BIGINT",
    "usual_ms": "BIGINT",
    "p95_ms": "BIGINT",
    "compared": "BIGINT",
    "changed": "STRING",
}
"""Of the table of slower runs, and their types."""
COMPARED = 20
"""With how many earlier runs a run is compared at most."""
_LEAST_COMPARED = 5
_RATIO = 1.5
_LEAST_MORE_MS = 30_000
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


def slower_runs(facts: Iterable[Fact], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """Return a row for each run that took more than 1.5 times the 95th percentile of the runs before it.

    A run is compared with the last ``COMPARED`` before it that finished, of which there have to be five. How
    long a streaming query runs says nothing, so applications with queries are left out.

    Args:
        facts: of the applications of one name.
        since_ms, until_ms: runs that finished before and after are left out, in ms since the epoch.

    Returns:
        ``app_name``, ``app_id``; ``start_ms``: since the epoch; ``duration_ms``; ``usual_ms``, ``p95_ms``:
        the median and the 95th percentile of those before; ``compared``: how many these are; ``changed``:
        what was reported of this run and of none of those, in words, empty if nothing was. By their starts.
    """
    runs: dict[tuple[str | None, str | None], _Run] = {}
    for fact in facts:
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
    rows = []
    for number, run in enumerate(finished):
        earlier = finished[max(0, number - COMPARED) : number]
        if len(earlier) >= _LEAST_COMPARED and since_ms <= (run.end_ms or 0) <= until_ms:
            rows += _if_slower(run, earlier)
    return rows


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


def _if_slower(run: _Run, earlier: Sequence[_Run]) -> list[dict[str, Any]]:
    """Return the row of a run that took much longer than those before it; nothing for another."""
    durations_ms = sorted(each.duration_ms for each in earlier)
    usual_ms = statistics.median(durations_ms)
    p95_ms = durations_ms[math.ceil(0.95 * len(durations_ms)) - 1]
    if run.duration_ms <= _RATIO * p95_ms or run.duration_ms - usual_ms < _LEAST_MORE_MS:
        return []
    return [
        {
            "app_name": run.app_name,
            "app_id": run.app_id,
            "start_ms": run.start_ms,
            "duration_ms": run.duration_ms,
            "usual_ms": int(usual_ms),
            "p95_ms": p95_ms,
            "compared": len(earlier),
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
