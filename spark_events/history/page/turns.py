"""Pages are made one at a time; this says who waits for that, and who is sent away."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from spark_events.api import SparkEventsError


class BusyError(SparkEventsError):
    """A page cannot be made now."""


class Turns:
    """Lets one thread at a time make something, while only so many other things are waited for.

    Args:
        most: how many different things may be waited for at once; any number of threads waits for each.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._wanted: Counter[Hashable] = Counter()
        self._closed = False

    @contextmanager
    def taken(self, what: Hashable, is_wanted: Callable[[], bool]) -> Iterator[None]:
        """Wait for this thread's turn, which lasts as long as the block.

        Args:
            what: is to be made.
            is_wanted: asked after waiting; returns whether somebody still is.

        Raises:
            BusyError: too much is waited for already; nobody wants this any more; or all of it ends.
        """
        with self._lock:
            if what not in self._wanted and len(self._wanted) >= self._most:
                raise BusyError(f"{self._most} other pages are being made; ask again in a few seconds")
            self._wanted[what] += 1
        try:
            has_waited = not self._turn.acquire(blocking=False)
            if has_waited:
                self._turn.acquire()
            try:
                if self._closed or (has_waited and not is_wanted()):
                    raise BusyError("the page is no longer wanted")
                yield
            finally:
                self._turn.release()
        finally:
            with self._lock:
                self._wanted[what] -= 1
                if not self._wanted[what]:
                    del self._wanted[what]

    def close(self, within_s: float) -> bool:
        """Let nothing begin any more; return whether what is being made has ended within some time, in s."""
        self._closed = True
        return self._turn.acquire(timeout=within_s)
