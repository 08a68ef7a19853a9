"""Readers of pages that wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from spark_events.history.page.turns import BusyError, Turns
from tests.support.waiting import wait_until


class Readers:
    """Readers on threads of their own, of which one makes something until it is let go."""

    def __init__(self, turns: Turns, pool: ThreadPoolExecutor) -> None:
        self.turns = turns
        self._pool = pool
        self._go = threading.Event()
        self._began = threading.Event()
        self.first = pool.submit(self._make, "first")
        assert self._began.wait(10)

    def _make(self, what: str) -> str:
        with self.turns.taken(what, lambda: True):
            self._began.set()
            assert self._go.wait(10)
        return what

    def ask(self, what: str, is_wanted: Callable[[], bool] = lambda: True) -> Future[str]:
        """Let one more reader wait."""

        def wait() -> str:
            with self.turns.taken(what, is_wanted):
                return what

        before = self.turns._wanted.total()
        asked = self._pool.submit(wait)
        wait_until(lambda: asked.done() or self.turns._wanted.total() > before, "it waits")
        return asked

    def go(self) -> None:
        """Let the first end."""
        self._go.set()


@pytest.fixture
def readers() -> Iterator[Readers]:
    with ThreadPoolExecutor(20) as pool:
        made = Readers(Turns(3), pool)
        yield made
        made.go()


def test_only_so_many_things_are_waited_for(readers: Readers) -> None:
    """Whoever wants one of these waits, however many do; others are told to come again."""
    asked = [readers.ask(what) for what in ("first", "second", "third", "second", "third", "second")]
    with pytest.raises(BusyError, match="3 other pages are being made; ask again"):
        readers.ask("fourth").result(10)
    readers.go()
    assert [each.result(10) for each in asked] == ["first", "second", "third", "second", "third", "second"]
    assert readers.ask("fourth").result(10) == "fourth"


def test_nothing_is_made_for_readers_who_have_left(readers: Readers) -> None:
    left = readers.ask("second", lambda: False)
    stays = readers.ask("second")
    readers.go()
    with pytest.raises(BusyError):
        left.result(10)
    assert stays.result(10) == "second"


def test_nothing_begins_at_the_end(readers: Readers) -> None:
    asked = readers.ask("second")
    assert not readers.turns.close(0.01)
    readers.go()
    with pytest.raises(BusyError):
        asked.result(10)
    assert readers.turns.close(10)
