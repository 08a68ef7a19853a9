"""What the users' own code has counted in tasks, by counter and labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spark_events.history.reading.facts import COUNTER, Fact

COLUMNS = {
    "app_name": "STRING",
    "query_name": "STRING",
    "counter": "STRING",
    "labels": "STRING",
    "count": "BIGINT",
    "last_ms": "BIGINT",
}
"""Of the table of counters, and their types."""


def task_counters(facts: Iterable[Fact], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """Return a row for each counter of a query, or of an application outside its queries.

    Args:
        facts: of the applications of one name.
        since_ms, until_ms: what was reported before and after is left out, in ms since the epoch.

    Returns:
        ``app_name``; ``query_name``: empty outside queries; ``counter``; ``labels``: ``shop=berlin``, empty
        if it has none; ``count``: the sum over all tasks and runs; ``last_ms``: when it was reported last.
    """
    grown: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.fact == COUNTER and since_ms <= fact.time_ms <= until_ms:
            key = (fact.app_name, fact.query_name or "", fact.counter or "", fact.labels or "")
            grown[key].append(fact)
    return [
        dict(
            zip(
                COLUMNS,
                (*key, sum(fact.counted or 0 for fact in each), max(fact.time_ms for fact in each)),
                strict=True,
            )
        )
        for key, each in sorted(grown.items())
    ]
