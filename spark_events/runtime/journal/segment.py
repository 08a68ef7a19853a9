"""One file of records; only the driver that created it appends to it."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.api import append_whole
from spark_events.runtime.journal import frame
from spark_events.runtime.journal.frame import CONTEXT, RECORD, Frame

_NAME = re.compile(r"(\d{12})-([0-9a-f]{8})\.journal")
_WINDOW = 1 << 20
UNFINISHED = ".again"
"""What the name of a file ends with that a segment is written to again, until it is whole."""


@dataclass(slots=True)
class Batch:
    """Records in order, all of one context.

    Attributes:
        first: the sequence number of the first.
        context: what they have in common.
        time_ms: when the first was stored, in ms since the epoch; 0 if unknown.
        segment: the number of the segment that they are in; 0 in memory.
        records: what is sent.
        ends: the offset just after each of them in the segment; empty in memory.
    """

    first: int
    context: bytes
    time_ms: int = 0
    segment: int = 0
    records: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class JournalSegment:
    """One file ``<number>-<salt>.journal``: the context that its records have in common, then the records.

    Attributes:
        end: the offset just after the last whole frame.
        first: the sequence number of the first record that the cursor has not passed.
        count: how many intact records there are from ``first`` on.
        torn: bytes of an incomplete frame at the end, as a crash leaves them, that were cut off.
        damaged: places after the cursor that hold no intact frame.
    """

    def __init__(self, path: Path, number: int, salt: int, context: bytes = b"") -> None:
        self.path = path
        self.number = number
        self.context = context
        self.end = 0
        self.first = 0
        self.count = 0
        self.torn = 0
        self.damaged = 0
        self._salt = salt
        self._fd = -1
        self._window = b""
        self._window_start = 0

    @classmethod
    def create(cls, folder: Path, number: int, context: bytes, time_ms: int) -> JournalSegment:
        """Begin a file.

        Raises:
            OSError: it cannot be written; no part of it remains.
        """
        salt = secrets.randbits(32)
        path = folder / f"{number:012d}-{salt:08x}.journal"
        segment = cls(path, number, salt, context)
        segment._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            segment._write(frame.encode(CONTEXT, salt, time_ms, context))
        except OSError:
            segment.remove()
            raise
        return segment

    @classmethod
    def existing(cls, folder: Path) -> list[JournalSegment]:
        """Return the files of a folder in order, not yet loaded."""
        segments = [
            cls(path, int(match[1]), int(match[2], 16))
            for path in folder.iterdir()
            if (match := _NAME.fullmatch(path.name))
        ]
        return sorted(segments, key=lambda segment: (segment.number, segment.path.name))

    def load(self, offset: int) -> None:
        """Read it through: find its context, count the records from an offset on, cut off a torn tail.

        Raises:
            OSError: it cannot be read.
        """
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        size = self.end = os.fstat(self._fd).st_size
        behind = 0
        for whole in self.frames(0):
            self.damaged += whole.start > max(behind, offset)
            behind = whole.end
            if whole.kind == CONTEXT:
                self.context = whole.payload
            elif whole.start >= offset:
                self.count += 1
        self.torn = size - behind
        self.end = behind
        if self.torn:
            os.ftruncate(self._fd, behind)

    def append(self, records: list[bytes], time_ms: int) -> None:
        """Append records in one write.

        Raises:
            OSError: the disk is full, say; no part of them remains in the file.
        """
        encode, salt = frame.encode, self._salt
        self._write(b"".join([encode(RECORD, salt, time_ms, record) for record in records]))
        self.count += len(records)

    def frames(self, offset: int) -> Iterator[Frame]:
        """Yield the intact frames from an offset on."""
        while offset < self.end:
            self._read(offset, 1)
            start = offset - self._window_start
            # Usually nothing is damaged, and all frames in the window are read in one go.
            for whole in frame.intact(self._window, start, self._window_start, self._salt):
                yield whole
                offset = whole.end
            next_whole = frame.next_frame(self._read, offset, self.end, self._salt)
            if next_whole is None:
                return
            yield next_whole
            offset = next_whole.end

    @property
    def removed(self) -> bool:
        """Whether somebody has deleted the file, so that what is written to it is lost with this process."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink == 0

    @property
    def is_changed(self) -> bool:
        """Whether somebody has cut the file, or added to it: what is appended is not where it is read."""
        return self._fd >= 0 and os.fstat(self._fd).st_size != self.end

    def write_again(self) -> None:
        """Write the file again, under its name, from what is still open of it.

        What somebody has put in its place, such as a copy, is replaced.

        Raises:
            OSError: it cannot be written; no part of it remains, and what is open stays so.
        """
        beside = self.path.with_suffix(UNFINISHED)
        beside.unlink(missing_ok=True)
        again = os.open(beside, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for start in range(0, self.end, _WINDOW):
                piece = os.pread(self._fd, min(_WINDOW, self.end - start), start)
                append_whole(again, piece, start, beside)
            beside.replace(self.path)
        except OSError:
            os.close(again)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._fd)
        self._fd = again

    def sync(self) -> None:
        """Flush the file to disk."""
        if self._fd >= 0:
            os.fdatasync(self._fd)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._window = b""

    def remove(self) -> None:
        """Close the file and delete it."""
        self.close()
        with suppress(FileNotFoundError, NotADirectoryError):  # removed already, maybe with its folder
            self.path.unlink()

    def _write(self, data: bytes) -> None:
        append_whole(self._fd, data, self.end, self.path)
        self.end += len(data)

    def _read(self, offset: int, size: int) -> bytes:
        start = offset - self._window_start
        if start < 0 or start + size > len(self._window):
            wanted = max(size, min(_WINDOW, self.end - offset))
            self._window, self._window_start, start = os.pread(self._fd, wanted, offset), offset, 0
        return self._window[start : start + size]
