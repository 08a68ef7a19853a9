"""The executors that ended: how long they lived, why they ended, and how full they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_events.history.reading.facts import EXECUTOR, Fact

COLUMNS = {
    "app_name": "STRING",
    "executor_id": "STRING",
    "host": "STRING",
    "start_ms": "BIGINT",
    "end_ms": "BIGINT",
    "reason": "STRING",
    "expected": "BOOLEAN",
    "heap_highest": "BIGINT",
    "heap_limit": "BIGINT",
}
"""Of the table of executors, and their types."""


def ended_executors(facts: Iterable[Fact], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """Return a row for each executor that ended, in the order of their ends.

    Args:
        facts: of the applications of one name.
        since_ms, until_ms: those that ended before and after are left out, in ms since the epoch.

    Returns:
        ``app_name``, ``executor_id``, ``host``; ``start_ms``, ``end_ms``: since the epoch, the first of them
        None where it is not known; ``reason``: in one word; ``expected``: whether somebody wanted it gone;
        ``heap_highest``, ``heap_limit``: in bytes, None where not known.
    """
    ended = [fact for fact in facts if fact.executor_id is not None and since_ms <= fact.time_ms <= until_ms]
    return [
        {
            "app_name": fact.app_name,
            "executor_id": fact.executor_id,
            "host": fact.host,
            "start_ms": None if fact.lifetime_ms is None else fact.time_ms - fact.lifetime_ms,
            "end_ms": fact.time_ms,
            "reason": fact.error_class,
            "expected": fact.fact == EXECUTOR,
            "heap_highest": fact.heap_highest,
            "heap_limit": fact.heap_limit,
        }
        for fact in sorted(ended, key=lambda fact: (fact.time_ms, fact.event_id))
    ]
