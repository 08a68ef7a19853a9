"""The place of records until their destination acknowledges them: the journal, or else memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from spark_events.api.event import now_ms
from spark_events.runtime.journal import Batch, DeliveryJournal, Dropped

_SYNC_S = 1.0
_DISK_AGAIN_S, _OPEN_AGAIN_S = 1.0, 30.0
"""After so long a disk is tried again that took nothing; and journals that do not open, in the end."""
_TAKES_NOTHING = "cannot write to the journal, so records wait in memory"
_NO_CURSOR = "cannot write the cursor, so the last records will be sent, or counted, again"
Warn = Callable[[str], None]


class MemoryRecords:
    """Records in memory, bounded in bytes. Not safe to use from several threads without a lock.

    Args:
        max_bytes: the most they may take in total, in bytes.
        drop_oldest: whether the oldest records are dropped when they take more, or else the new ones.
        dropped: called with the cause and the number of lost records.
    """

    def __init__(self, max_bytes: int, drop_oldest: bool, dropped: Dropped) -> None:
        self._max_bytes = max_bytes
        self._drop_oldest = drop_oldest
        self._dropped = dropped
        self._records: deque[bytes] = deque()
        self._first = 0
        self._in_flight = 0
        self._head = 0
        self.bytes = 0

    @property
    def pending(self) -> int:
        """How many records are not acknowledged."""
        return self._first + len(self._records) - self._head

    @property
    def crowded(self) -> bool:
        """Whether they have more than half of the bytes that they may have."""
        return 2 * self.bytes > self._max_bytes

    @property
    def in_flight(self) -> bool:
        """Whether some are being sent."""
        return self._in_flight > 0

    def put(self, record: bytes) -> None:
        """Append one record."""
        while self._records and self.bytes + len(record) > self._max_bytes:
            if not self._drop_oldest:
                self._dropped("queue_full", 1)
                return
            # Records in flight are counted once their outcome is known.
            if self._first >= self._in_flight:
                self._dropped("queue_full", 1)
            if self._head >= self._in_flight:
                self._head = self._first + 1
            self._forget_first()
        self._records.append(record)
        self.bytes += len(record)

    def peek(self, max_records: int, max_bytes: int, context: bytes) -> Batch | None:
        """Return the first records; they stay in flight until ``acknowledge`` and ``release``."""
        batch, size = Batch(self._first, context), 0
        for record in self._records:
            size += len(record)
            if batch.records and (len(batch.records) >= max_records or size > max_bytes):
                break
            batch.records.append(record)
        self._head = self._first
        self._in_flight = self._first + len(batch.records)
        return batch if batch.records else None

    def acknowledge(self, batch: Batch, count: int) -> None:
        """Forget the first records of the batch in flight."""
        self._head = max(self._head, batch.first + count)
        while self._records and self._first < self._head:
            self._forget_first()

    def release(self, batch: Batch) -> None:
        """Declare a batch no longer in flight; what is not acknowledged will be read again."""
        lost = min(self._first, batch.first + len(batch.records)) - self._head
        if lost > 0:  # dropped while in flight, and not delivered after all
            self._dropped("queue_full", lost)
        self._head = self._first
        self._in_flight = 0

    def all(self) -> list[bytes]:
        """Return all records."""
        return list(self._records)

    def forget(self, count: int) -> None:
        """Forget the first records: they are in the journal now."""
        for _ in range(count):
            self._forget_first()
        self._head = self._first

    def _forget_first(self) -> None:
        self.bytes -= len(self._records.popleft())
        self._first += 1


class Spool:
    """The outbox of one reporter, from the turns that fill it to the turns that send. Nobody waits on it.

    Records go to the journal. While its disk refuses writes, they wait in memory, queued after those in the
    journal, and move there once the disk accepts writes again. Without a journal they always wait in memory.

    Args:
        open_journals: returns those that ended drivers left behind, oldest first, then the driver's own, all
            of them open; none where they cannot be opened yet. None if there is to be no journal.
        memory: holds records that no journal takes.
        context: what all records put here have in common.
        warn: called with a sentence about the disk.

    Attributes:
        wake: called when there may be something to send, or nothing more to come.
        ended: whether nothing more will come.
    """

    def __init__(
        self,
        open_journals: Callable[[], list[DeliveryJournal]] | None,
        memory: MemoryRecords,
        context: bytes,
        warn: Warn,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.ended = False
        self._journals: list[DeliveryJournal] = []
        self._own: DeliveryJournal | None = None
        self._open_journals = open_journals
        self._memory = memory
        self._context = context
        self._warn = warn
        self._new: list[bytes] = []
        self._lock = threading.RLock()
        self._in_flight: DeliveryJournal | MemoryRecords | None = None
        self._disk_again = 0.0
        self._pause_s = _DISK_AGAIN_S
        self._closed = False
        self._synced = 0.0
        self._troubles: dict[str, str] = {}
        self._waiting_since: int | None = None
        self._open()

    # -- the turns that fill -----------------------------------------------------------------------------

    def put(self, record: bytes) -> None:
        """Take one record; ``commit`` stores it.

        Raises:
            TypeError: it is not of bytes.
        """
        if not isinstance(record, bytes):
            raise TypeError(f"a record is of bytes, and not of type {type(record).__name__}")
        self._new.append(record)

    def commit(self) -> None:
        """Store what was put since the last commit, on disk if possible, else in memory. Never raises."""
        new, self._new = self._new, []
        with self._lock:
            self._try_disk_again()
            stored = 0 if self._own is None or self._memory.pending else self._append(new)
            for record in new[stored:]:
                self._memory.put(record)
            self._sync_in_time()
        self.wake()

    def keep(self) -> None:
        """Do periodic work: sync what is not synced yet, and retry a disk that refused writes."""
        with self._lock:
            self._try_disk_again()
            self._sync_in_time()

    # -- the turns that send -----------------------------------------------------------------------------

    def next_batch(self, max_records: int, max_bytes: int) -> Batch | None:
        """Return the next batch, which is in flight until ``release``; None if there is none yet."""
        with self._lock:
            batch = self._peek(max_records, max_bytes)
            if batch is not None:
                self._waiting_since = batch.time_ms or self._waiting_since or now_ms()
            return batch

    def acknowledge(self, batch: Batch, count: int) -> None:
        """Acknowledge the first ``count`` records of the batch, which were delivered or given up for good."""
        with self._lock:
            self._waiting_since = None
            try:
                if self._in_flight is not None and count:
                    self._in_flight.acknowledge(batch, count)
            except OSError as error:
                self._warn_once(_NO_CURSOR, error)

    def release(self, batch: Batch) -> None:
        """Declare a batch no longer in flight."""
        with self._lock:
            if self._in_flight is not None:
                self._in_flight.release(batch)
            self._in_flight = None

    # -- both --------------------------------------------------------------------------------------------

    @property
    def durable(self) -> bool:
        """Whether what is put here survives the end of the process."""
        return self._own is not None and not self._memory.pending

    @property
    def pending(self) -> int:
        """How many records are not acknowledged."""
        return sum(journal.pending for journal in list(self._journals)) + self._memory.pending

    @property
    def oldest_age_ms(self) -> int:
        """How long the oldest unacknowledged record has waited, in ms; 0 if there is none."""
        since = self._waiting_since
        return 0 if since is None or not self.pending else max(0, now_ms() - since)

    @property
    def in_memory(self) -> int:
        """How many records would be lost if the process died now."""
        return self._memory.pending

    @property
    def crowded(self) -> bool:
        """Whether waiting records take more than half of their bound, in memory or on disk."""
        own = self._own
        on_disk = own is not None and own.pending > 0 and 2 * own.size_bytes > own.bounds.max_bytes
        return on_disk or self._memory.crowded

    @property
    def restless(self) -> bool:
        """Whether ``keep`` should be called again soon: the disk does not have everything yet."""
        own = self._own
        is_dirty = own is not None and own.dirty and own.bounds.fsync != "never"
        return is_dirty or (self._open_journals is not None and (own is None or self._memory.pending > 0))

    @property
    def journal_bytes(self) -> int:
        """What the journals hold, in bytes."""
        return sum(journal.size_bytes for journal in list(self._journals))

    def end(self) -> None:
        """Let sending end once nothing is left."""
        self.ended = True
        self.wake()

    def save(self) -> None:
        """Store the totals in the journal's cursor, if there is one."""
        with self._lock:
            try:
                if self._own is not None and not self._closed:
                    self._own.save()
            except OSError as error:
                self._warn_once(_NO_CURSOR, error)

    def close(self) -> None:
        """Close the journals; unacknowledged records stay in them."""
        with self._lock:
            self._closed = True
            self._disk_again = 0.0
            self._try_disk_again()
            for journal in self._journals:
                journal.give_up()
                self._close(journal)

    # ----------------------------------------------------------------------------------------------------

    def _peek(self, max_records: int, max_bytes: int) -> Batch | None:
        while self._journals:
            journal = self._journals[0]
            try:
                batch = journal.peek(max_records, max_bytes)
            except OSError as error:
                self._warn_once("cannot read the journal", error)
                batch = None
            if batch is not None:
                self._in_flight = journal
                return batch
            if journal is self._own:
                break
            del self._journals[0]
            self._close(journal)
        batch = self._memory.peek(max_records, max_bytes, self._context)
        self._in_flight = self._memory if batch is not None else None
        return batch

    def _close(self, journal: DeliveryJournal) -> None:
        try:
            journal.close()
        except OSError as error:
            self._warn_once("cannot close the journal", error)

    def _append(self, records: list[bytes]) -> int:
        """Append records to the journal, and return how many it took."""
        assert self._own is not None
        stored = 0
        try:
            for chunk in _chunks(records, self._own.bounds.segment_bytes):
                self._own.append(chunk)
                stored += len(chunk)
        except OSError as error:
            self._disk_again = time.monotonic() + _DISK_AGAIN_S
            self._warn_once(_TAKES_NOTHING, error)
        else:
            if records and self._troubles.pop(_TAKES_NOTHING, ""):
                self._warn("the journal accepts records again")
        return stored

    def _try_disk_again(self) -> None:
        """Move the records in memory to the journal, unless some of them are being sent right now."""
        if self._memory.in_flight or time.monotonic() < self._disk_again:
            return
        if (self._own is not None or self._open()) and self._memory.pending:
            self._memory.forget(self._append(self._memory.all()))

    def _open(self) -> bool:
        """Open the journals, and return whether they are."""
        if self._open_journals is None:
            return False
        self._journals = self._open_journals()
        self._own = self._journals[-1] if self._journals else None
        if self._own is None:
            self._disk_again = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _OPEN_AGAIN_S)
        return self._own is not None

    def _sync_in_time(self) -> None:
        own, now = self._own, time.monotonic()
        if own is None or not own.dirty or own.bounds.fsync == "never":
            return
        if own.bounds.fsync == "interval" and now < self._synced + _SYNC_S:
            return
        self._synced = now
        try:
            own.sync()
        except OSError as error:
            self._warn_once("cannot sync the journal to disk", error)

    def _warn_once(self, trouble: str, error: OSError) -> None:
        """Log trouble with the disk, once for as long as its cause stays the same."""
        reason = error.strerror or str(error)
        if self._troubles.get(trouble) != reason:
            self._troubles[trouble] = reason
            self._warn(f"{trouble}: {reason} ({error.filename or 'journal.dir'})")


def _chunks(records: list[bytes], size: int) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    total = 0
    for record in records:
        if chunk and total + len(record) > size:
            yield chunk
            chunk, total = [], 0
        chunk.append(record)
        total += len(record)
    if chunk:
        yield chunk
