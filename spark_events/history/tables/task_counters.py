"""The table of what the users' own code has counted in tasks, by counter and labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from spark_events.history.figures.application import KnownApplication
from spark_events.history.reading.facts import COUNTER, Fact
from spark_events.history.table import (
    BIGINT,
    PAGE,
    QUERY,
    STRING,
    WIDE,
    Column,
    How,
    Row,
    Shown,
    Table,
    by_name,
    job_name,
)

_MOST = 10_000


def _rows(known: KnownApplication) -> Iterator[Row]:
    grown: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in known.facts:
        if fact.fact == COUNTER and known.period.since_ms <= fact.time_ms <= known.period.until_ms:
            grown[fact.query_name or "", fact.counter or "", fact.labels or ""].append(fact)
    for (query_name, counter, labels), facts in sorted(grown.items()):
        yield {
            "app_name": known.name,
            "query_name": query_name,
            "counter": counter,
            "labels": labels,
            "count": sum(fact.counted or 0 for fact in facts),
            "last_ms": max(fact.time_ms for fact in facts),
        }


TASK_COUNTERS = Table(
    "task_counters",
    "counter of your own code in tasks, with labels, of a query or application",
    (
        *QUERY,
        Column("counter", STRING),
        Column("labels", STRING, "the labels of the counter: `shop=berlin`; empty if it has none"),
        Column("count", BIGINT, "the sum over all tasks and runs"),
        Column("last_ms", BIGINT, "when the counter was last reported"),
    ),
    _rows,
    lambda rows: sorted(rows, key=by_name)[:_MOST],
    most=_MOST,
    cut="of what tasks counted, there are the first {most:,} counters alone",
    heading="Counted by tasks",
    shown=(
        Shown("application / query", job_name),
        Shown("counter", "counter"),
        Shown("labels", "labels", wraps=True),
        Shown("count", "count", How.AMOUNT),
        Shown("last reported (UTC)", "last_ms", How.MOMENT, PAGE | WIDE),
    ),
)
