"""Data that stops coming, and comes again: records in, events out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen

BOOM = "org.apache.spark.SparkRuntimeException: boom\n\tat a.B.c(B.scala:1)"
NO_ROWS = {"sources": [{"numInputRows": 0}]}
STARTED = [r.query_started(0), r.progress(100, 0)]
Told = list[tuple[str | None, int, dict[str, Any]]]


def told(
    records: Iterable[dict[str, Any]], until_ms: int | None = None, step_ms: int = 0, **conf: str
) -> Told:
    """Return the events' ids, times and attributes.

    Args:
        records: of the query.
        until_ms: until when the clock goes on after the last record.
        step_ms: how often the clock ticks; 0 for only then.
        conf: more keys.
    """
    feed = Feed(**(conf or {"source__idle_timeout": "1min"}))(r.application_start())
    at = 0
    for record in records:
        time_ms = feed(record).listeners.clock_ms - T0
        for tick in range(at, time_ms, step_ms) if step_ms else ():
            feed.tick(tick)
        at = time_ms
    if until_ms is not None:
        feed.tick(until_ms)
    return [
        (event.id, (event.time_ms or 0) - T0, dict(event.attributes))
        for event in seen(feed.end(), "SourceIdleEvent")
    ]


def test_idle_and_active() -> None:
    """Once for each gap, at the time at which the limit was reached, and once when rows come again."""
    gap = [*STARTED, *(r.idle(ms) for ms in range(10_000, 100_000, 10_000))]
    again = [r.batch_begins(100_300, 1), r.progress(100_200, 1, took=800), r.progress(102_000, 2)]
    idle, active = told([*gap, *again])

    assert idle[1:] == (
        60_200,
        {
            "sourceStatus": "IDLE",
            "idleMs": 60_000,
            "limitMs": 60_000,
            "lastInputMs": T0 + 200,
            "lastCheckpointId": 0,
            "job_kind": "query",
        },
    )
    assert active[1:] == (101_000, {**idle[2], "sourceStatus": "ACTIVE", "idleMs": 100_000})
    assert told([*gap, *again], step_ms=500) == [idle, active]
    assert told(gap, until_ms=61_200) == [idle]


def test_a_clock_that_is_set_back() -> None:
    """That nothing comes is told after the usual time, and not an hour later."""
    hour = 3_600_000
    feed = Feed(source__idle_timeout="1min")(
        r.application_start(), r.query_started(hour), r.progress(hour + 100, 0)
    )
    for ms in (5_000, 64_999, 66_001, 80_000):
        feed.tick(ms)
    (event,) = seen(feed.end(), "SourceIdleEvent")

    assert (event.time_ms or 0) - T0 == 65_000
    assert event.attributes["idleMs"] == 60_000


def test_the_clock_waits_for_late_records() -> None:
    """It says nothing before a second after the limit."""
    assert told(STARTED, until_ms=61_200) == []
    assert len(told(STARTED, until_ms=61_201)) == 1


def test_off_by_default_and_for_one_query() -> None:
    """It may be set for one query."""
    for conf, count in (({"checkpoint__sla": "1h"}, 0), ({"source__query_idle_timeout__orders": "1min"}, 1)):
        assert len(told(STARTED, 100_000, **conf)) == count
    assert told(STARTED, 100_000, source__idle_timeout="1min", source__query_idle_timeout__orders="1h") == []


def test_batches_without_rows() -> None:
    """A batch that only moves the watermark reads nothing; while a batch runs, it may have rows."""
    without = [*STARTED, r.batch_begins(50_000, 1), r.progress(50_000, 1, **NO_ROWS)]
    assert [time_ms for _, time_ms, _ in told(without, until_ms=61_201)] == [60_200]

    running = [*STARTED, r.batch_begins(50_000, 1)]
    assert told(running, until_ms=1_000_000) == []
    assert told([*running, r.progress(50_000, 1, took=900_000)]) == []
    assert [time_ms for _, time_ms, _ in told([*running, r.progress(50_000, 1, took=90_000, **NO_ROWS)])] == [
        60_200
    ]


def test_no_rows_since_the_start() -> None:
    """There is no last input then."""
    ((_, time_ms, attributes),) = told([r.query_started(0), r.idle(1_000)], until_ms=70_000)
    assert time_ms == 60_000
    assert "lastInputMs" not in attributes
    assert "lastCheckpointId" not in attributes


@pytest.mark.parametrize("exception", [BOOM, None])
def test_down_is_not_idle(exception: str | None) -> None:
    """Nobody reads, so nobody knows; a restart begins anew, but does not end a gap that was told."""
    ended = r.terminated(exception=exception)
    restarted = r.query_started(200_000, run="run-2")
    assert told([*STARTED, ended], until_ms=1_000_000) == []
    assert [time_ms for _, time_ms, _ in told([*STARTED, ended, restarted], until_ms=270_000)] == [260_000]

    gap = [*STARTED, r.idle(70_000), ended, restarted, r.idle(300_000, run="run-2")]
    idle, active = told([*gap, r.progress(400_000, 1, run="run-2")])
    assert (idle[1], active[1], active[2]["idleMs"]) == (60_200, 400_100, 399_800)


def test_last_input_as_a_metric() -> None:
    """When the last batch that read rows completed."""
    feed = Feed()(r.application_start(), *STARTED, r.progress(5_000, 1, **NO_ROWS))
    assert feed.gauge("app.query.orders.lastInputTimestamp") == T0 + 200
