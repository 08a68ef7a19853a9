"""The rule about listeners that handle Spark's events more slowly than these come."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.times.slow_listeners import slow_listeners
from tests.support.plans import S

MINE = "com.shop.Audit"


@pytest.mark.parametrize(
    ("dropped", "waiting", "said"),
    [
        (7_000, 9_000, "the queue shared has dropped 7,000 events"),
        (0, 9_000, "the queue shared has 9,000 events that wait"),
    ],
)
def test_a_listener_that_does_not_keep_up(dropped: int, waiting: int, said: str) -> None:
    """Another queue's events wait less; what it costs is not known, for it works beside the jobs."""
    issue = slow_listeners(
        {"shared": dropped, "streams": 0}, {"shared": waiting, "streams": 3}, {MINE: 55 * S, "b": S}, 60 * S
    )
    assert issue is not None
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("slow-listeners", None, 55 * S)
    assert issue.sentence == f"the listener com.shop.Audit takes 55.0 s to handle Spark's events; {said}"


@pytest.mark.parametrize(("busy_ms", "advice"), [(4 * S, "came in a burst"), (31 * S, "return at once")])
def test_events_that_were_dropped_in_a_burst(busy_ms: int, advice: str) -> None:
    """A listener that mostly waits for events is not too slow for them."""
    issue = slow_listeners({"shared": 9}, {"shared": 0}, {MINE: busy_ms}, 60 * S)
    assert issue is not None
    assert advice in issue.advice


def test_the_listeners_of_another_queue() -> None:
    """Each queue has a thread of its own: what is slow in one drops nothing in another."""
    busy_ms = {MINE: 20 * S, "org.apache.spark.status.AppStatusListener": 50 * S}
    issue = slow_listeners({"shared": 9, "appStatus": 0}, {"shared": 1, "appStatus": 0}, busy_ms, 60 * S)
    assert issue is not None
    assert issue.evidence["listener.class"] == MINE


@pytest.mark.parametrize(
    ("dropped", "waiting", "busy_ms"),
    [
        ({"shared": 0}, {"shared": 2}, {MINE: 55 * S}),
        ({"shared": 0}, {"shared": 900}, {MINE: 20 * S}),
        ({}, {}, {}),
    ],
    ids=["it keeps up", "a burst", "nothing is known"],
)
def test_listeners_that_keep_up(
    dropped: dict[str, int], waiting: dict[str, int], busy_ms: dict[str, int]
) -> None:
    assert slow_listeners(dropped, waiting, busy_ms, 60 * S) is None


@pytest.mark.parametrize(
    ("name", "called", "advice"),
    [
        (
            "org.apache.spark.sql.execution.streaming.StreamingQueryListenerBus",
            "a StreamingQueryListener",
            "return at",
        ),
        ("com.sun.proxy.$Proxy33", "a listener of the program, in Python, takes", "return at once"),
        ("org.apache.spark.scheduler.EventLoggingListener", "the listener org.apache", "faster storage"),
    ],
)
def test_whose_listener_it_is(name: str, called: str, advice: str) -> None:
    issue = slow_listeners({"shared": 1}, {"shared": 1}, {name: 50 * S}, 60 * S)  # of whichever queue
    assert issue is not None
    assert issue.sentence.startswith(called)
    assert advice in issue.advice
