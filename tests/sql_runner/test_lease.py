"""A lease: one holder at a time, who keeps it as long as it is heard of."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.store.lease import Lease, LeaseLost
from spark_events.sql_runner.store.store import Store, StoreError


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["local", "S3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "S3":
        request.getfixturevalue("s3")
        return Store(f"s3a://queries/{uuid.uuid4().hex}")
    return Store(str(tmp_path / "store"))


def lease(store: Store, clock: Clock) -> Lease:
    return Lease(store, "locks/deploy", "another deployment", 10_000, clock)


def test_the_second_is_told_who_has_it(store: Store, clock: Clock) -> None:
    one, other = lease(store, clock), lease(store, clock)
    one.take()
    clock.now += 3_000

    with pytest.raises(
        ConfigError, match=r"another deployment: .*@.*, process \d+ has held the lease for 3 s"
    ):
        other.take()
    one.release()
    other.take()


def test_of_many_at_once_one_gets_it(store: Store, clock: Clock) -> None:
    barrier = threading.Barrier(6)

    def take(_: int) -> bool:
        mine = lease(store, clock)
        barrier.wait()
        try:
            mine.take()
        except ConfigError:
            return False
        return True

    for _ in range(3):
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(take, range(6))).count(True) == 1
        clock.now += 10_001  # the winner is gone


def test_one_that_is_silent_loses_it_and_learns_so(store: Store, clock: Clock) -> None:
    slow, next_one = lease(store, clock), lease(store, clock)
    slow.take()
    clock.now += 9_000
    slow.renew()
    clock.now += 9_000
    with pytest.raises(ConfigError):
        next_one.take()
    clock.now += 1_001
    next_one.take()

    with pytest.raises(LeaseLost):
        slow.renew()
    with pytest.raises(LeaseLost):
        slow.check()
    slow.release()
    assert next_one.holder() is not None
    next_one.check()


def test_the_files_of_old_holders_go(store: Store, clock: Clock) -> None:
    for _ in range(3):
        mine = lease(store, clock)
        mine.take()
        mine.release()

    assert store.names("locks/deploy") == ["000000003.json"]


def test_it_is_renewed_as_long_as_it_is_held(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    mine = Lease(store, "x", "x", 300)
    with mine.held():
        before = mine.holder()
        assert before is not None
        while (now := mine.holder()) is not None and now.beat_ms == before.beat_ms:
            pass
        assert now is not None
    assert mine.holder() is None


def test_a_holder_that_was_killed_is_not_waited_for(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from spark_events.sql_runner.store.lease import Lease\n"
        "from spark_events.sql_runner.store.store import Store\n"
        "Lease(Store(sys.argv[1]), 'x', 'x', 600_000).take()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL

    Lease(Store(str(tmp_path)), "x", "x", 600_000).take()


def test_a_file_that_is_empty_is_named(tmp_path: Path) -> None:
    """As a crash of the machine may leave it."""
    store = Store(str(tmp_path))
    store.create("x/000000001.json", b"")
    with pytest.raises(StoreError, match=r"x/000000001\.json: a lease is not what .* remove this file"):
        Lease(store, "x", "x", 300).take()
