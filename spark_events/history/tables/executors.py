"""The table of the executors that ended: how long they lived, why they ended, and how full they were."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest

from spark_events.history.figures.application import KnownApplication
from spark_events.history.reading.facts import EXECUTOR
from spark_events.history.table import (
    BAD,
    BIGINT,
    BOOLEAN,
    PAGE,
    STRING,
    Column,
    How,
    Part,
    Row,
    Shown,
    Table,
    latest_first,
)

_MOST = 10_000


def _rows(known: KnownApplication) -> Iterator[Row]:
    since_ms, until_ms, _ = known.period
    ended = [
        fact for fact in known.facts if fact.executor_id is not None and since_ms <= fact.time_ms <= until_ms
    ]
    for fact in sorted(ended, key=lambda fact: (fact.time_ms, fact.event_id)):
        yield {
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


def _by_end(rows: list[Row]) -> list[Row]:
    return nlargest(_MOST, rows, key=lambda row: row["end_ms"])[::-1]


def _lived_ms(row: Row) -> int | None:
    return None if row["start_ms"] is None else row["end_ms"] - row["start_ms"]


def _filled(row: Row) -> float | None:
    if not row["heap_limit"] or row["heap_highest"] is None:
        return None
    return float(100 * row["heap_highest"] / row["heap_limit"])


EXECUTORS = Table(
    "executors",
    "executor that ended",
    (
        Column("app_name", STRING),
        Column("executor_id", STRING),
        Column("host", STRING),
        Column("start_ms", BIGINT, "null if not known"),
        Column("end_ms", BIGINT),
        Column("reason", STRING, "why it ended, in one word, such as `out_of_memory`"),
        Column(
            "expected",
            BOOLEAN,
            "true for executors removed on purpose (idle, decommissioned, preempted) and for those that "
            "lived until their application ended; the others are also in `failures`",
        ),
        Column("heap_highest", BIGINT, "the most heap that it used, in bytes; null if not known"),
        Column("heap_limit", BIGINT, "the size of its heap, in bytes; null if not known"),
    ),
    _rows,
    _by_end,
    most=_MOST,
    cut="of the executors that ended, there are the last {most:,} alone",
    heading="Executors that ended",
    on_page=latest_first,
    shown=(
        Shown("application", "app_name", where=PAGE),
        Shown("executor", "executor_id", where=PAGE),
        Shown("host", "host", where=PAGE),
        Shown("from (UTC)", "start_ms", How.SHORT_MOMENT, PAGE),
        Shown("to (UTC)", "end_ms", How.SHORT_MOMENT, PAGE),
        Shown("lived", _lived_ms, How.DURATION, PAGE),
        Shown("reason", lambda row: (Part(row["reason"] or "", "" if row["expected"] else BAD),), where=PAGE),
        Shown("highest heap", "heap_highest", How.SIZE, PAGE),
        Shown("limit", "heap_limit", How.SIZE, PAGE),
        Shown("filled", _filled, How.PERCENT, PAGE),
    ),
)
