"""What waits in memory for one reporter: any thread adds to it, the reporter's turns take from it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from spark_events.runtime.bounded_queue import BoundedQueue, Item, QueueBounds
from spark_events.runtime.stats import ReporterStats


class Inbox:
    """A bounded queue between threads, on which nobody waits. It counts what it drops.

    Args:
        wake: called when there is something to take, or nothing more to come, after ``take`` had nothing.
    """

    def __init__(
        self, bounds: QueueBounds, stats: ReporterStats, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._stats = stats
        self._queue = BoundedQueue(bounds)
        self._wake = wake
        self._lock = threading.Lock()
        self._taker_waits = False
        self._in_flight = 0
        self._refusal = ""
        self._closed = False
        self._abandoned = False
        self._process = os.getpid()

    @property
    def pending(self) -> int:
        """How many items wait or are in flight."""
        return len(self._queue) + self._in_flight

    @property
    def bytes(self) -> int:
        """Roughly how much memory the waiting items take, in bytes."""
        return self._queue.bytes

    @property
    def crowded(self) -> bool:
        """Whether it is more than half full."""
        return self._queue.crowded

    # -- any thread ----------------------------------------------------------------------------------

    def put(self, item: Item) -> None:
        """Add an item; a full queue drops the oldest or the new one, as configured, a closed one the new."""
        if os.getpid() != self._process:
            return  # a forked child has no thread that takes, and nothing to report
        with self._lock:
            if self._refusal:
                self._stats.drop(self._refusal)
                return
            if dropped := self._queue.put(item):
                self._stats.drop("queue_full", dropped)
            if self._taker_waits:
                self._taker_waits = False
                self._wake()

    def close(self) -> None:
        """Refuse new items from now on; those that wait can still be taken."""
        with self._lock:
            self._closed = True
            self._refusal = "close"
        self._wake()

    def abandon(self) -> int:
        """Count everything here as dropped, because the taking thread has not ended; return how many."""
        with self._lock:
            self._abandoned = True
            left = self.pending
            self._stats.drop("close", left)
            return left

    # -- the reporter's turns ------------------------------------------------------------------------

    def take(self, most: int) -> list[Item] | None:
        """Remove and return the first items, at most so many, which are in flight until ``finish_batch``.

        Returns:
            The items; an empty list if the inbox is closed and empty; None if there are none yet.
        """
        with self._lock:
            if not self._queue and not self._closed:
                self._taker_waits = True
                return None
            batch = self._queue.take(most)
            self._in_flight = len(batch)
            return batch

    def finish_batch(self) -> None:
        """Declare the taken items no longer in flight: they are delivered, or counted by their outcome."""
        self._in_flight = 0

    def refuse(self) -> None:
        """Drop all waiting and future items: the reporter could not be opened."""
        with self._lock:
            self._refusal = self._refusal or "not_open"
            self._stats.drop("not_open", self._queue.clear())

    def give_up(self, in_hand: int) -> int | None:
        """Drop all items that wait or are with the reporter: nothing will get through before shutdown.

        Returns:
            How many items those are; None if ``abandon`` has already counted them.
        """
        with self._lock:
            if self._abandoned:
                return None
            left = in_hand + self._queue.clear()
            self._in_flight = 0
            self._stats.drop("close", left)
            return left
