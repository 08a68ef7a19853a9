"""What an application's own code reports while it already reports something: from a signal handler, say."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from spark_events.api import ApplicationInfo, Counter, Event, Histogram, Meter, metrics, wrong_values
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.registry import Registry
from spark_events.runtime.workers.inbox import Inbox, Item, QueueBounds
from spark_events.runtime.workers.stats import ReporterStats
from spark_events.runtime.workers.turns import OwnThread
from spark_events.sources.attaching.own_signals import OwnSignals
from tests.support.interrupted import interrupted_everywhere


def test_an_item_that_interrupts_another_is_taken_once() -> None:
    runner = OwnThread("never started", iter(()))
    stats = ReporterStats()
    inbox = Inbox(QueueBounds(max_items=1_000_000), stats, runner.wake)
    assert inbox.take(1) is None

    def put() -> None:
        inbox.put(Item("call", ()))

    calls = 1 + sum(2 for _ in interrupted_everywhere(put, put))  # the last one is not interrupted
    assert calls > 20
    assert inbox.pending == calls
    assert sum(len(inbox.take(1_000) or ()) for _ in range(calls)) == calls
    assert inbox.bytes == 0
    assert stats.dropped == 0


def test_an_item_that_comes_while_others_are_taken_wakes_their_taker() -> None:
    woken: list[int] = []
    inbox = Inbox(QueueBounds(), ReporterStats(), lambda: woken.append(1))
    taken: list[list[Item] | None] = []
    for _ in interrupted_everywhere(
        lambda: taken.append(inbox.take(10)), lambda: inbox.put(Item("call", ()))
    ):
        assert taken.pop() or woken
        assert inbox.pending == 1
        inbox.take(10)
        inbox.finish_batch()
        woken.clear()


@pytest.mark.parametrize(
    ("make", "call", "read"),
    [
        (Counter, "inc", lambda metric: metric.count),
        (Meter, "mark", lambda metric: metric.count),
        (lambda: Histogram((1.0,)), "update", lambda metric: metric.snapshot().count),
        (
            lambda: Histogram((1.0,)),
            "update",
            lambda metric: sum(metric.snapshot().exponential.positive.values()),
        ),
    ],
)
def test_a_metric_counts_what_interrupts_it(
    make: Callable[[], Any], call: str, read: Callable[[Any], int]
) -> None:
    metric = make()
    add = partial(getattr(metric, call), 1)
    times = 1 + sum(2 for _ in interrupted_everywhere(add, add))
    assert times > 5
    assert read(metric) == times


def test_own_metrics_and_events() -> None:
    """Each metric is registered once, whatever it interrupts; and no event is lost."""
    taken: list[Event] = []
    own = OwnSignals(Registry((), tap=taken.append), ApplicationInfo("shop", "app-1"), ListenerSettings())
    numbers = iter(range(10**9))

    def report() -> None:
        number = next(numbers) // 2
        own.counter("orders", {"shop": number}).inc()
        own.event("Ordered", "an order", "info", {})

    calls = 1 + sum(2 for _ in interrupted_everywhere(report, report))
    counters = [metric for metric in own._made.values() if isinstance(metric, Counter)]
    assert sum(counter.count for counter in counters) == calls == len(taken)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("made", ["counter", "own counter", "histogram", "meter", "wrong value"])
def test_a_forked_child_does_not_wait_for_a_thread_that_it_lacks(made: str) -> None:
    own = OwnSignals(Registry(()), ApplicationInfo("shop", "app-1"), ListenerSettings())
    counter, histogram, meter = Counter(), Histogram((1.0,)), Meter()
    calls: dict[str, tuple[Any, Callable[[], object]]] = {
        "counter": (metrics._counting, counter.inc),
        "own counter": (own._lock, lambda: own.counter("orders", {}).inc()),
        "histogram": (histogram._alone(), partial(histogram.update, 2.0)),
        "meter": (meter._alone(), meter.mark),
        "wrong value": (wrong_values._lock, lambda: counter.inc(-1)),
    }
    held_by_thread, call = calls[made]
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        with held_by_thread:
            held.set()
            released.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        call()
        taken = {"histogram": histogram.snapshot().count, "meter": meter.count, "counter": counter.count}
        os._exit(taken.get(made, 1) != 1)
    status: list[int] = []
    waiter = threading.Thread(target=lambda: status.append(os.waitpid(child, 0)[1]), daemon=True)
    waiter.start()
    waiter.join(30)
    released.set()
    thread.join()
    if not status:
        os.kill(child, 9)
    assert status == [0]
