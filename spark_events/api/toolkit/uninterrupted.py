"""Additions from any thread, one at a time, by calls that may interrupt each other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
_forks = 0
"""How often this process, or one that it was forked from, has become another one."""


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Uninterrupted(Generic[T]):
    """Takes what any thread adds, one at a time, and never waits for itself.

    A signal handler, or a destructor that the garbage collector calls, may add something while its own thread
    is in the middle of adding: with a lock alone, that thread would wait for itself forever. What comes so
    is taken once the addition that it has interrupted is done. Nor does a forked child wait for a thread that
    was adding something at the fork, and that the child does not have.
    """

    def __init__(self) -> None:
        self._arrived: list[T] = []
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._forks = _forks

    def _take_in(self, item: T) -> None:
        """Take one item; called with the lock, and never within itself."""
        raise NotImplementedError

    def _add(self, item: T) -> None:
        """Take an item, now or as soon as what it has interrupted is done."""
        if self._forks != _forks:
            self._begin_anew()
        self._arrived.append(item)
        self._take_in_all()

    def _take_in_all(self) -> None:
        # It is looked at again without the lock: something may come between the last look and the end.
        while self._arrived:
            with self._lock:
                if self._busy:
                    return
                try:
                    self._busy = True
                    while self._arrived:
                        self._take_in(self._arrived.pop(0))
                finally:
                    self._busy = False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let nothing be taken within this block; what comes meanwhile is taken after it."""
        if self._forks != _forks:
            self._begin_anew()
        with self._lock:
            outer = self._busy
            try:
                self._busy = True
                yield
            finally:
                self._busy = outer
        if not outer:
            self._take_in_all()
