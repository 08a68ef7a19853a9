"""Calls functions at their times, all on one thread."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class CallsLater:
    """Calls functions later, one after the other, on a thread that ends with the last of them.

    The process does not wait for it.

    Args:
        name: that of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()  # of two with one time, the first one is called first
        self._thread: threading.Thread | None = None

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Call a function, which must not raise, in so many seconds."""
        with self._changed:
            heapq.heappush(self._waiting, (time.monotonic() + delay_s, next(self._numbers), call))
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], object] | None:
        """Return the next function once its time has come; None if there is none, and the thread ends."""
        with self._changed:
            while self._waiting:
                wait_s = self._waiting[0][0] - time.monotonic()
                if wait_s <= 0:
                    return heapq.heappop(self._waiting)[2]
                self._changed.wait(wait_s)
            self._thread = None
            return None
