"""Heartbeats: who lives, and what runs in it."""

from __future__ import annotations

from spark_events.api import Event
from spark_events.listeners.spark_records import HEARTBEAT, UPTIME
from spark_events.sources.heartbeats import Heartbeats
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen


def beat(ms: int) -> dict[str, object]:
    return {"Event": HEARTBEAT, "Timestamp": T0 + ms, UPTIME: ms}


def test_a_heartbeat_says_what_runs() -> None:
    """Jobs, queries, and the last checkpoint of each, at that moment."""
    feed = Feed()(r.application_start(), beat(0), r.query_started(1), r.job_start(2))
    feed(beat(1_000), r.job_end(1_500), r.progress(2_000, 7), beat(3_000))
    first, second, third = seen(feed.end(), "HeartbeatEvent")

    assert [e.attributes["sequence"] for e in (first, second, third)] == [0, 1, 2]
    assert [e.attributes["uptimeMs"] for e in (first, second, third)] == [0, 1_000, 3_000]
    assert [e.attributes["runningJobs"] for e in (first, second, third)] == [0, 1, 0]
    assert not {"runningQueries", "lastCheckpointIds", "lastCheckpointTimestamps"} & first.attributes.keys()
    assert second.attributes["runningQueries"] == third.attributes["runningQueries"] == ("orders",)
    assert second.attributes["lastCheckpointIds"] == (-1,)
    assert third.attributes["lastCheckpointIds"] == (7,)
    assert third.attributes["lastCheckpointTimestamps"] == (checkpoint(feed.end()).time_ms,)
    assert third.attributes["intervalMs"] == 60_000
    assert len({e.id for e in (first, second, third)}) == 3


def checkpoint(events: list[Event]) -> Event:
    (event,) = seen(events, "CheckpointEvent")
    return event


def test_nobody_but_a_live_source_makes_them() -> None:
    """A replay has none, however much time passes in it."""
    feed = Feed()(
        r.application_start(), r.query_started(1), r.progress(3_600_000, 1), r.application_end(7_200_000)
    )

    assert seen(feed.end(), "HeartbeatEvent") == []


def test_when_they_are_due() -> None:
    """The first at once, the next after the interval; with 0, none."""
    beats = Heartbeats(60_000)
    assert beats.record(5) == {"Event": HEARTBEAT, "Timestamp": 5, UPTIME: 0}
    assert beats.record(60_004) is None
    assert beats.record(60_005) is not None
    assert beats.record(60_006) is None
    assert Heartbeats(0).record(5) is None


def test_they_go_on_when_the_clock_is_set_back() -> None:
    """Not only when it is as late again as it was; they would be missed for so long."""
    clock = iter((100.0, 160.0, 220.0))
    beats = Heartbeats(60_000, lambda: next(clock))
    assert beats.record(3_600_000) is not None
    assert beats.record(1_000) == {"Event": HEARTBEAT, "Timestamp": 1_000, UPTIME: 60_000}
    assert beats.record(60_999) is None
    assert beats.record(61_000) is not None
