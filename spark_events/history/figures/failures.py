"""The failures of applications, queries, jobs and executors, counted by day and error.

A run that was lost is a failure as well, of which there is no event. The failure of an application or a query
is mostly that of one of its jobs: that of the job is left out then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import moment, size
from spark_events.history.figures.heard import ApplicationRun, application_run
from spark_events.history.figures.job_runs import LOST
from spark_events.history.reading.facts import FAILURE, Fact
from spark_events.history.reading.plausible import iso_day

COLUMNS = {
    "date": "DATE",
    "kind": "STRING",
    "app_name": "STRING",
    "query_name": "STRING",
    "error": "STRING",
    "labels": "STRING",
    "count": "BIGINT",
    "first_ms": "BIGINT",
    "last_ms": "BIGINT",
    "message": "STRING",
}
"""Of the table of failures, and their types."""


OWNERS = ("application", "query")
_SAME_WITHIN_MS = 5_000
"""How long after that of its job an application's or a query's failure is the same one."""
_COMPARED_CHARACTERS = 300
_PLACE = re.compile(r" \((?:[^()]|\([^()]*\))*:\d*, in .*\)$")
"""As ``facts`` puts it behind a message; a path may have brackets of its own."""


class LostRun(NamedTuple):
    """A run that was lost.

    Attributes:
        kind: ``application`` or ``query``.
        app_name, query_name: of it; the latter is empty for an application.
        application: the run of the application.
        time_ms: when it was last heard of, in ms since the epoch.
        alone: whether its application went on.
    """

    kind: str
    app_name: str
    query_name: str
    application: ApplicationRun
    time_ms: int
    alone: bool = False


def failures(
    facts: Sequence[Fact], lost: Iterable[LostRun], since_ms: int, until_ms: int
) -> list[dict[str, Any]]:
    """Return a row for each day, job that failed, error and set of labels.

    Args:
        facts: of an application.
        lost: its runs, and those of its queries, that were lost.
        since_ms, until_ms: failures before and after are left out, in ms since the epoch.

    Returns:
        ``date``: in UTC; ``kind``: ``application``, ``query``, ``job``, ``stage`` or ``executor``;
        ``app_name``; ``query_name``: empty if it neither was nor belonged to a query; ``error``: Spark's
        error condition, the exception's class where there is none, ``LOST`` of a run that was lost;
        ``labels``: of the failure enrichers, ``team=x, type=USER``; ``count``; ``first_ms``, ``last_ms``:
        since the epoch; ``message``: of the last.
    """
    alike: dict[tuple[str, ...], list[tuple[int, str, str | None]]] = defaultdict(list)
    failed = [fact for fact in facts if fact.fact == FAILURE]
    told_again = _told_by_owners(failed)
    for fact in failed:
        if since_ms <= fact.time_ms <= until_ms and fact.event_id not in told_again:
            error = fact.error_class or fact.exception_type or ""
            day = iso_day(fact.time_ms)
            key = (day, fact.kind or "", fact.app_name, fact.query_name or "", error, fact.labels or "")
            alike[key].append((fact.time_ms, fact.event_id, _message(fact)))
    for run in _once(lost):
        if since_ms <= run.time_ms <= until_ms:
            key = (iso_day(run.time_ms), run.kind, run.app_name, run.query_name, LOST, "")
            alike[key].append((run.time_ms, "", _message_of_lost(run)))
    rows = []
    for values, of_key in alike.items():
        # Within one ms, order by id, so that the last one does not depend on the reading order.
        last_ms, _, message = max(of_key, key=lambda failure: failure[:2])
        counted = (len(of_key), min(time_ms for time_ms, *_ in of_key), last_ms, message)
        rows.append(dict(zip(COLUMNS, (*values, *counted), strict=True)))
    return rows


def _told_by_owners(failed: Sequence[Fact]) -> set[str]:
    """Return the ids of the failures of jobs and stages that those of their owners tell again.

    Of each owner's failure, that is the last before it of a job, and the last of a stage.
    """
    of_jobs: dict[tuple[ApplicationRun, str], list[Fact]] = defaultdict(list)
    for fact in failed:
        if fact.kind in ("job", "stage"):
            of_jobs[application_run(fact.app_id, fact.attempt), _first_line(fact)].append(fact)
    told_again: set[str] = set()
    for owner in failed:
        if owner.kind in OWNERS:
            alike = of_jobs.get((application_run(owner.app_id, owner.attempt), _first_line(owner)), ())
            causes = [fact for fact in alike if _is_cause(fact, owner)]
            latest = {fact.kind: fact for fact in sorted(causes, key=lambda f: (f.time_ms, f.event_id))}
            told_again.update(fact.event_id for fact in latest.values())
    return told_again


def _is_cause(fact: Fact, owner: Fact) -> bool:
    """Whether a job's failure, of the same message, is that of its application or query."""
    if owner.kind == "query" and fact.query_name != owner.query_name:
        return False
    # Python's own exceptions have no error class where the application sees them, Spark's no type in the job.
    types = [(failure.exception_type or "").rsplit(".", 1)[-1] for failure in (fact, owner)]
    same = (fact.error_class and fact.error_class == owner.error_class) or (types[0] and types[0] == types[1])
    return bool(same) and 0 <= owner.time_ms - fact.time_ms <= _SAME_WITHIN_MS


def _first_line(fact: Fact) -> str:
    """Return the first line of a message, without the place in the code."""
    line = (fact.message or "").split("\n", 1)[0]
    return _PLACE.sub("", line)[:_COMPARED_CHARACTERS]


def _once(lost: Iterable[LostRun]) -> list[LostRun]:
    """Leave out the queries of applications that were lost themselves."""
    runs = list(lost)
    applications = {run.application for run in runs if run.kind == "application"}
    return [
        run._replace(alone=run.kind == "query")
        for run in runs
        if run.kind == "application" or run.application not in applications
    ]


def _message_of_lost(run: LostRun) -> str:
    at = f"{moment(run.time_ms)} UTC, without an end"
    return f"gone by {at}" if run.alone else f"not heard of since {at}: killed, or its machine is gone"


def _message(fact: Fact) -> str | None:
    """Return the message of a failure; that of an executor says which one, and how full its heap was."""
    if fact.executor_id is None:
        return fact.message
    parts = [f"executor {fact.executor_id} on {fact.host}", fact.message]
    if fact.heap_highest is not None and fact.heap_limit is not None:
        parts.append(f"heap {size(fact.heap_highest)} of {size(fact.heap_limit)}")
    return "; ".join(filter(None, parts))
