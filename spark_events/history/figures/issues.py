"""The performance issues that were reported: what was slow, why, what it cost, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_events.history.reading.facts import ISSUE, Fact

COLUMNS = {
    "time_ms": "BIGINT",
    "app_name": "STRING",
    "query_name": "STRING",
    "issue": "STRING",
    "subject": "STRING",
    "message": "STRING",
    "advice": "STRING",
    "lost_ms": "BIGINT",
    "lost_bytes": "BIGINT",
}
"""Of the table of issues, and their types."""


def issues(facts: Iterable[Fact], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """Return a row for each issue, those that cost most time first, then those that cost most bytes.

    Args:
        facts: of the applications of one name.
        since_ms, until_ms: those that were reported before and after are left out, in ms since the epoch.
    """
    rows = [
        {
            "time_ms": fact.time_ms,
            "app_name": fact.app_name,
            "query_name": fact.query_name or "",
            "issue": fact.issue,
            "subject": fact.subject,
            "message": fact.message,
            "advice": fact.advice,
            "lost_ms": fact.lost_ms,
            "lost_bytes": fact.lost_bytes,
        }
        for fact in facts
        if fact.fact == ISSUE and since_ms <= fact.time_ms <= until_ms
    ]
    return sorted(rows, key=cost_of, reverse=True)


def cost_of(issue: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return by what issues are compared: the time that they cost, the bytes, and which came first."""
    return issue["lost_ms"] or 0, issue["lost_bytes"] or 0, -issue["time_ms"]
