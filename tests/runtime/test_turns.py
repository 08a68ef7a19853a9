"""Work in turns on threads that many share: its order, its pauses, and what hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from spark_events.runtime.workers.turns import FOREVER, OWN_THREADS, OwnThread, Runner, SharedThreads
from tests.support.waiting import wait_until


def test_each_has_its_turns_in_order_on_a_few_threads() -> None:
    threads, done = SharedThreads("shared"), dict[int, list[int]]()

    def work(number: int) -> Iterator[float]:
        for turn in range(20):
            done.setdefault(number, []).append(turn)
            yield 0.0 if turn % 2 else 0.001

    runners = [threads.launch(str(number), work(number)) for number in range(100)]
    for runner in runners:
        runner.start()
    assert all(runner.join(60) for runner in runners)
    assert done == {number: list(range(20)) for number in range(100)}
    assert threads.threads <= 12


def test_what_hangs_does_not_hold_up_the_others() -> None:
    """Even if there are more of them than threads that usually take turns."""
    threads, release = SharedThreads("shared"), threading.Event()

    def hang() -> Iterator[float]:
        release.wait()
        yield 0.0

    def work() -> Iterator[float]:
        yield 0.0

    hanging = [threads.launch("hang", hang()) for _ in range(6)]
    for runner in hanging:
        runner.start()
    runner = threads.launch("work", work())
    runner.start()
    assert runner.join(60)
    release.set()
    assert all(each.join(60) for each in hanging)


def test_a_thread_that_hangs_may_be_woken_any_number_of_times() -> None:
    """As by each batch for a collector that does not answer: nothing piles up, and all of it is one turn."""
    release, turns = threading.Event(), list[int]()

    def work() -> Iterator[float]:
        for turn in range(2):
            turns.append(turn)
            release.wait()
            yield FOREVER

    runner = OwnThread("hangs", work())
    runner.start()
    wait_until(lambda: turns, "the first turn")
    for _ in range(10_000):
        runner.wake()
    assert runner._woken.qsize() == 1
    release.set()
    wait_until(lambda: turns == [0, 1], "the second turn")
    runner.wake()
    assert runner.join(60)


def test_it_is_woken_once_it_waits_and_while_it_runs() -> None:
    threads, turns = SharedThreads("shared"), list[int]()

    def work() -> Iterator[float]:
        for turn in range(3):
            turns.append(turn)
            if turn == 1:
                runner.wake()  # as another thread would
            yield FOREVER

    runner: Runner = threads.launch("work", work())
    runner.start()
    wait_until(lambda: turns == [0], "it waits")
    runner.wake()
    wait_until(lambda: turns == [0, 1, 2], "it was woken, and woken while it ran")
    assert not runner.ended
    runner.wake()
    assert runner.join(60)


def test_an_exit_in_a_turn_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Python would end the thread without a word."""

    def exits() -> Iterator[float]:
        yield 0.0
        raise SystemExit(3)

    runner = OWN_THREADS.reporter("exits", exits())
    runner.start()
    assert runner.join(10)
    assert "exits failed unexpectedly, and is over" in caplog.text
