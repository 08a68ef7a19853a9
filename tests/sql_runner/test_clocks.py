"""Machines whose clocks are an hour off: they reckon with the time of the store, which stamps the files."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from spark_events.api import ConfigError
from spark_events.api.event import now_ms
from spark_events.sql_runner.host.progress import SeenProgress
from spark_events.sql_runner.store.clock import Elapsed, StoreClock
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import Store

HOUR_MS = 3_600_000
FOLDER = "locks/x"
OFF = pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS], ids=["ahead", "behind"])


def on_machine(store: Store, ahead_ms: int) -> Store:
    """Return the same store, as a process sees it on a machine whose clock is off."""
    other = Store(store.url)
    other.clock = StoreClock(lambda: now_ms() + ahead_ms)
    return other


def elsewhere(store: Store) -> None:
    """Let the lease be that of another machine, so that nobody can tell whether its process has ended."""
    (name,) = store.names(FOLDER)
    values = json.loads(store.read(f"{FOLDER}/{name}") or b"")
    values["owner"]["host"] = "another"
    store.write(f"{FOLDER}/{name}", json.dumps(values).encode())


@OFF
def test_a_lease_is_held_whatever_the_clock_of_who_looks(store: Store, ahead_ms: int) -> None:
    Lease(store, FOLDER, "it", 30_000).take()
    elsewhere(store)

    with pytest.raises(ConfigError, match=r"has held the lease for 0 s; last seen 0 s ago"):
        Lease(on_machine(store, ahead_ms), FOLDER, "it", 30_000).take()


@OFF
def test_a_lease_is_held_whatever_the_clock_of_its_holder(store: Store, ahead_ms: int) -> None:
    lease = Lease(on_machine(store, ahead_ms), FOLDER, "it", 30_000)
    lease.take()
    elsewhere(store)
    with pytest.raises(ConfigError, match=r"last seen 0 s ago"):
        Lease(store, FOLDER, "it", 30_000).take()
    lease.renew()

    holder = Lease(store, FOLDER, "it", 30_000).holder()
    assert holder is not None
    assert abs(holder.beat_ms - now_ms()) < 5_000


@OFF
def test_the_lease_of_a_killed_holder_is_over_whatever_its_clock(store: Store, ahead_ms: int) -> None:
    Lease(on_machine(store, ahead_ms), FOLDER, "it", 0).take()
    elsewhere(store)
    later = Store(store.url)
    later.clock = StoreClock(lambda: now_ms() + 5)

    Lease(later, FOLDER, "it", 0).take()


@OFF
def test_a_clock_that_is_set_while_a_lease_is_held_shows_nothing_wrong(store: Store, ahead_ms: int) -> None:
    machine = on_machine(store, 0)
    lease = Lease(machine, FOLDER, "it", 30_000)
    lease.take()
    for now_ahead_ms in (ahead_ms, 0):
        machine.clock.own = lambda off=now_ahead_ms: now_ms() + off  # type: ignore[misc]
        assert abs(machine.clock.now_ms() - now_ms()) < 5_000, "before anything is compared again"
        assert abs(machine.clock.ahead_ms - now_ahead_ms) < 5_000
        lease.renew()

        holder = Lease(store, FOLDER, "it", 30_000).holder()
        assert holder is not None
        assert abs(holder.beat_ms - now_ms()) < 5_000


@OFF
def test_the_difference_is_said_once(store: Store, ahead_ms: int, caplog: pytest.LogCaptureFixture) -> None:
    machine = on_machine(store, ahead_ms)
    machine.set_clock()
    machine.set_clock()

    (said,) = [record.getMessage() for record in caplog.records]
    where = "1 h ahead of" if ahead_ms > 0 else "1 h behind"
    assert said == f"this machine's clock is {where} the store's; the SQL runner reckons with the store's"
    assert abs(machine.clock.now_ms() - now_ms()) < 5_000
    assert store.sizes("locks") == {}


def test_a_clock_within_seconds_of_the_store_is_used_as_it_is() -> None:
    clock = StoreClock(lambda: 100_000)

    clock.compare(100_000, 98_000, 100_000)

    assert clock.ahead_ms == 0
    assert clock.now_ms() >= 100_000


@pytest.mark.parametrize("set_by_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_back_does_not_keep_a_sign_of_life_from_being_given(set_by_ms: int) -> None:
    now = [HOUR_MS]
    elapsed = Elapsed(lambda: now[0])
    assert elapsed.ms < 5_000
    now[0] += set_by_ms

    assert elapsed.ms >= HOUR_MS
    elapsed.begin()
    assert elapsed.ms < 5_000


def trigger(at_ms: int) -> dict[str, Any]:
    """Return the progress of a trigger that begins at a time of its machine; its watermark is a minute older."""
    return {"timestamp": utc(at_ms), "eventTime": {"watermark": utc(at_ms - 60_000)}}


def utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


@OFF
def test_the_time_of_a_trigger_is_the_store_s(ahead_ms: int) -> None:
    clock = StoreClock(lambda: now_ms() + ahead_ms)
    at_ms = now_ms()
    clock.compare(at_ms + ahead_ms, at_ms, at_ms + ahead_ms)
    seen = SeenProgress(clock)

    found = seen.new(trigger(now_ms() + ahead_ms))

    assert abs(found["progress_ms"] - now_ms()) < 5_000
    assert abs(found["watermark_lag_ms"] - 60_000 + ahead_ms) < 5_000, "event times are nobody's clock"


@OFF
def test_a_clock_that_is_set_after_a_trigger_does_not_move_it_far(ahead_ms: int) -> None:
    """By the clock as it is set at the look, the trigger would have begun an hour earlier, or later."""
    clock = StoreClock(now_ms)
    at_ms = now_ms()
    clock.compare(at_ms, at_ms, at_ms)
    seen = SeenProgress(clock)
    first = seen.new(trigger(now_ms()))
    later = trigger(now_ms() + 10)
    clock.own = lambda: now_ms() + ahead_ms

    assert 0 <= seen.new(later)["progress_ms"] - first["progress_ms"] < 5_000
    assert seen.new(later) == {}, "it is told once"
