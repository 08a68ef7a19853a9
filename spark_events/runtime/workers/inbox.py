"""What waits in memory for one reporter: any thread adds to it, the reporter's turns take from it.

It is bounded in items and in bytes, and drops the least important items first."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_events.api import Event, Span
from spark_events.api.event import Attributes
from spark_events.api.toolkit.uninterrupted import Uninterrupted
from spark_events.runtime.workers.stats import ReporterStats

_ITEM_BYTES = 600
"""What an item takes beside its texts, roughly."""
_PART_BYTES = 32
"""What each part of an attribute with many takes beside its text, roughly."""
_ROUTINE_SHARE = 0.75
"""Where new items are dropped, routine ones may fill this much: the rest is for what tells of an end."""


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """What a queue may hold.

    Attributes:
        max_items: the most items it may hold.
        max_bytes: the most they may take, as estimated, in bytes.
        drop_oldest: whether a full queue drops its oldest item, or else the new one.
    """

    max_items: int = 10_000
    max_bytes: int = 16 << 20
    drop_oldest: bool = True


class Item(NamedTuple):
    """A call of a reporter's method.

    Attributes:
        method: its name.
        arguments: what it is called with.
        size: their estimated size, in bytes.
        routine: whether losing it matters less than losing others.
    """

    method: str
    arguments: tuple[Any, ...]
    size: int = _ITEM_BYTES
    routine: bool = False


class BoundedQueue:
    """Items in order. Not safe to use from several threads without a lock."""

    def __init__(self, bounds: QueueBounds) -> None:
        self._bounds = bounds
        self._routine: deque[tuple[int, Item]] = deque()
        self._lasting: deque[tuple[int, Item]] = deque()
        self._next = 0
        self._all_bounds = (bounds.max_items, bounds.max_bytes)
        self._routine_bounds = (max(1, bounds.max_items * _ROUTINE_SHARE), bounds.max_bytes * _ROUTINE_SHARE)
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._routine) + len(self._lasting)

    @property
    def crowded(self) -> bool:
        """Whether it is more than half full."""
        return 2 * len(self) > self._bounds.max_items or 2 * self.bytes > self._bounds.max_bytes

    def put(self, item: Item) -> int:
        """Append an item, and return how many items that made it drop, possibly including the new one."""
        bounds, dropped = self._bounds, 0
        if bounds.drop_oldest:
            while not self._fits(item, *self._all_bounds) and len(self):
                # The oldest routine item, or, if there is none, the oldest of all.
                self._pop(self._routine or self._lasting)
                dropped += 1
        elif not self._fits(item, *(self._routine_bounds if item.routine else self._all_bounds)):
            return 1
        (self._routine if item.routine else self._lasting).append((self._next, item))
        self._next += 1
        self.bytes += item.size
        return dropped

    def take(self, most: int) -> list[Item]:
        """Remove and return the first items, in the order in which they came."""
        return [self._pop(self._earlier()) for _ in range(min(most, len(self)))]

    def clear(self) -> int:
        """Remove all items, and return how many there were."""
        count = len(self)
        self._routine.clear()
        self._lasting.clear()
        self.bytes = 0
        return count

    def _fits(self, item: Item, max_items: float, max_bytes: float) -> bool:
        return len(self._routine) + len(self._lasting) < max_items and self.bytes + item.size <= max_bytes

    def _earlier(self) -> deque[tuple[int, Item]]:
        if not self._routine or not self._lasting:
            return self._routine or self._lasting
        return self._routine if self._routine[0][0] < self._lasting[0][0] else self._lasting

    def _pop(self, queue: deque[tuple[int, Item]]) -> Item:
        _, item = queue.popleft()
        self.bytes -= item.size
        return item


def estimate_bytes(item: Event | Span) -> int:
    """Return roughly how much memory an event or a span takes without its variables, in bytes."""
    size = _ITEM_BYTES + len(item.name) + _text_bytes(item.attributes)
    if isinstance(item, Event):
        return size + len(item.body)
    size += len(item.error or "")
    return size + sum(_ITEM_BYTES + len(event.name) + _text_bytes(event.attributes) for event in item.events)


def _text_bytes(attributes: Attributes) -> int:
    texts = sum(_bytes_of(value) for value in attributes.values() if type(value) in (str, tuple))
    return texts + sum(map(len, attributes))


def _bytes_of(value: Any) -> int:
    if type(value) is tuple:
        return sum(_PART_BYTES + _bytes_of(part) for part in value)
    return len(value) if type(value) is str else 0


class Inbox(Uninterrupted[Item]):
    """A bounded queue between threads, on which nobody waits. It counts what it drops.

    Args:
        wake: called when there is something to take, or nothing more to come, after ``take`` had nothing.
    """

    def __init__(
        self, bounds: QueueBounds, stats: ReporterStats, wake: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__()
        self._stats = stats
        self._queue = BoundedQueue(bounds)
        self._wake = wake
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
        self._add(item)

    def _take_in(self, item: Item) -> None:
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
        with self._alone():
            self._closed = True
            self._refusal = "close"
        self._wake()

    def abandon(self) -> int:
        """Count everything here as dropped, because the taking thread has not ended; return how many."""
        with self._alone():
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
        with self._alone():
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
        with self._alone():
            self._refusal = self._refusal or "not_open"
            self._stats.drop("not_open", self._queue.clear())

    def fail(self) -> int:
        """Count all that waits or is in flight as failed, and refuse what comes; return how many items."""
        with self._alone():
            left, self._in_flight = len(self._queue) + self._in_flight, 0
            self._queue.clear()
            self._stats.failed.inc(left)
            self._refusal = self._refusal or "not_open"
            return left

    def give_up(self, in_hand: int) -> int | None:
        """Drop all items that wait or are with the reporter: nothing will get through before shutdown.

        Returns:
            How many items those are; None if ``abandon`` has already counted them.
        """
        with self._alone():
            if self._abandoned:
                return None
            left = in_hand + self._queue.clear()
            self._in_flight = 0
            self._stats.drop("close", left)
            return left
