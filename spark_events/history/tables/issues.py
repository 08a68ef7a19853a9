"""The table of performance issues: what was slow, why, what it cost, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from spark_events.api.toolkit.formatting import cost
from spark_events.history.figures.application import KnownApplication
from spark_events.history.reading.facts import ISSUE, Fact
from spark_events.history.table import (
    ADVICE,
    BIGINT,
    NEW_LINE,
    PAGE,
    QUERY,
    STRING,
    TERMINAL,
    Column,
    How,
    Part,
    Row,
    Shown,
    Table,
    job_name,
)

_MOST = 10_000


def _rows(known: KnownApplication) -> list[Row]:
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
        for fact in _latest(known)
    ]
    return sorted(rows, key=_cost_of, reverse=True)


def _latest(known: KnownApplication) -> Iterable[Fact]:
    """Return each issue as it was told last: while its cost grows, it is told again with the same id."""
    period = known.period
    issues = (fact for fact in known.facts if fact.fact == ISSUE)
    within = (fact for fact in issues if period.since_ms <= fact.time_ms <= period.until_ms)
    by_time = sorted(within, key=lambda fact: fact.time_ms)
    return {fact.issue_id or fact.event_id: fact for fact in by_time}.values()


def _cost_of(row: Row) -> tuple[int, int, int]:
    """Return by what issues are compared: the time that they cost, the bytes, and which came first."""
    return row["lost_ms"] or 0, row["lost_bytes"] or 0, -row["time_ms"]


def _cost(row: Row) -> list[Part]:
    return [Part(cost(row["lost_ms"], row["lost_bytes"]))]


def _sentence(row: Row) -> str:
    return f"{row['subject'] or ''}: {row['message'] or ''}"


def _all(row: Row) -> list[Part]:
    advice = (NEW_LINE, Part("→", ADVICE), Part(f" {row['advice'] or ''}"))
    return [Part(f"{job_name(row)}: {_sentence(row)}"), *advice]


ISSUES = Table(
    "issues",
    "[performance issue](performance-issues.md)",
    (
        Column("time_ms", BIGINT, "when the issue was reported"),
        *QUERY,
        Column("issue", STRING),
        Column("subject", STRING),
        Column("message", STRING),
        Column("advice", STRING),
        Column("lost_ms", BIGINT),
        Column("lost_bytes", BIGINT),
    ),
    _rows,
    lambda rows: nlargest(_MOST, rows, key=_cost_of),
    most=_MOST,
    cut="of the performance issues, there are the costliest {most:,} alone",
    heading="What made it slow",
    first="the costliest first",
    shown=(
        Shown("issue", "issue"),
        Shown("cost", _cost, left=False),
        Shown("job", job_name, where=PAGE),
        Shown("what", _sentence, where=PAGE, wraps=True),
        Shown("what", _all, where=TERMINAL),
        Shown("what to do", "advice", where=PAGE, wraps=True),
        Shown("reported (UTC)", "time_ms", How.SHORT_MOMENT, PAGE),
    ),
)
