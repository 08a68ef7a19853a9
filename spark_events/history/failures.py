"""The failures of applications, queries, jobs and executors, counted by day and error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spark_events.api.formatting import size
from spark_events.history.facts import FAILURE, Fact
from spark_events.history.plausible import iso_day

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


def failures(facts: Iterable[Fact], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """Return a row for each day, job that failed, error and set of labels.

    Args:
        facts: of an application.
        since_ms, until_ms: failures before and after are left out, in ms since the epoch.

    Returns:
        ``date``: in UTC; ``kind``: ``application``, ``query``, ``job``, ``stage`` or ``executor``;
        ``app_name``; ``query_name``: empty if it neither was nor belonged to a query; ``error``: Spark's
        error condition, the exception's class where there is none; ``labels``: of the failure enrichers,
        ``team=x, type=USER``; ``count``; ``first_ms``, ``last_ms``: since the epoch; ``message``: of the
        last.
    """
    alike: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.fact == FAILURE and since_ms <= fact.time_ms <= until_ms:
            error = fact.error_class or fact.exception_type or ""
            day = iso_day(fact.time_ms)
            key = (day, fact.kind or "", fact.app_name, fact.query_name or "", error, fact.labels or "")
            alike[key].append(fact)
    rows = []
    for values, failed in alike.items():
        # Within one ms, order by id, so that the last one does not depend on the reading order.
        last = max(failed, key=lambda fact: (fact.time_ms, fact.event_id))
        first_ms = min(fact.time_ms for fact in failed)
        counted = (len(failed), first_ms, last.time_ms, _message(last))
        rows.append(dict(zip(COLUMNS, (*values, *counted), strict=True)))
    return rows


def _message(fact: Fact) -> str | None:
    """Return the message of a failure; that of an executor says which one, and how full its heap was."""
    if fact.executor_id is None:
        return fact.message
    parts = [f"executor {fact.executor_id} on {fact.host}", fact.message]
    if fact.heap_highest is not None and fact.heap_limit is not None:
        parts.append(f"heap {size(fact.heap_highest)} of {size(fact.heap_limit)}")
    return "; ".join(filter(None, parts))
