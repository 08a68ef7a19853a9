"""The sums of the checkpoints of a query on a day."""

from __future__ import annotations

from typing import NamedTuple

SUMS = {
    "day": "BIGINT",
    "app_name": "STRING",
    "query_name": "STRING",
    "app_id": "STRING",
    "attempt": "STRING",
    "completed": "BIGINT",
    "failed": "BIGINT",
    "late_by_duration": "BIGINT",
    "late_by_gap": "BIGINT",
    "late": "BIGINT",
    "worst_duration_ms": "BIGINT",
    "worst_gap_ms": "BIGINT",
    "duration_sum_ms": "BIGINT",
    "first_ms": "BIGINT",
    "first_owed_ms": "BIGINT",
    "first_duration_ms": "BIGINT",
    "last_ms": "BIGINT",
    "heard_ms": "BIGINT",
    "sla_ms": "BIGINT",
}
"""The sums of the checkpoints of a query on a day within one application, and their types."""


class DaySums(NamedTuple):
    """``SUMS``, and whether they count.

    Attributes:
        day: in UTC, in days since the epoch.
        app_id, attempt: of the application; empty where its events said none, the latter None in sums that
            are older than it.
        completed, failed, late_by_duration, late_by_gap, late: counts; the last is late by either.
        worst_duration_ms, worst_gap_ms, duration_sum_ms: of the completed ones; None where there are none.
        first_ms, first_owed_ms, first_duration_ms: of the first one that was completed.
        last_ms: when the last was completed.
        heard_ms: when the last of all was.
        sla_ms: the limit that they were compared with; None in sums that are older than it.
        counted: whether they are within the period of the history.
        overdue: whether they stand for a checkpoint that is overdue at the end.
        stopped_late: how many were owed for longer than the SLA when the query was stopped, and never came.
    """

    day: int
    app_name: str
    query_name: str
    app_id: str
    attempt: str | None = ""
    completed: int = 0
    failed: int = 0
    late_by_duration: int = 0
    late_by_gap: int = 0
    late: int = 0
    worst_duration_ms: int | None = None
    worst_gap_ms: int | None = None
    duration_sum_ms: int | None = None
    first_ms: int | None = None
    first_owed_ms: int | None = None
    first_duration_ms: int | None = None
    last_ms: int | None = None
    heard_ms: int = 0
    sla_ms: int | None = None
    counted: bool = True
    overdue: bool = False
    stopped_late: int = 0
