"""All segments of one folder: append at the end, read from the cursor, drop what exceeds a bound."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.api.event import now_ms
from spark_events.runtime.journal.cursor import JournalCursor, Position
from spark_events.runtime.journal.folder import Lock
from spark_events.runtime.journal.frame import OVERHEAD, RECORD
from spark_events.runtime.journal.removal import lost_by, make_again
from spark_events.runtime.journal.segment import UNFINISHED, Batch, JournalSegment

_SEGMENT_BYTES = 8 << 20
_LEAST_SEGMENT_BYTES = 4 << 10
Dropped = Callable[[str, int], None]
"""Told the cause and the number of records that are lost."""
Totals = Callable[[int], Mapping[str, int]]
"""Returns what became of records so far, if so many that were dropped while being sent are lost, too."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a journal may hold, and when it is synced to disk.

    Attributes:
        max_bytes: all segments together, in bytes.
        max_age_ms: the age above which records are dropped, in ms; None drops nothing.
        drop_oldest: whether a full journal drops its oldest segment, or else the new records.
        fsync: ``never``, ``interval`` or ``always``.
    """

    max_bytes: int = 256 << 20
    max_age_ms: int | None = None
    drop_oldest: bool = True
    fsync: str = "interval"

    @property
    def segment_bytes(self) -> int:
        """The size of a full segment: an eighth, so that dropping one does not drop everything."""
        return max(_LEAST_SEGMENT_BYTES, min(_SEGMENT_BYTES, self.max_bytes // 8))


@dataclass
class DeliveryJournal:
    """An append-only log with one cursor. Not safe to use from several threads without a lock.

    Records have sequence numbers, from 0 at ``open``, so that a record dropped while it is being sent is
    counted once: as delivered if sending succeeds, as dropped if it does not.

    Args:
        folder: the caller has locked it.
        bounds: what it may hold.
        context: what all appended records have in common.
        dropped: called with the cause and the number of lost records.
        totals: returns what the cursor stores with the position, given how many records were dropped while
            they are being sent; None keeps what it had at ``open``.
        clock: returns the current time in ms since the epoch.
        lock: of the folder; None where nobody else can come.
    """

    folder: Path
    bounds: Bounds
    context: bytes
    dropped: Dropped
    totals: Totals | None = None
    clock: Callable[[], int] = now_ms
    lock: Lock | None = None
    restored: Mapping[str, int] = field(default_factory=dict, init=False)
    """The totals that the cursor had at ``open``."""
    torn: int = field(default=0, init=False)
    """Bytes that were cut off at ``open`` because a crash had left half a record."""
    dirty: bool = field(default=False, init=False)
    """Whether something was appended since the last ``sync``."""

    def __post_init__(self) -> None:
        self._cursor = JournalCursor(self.folder / "cursor")
        self._segments: list[JournalSegment] = []
        self._offset = 0
        self._head = 0
        self._tail = 0
        self._in_flight = 0
        self._number = 0
        self._appendable = False
        self._opened = False

    @property
    def pending(self) -> int:
        """How many records are not acknowledged."""
        return self._tail - self._head

    @property
    def _first(self) -> int:
        """The number of the first record that is still there, or comes next."""
        return self._segments[0].first if self._segments else self._tail

    @property
    def _gone_in_flight(self) -> int:
        """How many records that are being sent were dropped, and are not acknowledged."""
        return max(0, min(self._first, self._in_flight) - self._head)

    @property
    def size_bytes(self) -> int:
        """What all segments hold, in bytes."""
        return sum(segment.end for segment in self._segments)

    def open(self) -> None:
        """Load the existing segments. A damaged record loses only itself, a torn tail nothing.

        Raises:
            OSError: the folder cannot be read, or its cursor cannot be written.
        """
        position = self._cursor.open()
        self.restored = position.totals
        self._number = position.segment
        for unfinished in self.folder.glob(f"*{UNFINISHED}"):  # its driver was killed meanwhile
            unfinished.unlink(missing_ok=True)
        for segment in JournalSegment.existing(self.folder):
            self._number = max(self._number, segment.number)
            if segment.number < position.segment:
                segment.remove()  # acknowledged, and the crash came before it was deleted
                continue
            segment.load(position.offset if segment.number == position.segment else 0)
            segment.first = self._tail
            self._tail += segment.count
            self._segments.append(segment)
            self.torn += segment.torn
            if damaged := segment.damaged + (segment.torn > 0):
                self.dropped("journal_damaged", damaged)
        if self._segments and self._segments[0].number == position.segment:
            self._offset = position.offset
        self._skip_done()
        self._opened = True

    def save_totals(self, totals: Totals) -> None:
        """Store totals with the position, now and whenever it moves.

        Raises:
            OSError: the cursor cannot be written.
        """
        self.totals = totals
        self.save()

    def save(self) -> None:
        """Store the position and the totals.

        Raises:
            OSError: the cursor cannot be written.
        """
        number = self._segments[0].number if self._segments else self._number + 1
        totals = self.restored
        if self.totals is not None and self._opened:
            totals = self.totals(self._gone_in_flight)
        self._cursor.move(Position(number, self._offset, totals))

    def append(self, records: list[bytes]) -> None:
        """Append records in one write; once this returns, they survive a crash of the process.

        They survive a crash of the machine only after ``sync``. Records larger than the whole journal may
        be are dropped.

        Raises:
            OSError: nothing was written, for example because the disk is full.
        """
        size = sum(map(len, records)) + len(records) * OVERHEAD
        if size > self.bounds.max_bytes or not self._make_room(size):
            self.dropped("journal_full", len(records))
            with suppress(OSError):  # if this process is killed, the next one is to know of it
                self.save()
            return
        now = max(0, self.clock())
        self._active(size, now).append(records, now)
        self._tail += len(records)
        self.dirty = True

    def peek(self, max_records: int, max_bytes: int) -> Batch | None:
        """Return the first unacknowledged records, all of one context; None if there are none.

        They stay in flight until ``acknowledge`` and ``release``.
        """
        while self._segments:
            segment = self._segments[0]
            batch = self._read(segment, max_records, max_bytes)
            if batch.records:
                self._in_flight = self._head + len(batch.records)
                return batch
            lost = segment.first + segment.count - self._head
            if lost > 0:  # it was intact when it was counted
                self.dropped("journal_damaged", lost)
                self._head += lost
            if segment is self._segments[-1] and self._appendable:
                self._offset = segment.end
                return None
            self._remove_first()
        return None

    def acknowledge(self, batch: Batch, count: int) -> None:
        """Move the cursor past the first ``count`` records of the batch in flight.

        Raises:
            OSError: the cursor cannot be written; it is moved with the next call.
        """
        self._head = max(self._head, batch.first + count)
        if self._segments and self._segments[0].number == batch.segment:
            self._offset = batch.ends[count - 1]
        self._skip_done()
        self.save()

    def release(self, batch: Batch) -> None:
        """Declare a batch no longer in flight; what is not acknowledged will be read again."""
        self.give_up()

    def give_up(self) -> None:
        """Count what was dropped while it was being sent, and of which nobody says whether it arrived."""
        if lost := self._gone_in_flight:  # dropped, and not delivered after all
            self.dropped("journal_full", lost)
        self._head = max(self._head, self._first)
        self._in_flight = 0

    def sync(self) -> None:
        """Flush what was appended to disk.

        Raises:
            OSError: it cannot be flushed.
        """
        if self._segments:
            self._segments[-1].sync()
        self.dirty = False

    def abandon(self) -> None:
        """Close the files of a journal that could not be opened, and leave them as they are."""
        for segment in self._segments:
            segment.close()
        self._cursor.close()

    def close(self) -> None:
        """Close all files; those with nothing left to deliver are deleted."""
        try:
            if self.pending:
                self._make_again_or_count()
            self.save()
            if self.bounds.fsync != "never":
                self.sync()
                self._cursor.sync()
            if not self.pending:
                for segment in self._segments:
                    segment.remove()
        finally:
            for segment in self._segments:
                segment.close()
            self._segments = []
            self._cursor.close()

    # ----------------------------------------------------------------------------------------------------

    def _read(self, segment: JournalSegment, max_records: int, max_bytes: int) -> Batch:
        batch = Batch(self._head, segment.context, segment=segment.number)
        size, max_age_ms = 0, self.bounds.max_age_ms
        oldest_ms = 0 if max_age_ms is None else self.clock() - max_age_ms
        for frame in segment.frames(self._offset):
            if frame.kind != RECORD:
                continue
            if frame.time_ms < oldest_ms and not batch.records:
                self.dropped("journal_age", 1)
                self._head += 1
                self._offset = frame.end
                batch.first = self._head
                continue
            size += len(frame.payload)
            if batch.records and (len(batch.records) >= max_records or size > max_bytes):
                break
            batch.time_ms = batch.time_ms or frame.time_ms
            batch.records.append(frame.payload)
            batch.ends.append(frame.end)
        return batch

    def _active(self, size: int, now: int) -> JournalSegment:
        """Return the segment to append to; a driver never appends to another driver's."""
        fits = self._appendable and self._segments[-1].end + size <= self.bounds.segment_bytes
        fits = fits and not self._segments[-1].is_changed
        if not fits or self._segments[-1].removed:
            self._make_again()
        if fits:
            return self._segments[-1]
        if self._appendable and self.bounds.fsync != "never":
            self._segments[-1].sync()
        segment = JournalSegment.create(self.folder, self._number + 1, self.context, now)
        self._number += 1
        segment.first = self._tail
        self._segments.append(segment)
        self._appendable = True
        if self.bounds.fsync != "never":
            self._sync_folder()
        self._skip_done()
        return segment

    def _make_again_or_count(self) -> None:
        try:
            self._make_again()
        except OSError as error:
            if lost := lost_by(error, self._segments, self._head):
                self.dropped("journal_damaged", lost)
                self._tail -= lost

    def _make_again(self) -> None:
        """Make again what somebody has removed."""
        if make_again(self.lock, self._cursor, self._segments):
            self.save()
            self.dirty = True

    def _sync_folder(self) -> None:
        """Sync the folder, so that the name of a new file is on disk, too."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _make_room(self, size: int) -> bool:
        """Return whether records of this size may be appended; drop the oldest if that is the policy."""
        while self._segments and self.size_bytes + size > self.bounds.max_bytes:
            first = self._segments[0]
            if not self.bounds.drop_oldest and self._head < first.first + first.count:
                return False
            self._drop_first(first)
        return True

    def _drop_first(self, segment: JournalSegment) -> None:
        behind = segment.first + segment.count
        lost = behind - max(self._head, self._in_flight, segment.first)
        if lost > 0:
            self.dropped("journal_full", lost)
        # Records in flight are counted once their outcome is known.
        if self._in_flight <= self._head:
            self._head = max(self._head, behind)
        self._remove_first()

    def _skip_done(self) -> None:
        """Delete the segments at the front that are fully acknowledged."""
        while len(self._segments) > 1 or (self._segments and not self._appendable):
            first = self._segments[0]
            if self._head < first.first + first.count:
                return
            self._remove_first()

    def _remove_first(self) -> None:
        if len(self._segments) == 1:
            self._appendable = False
        removed = self._segments.pop(0)
        self._offset = 0
        try:
            # The cursor first: a crash between the two does not cause the file to be sent again.
            self.save()
            if self.bounds.fsync != "never":
                self._cursor.sync()
        finally:
            removed.remove()
