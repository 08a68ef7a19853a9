"""Reads an event log from its first part to its last, also while it grows and its parts come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from spark_events.sources.event_log.codecs import FIRST_BYTES, Codec, CorruptLogError, codec_for
from spark_events.sources.event_log.files import EventLog, LogFiles, LogPart
from spark_events.sources.event_log.lines import Lines, LineSplitter
from spark_events.sources.event_log.records import RecordReader


class LogRewrittenError(Exception):
    """A log has become shorter than it was: it is another one under the same name."""


class _PartTail:
    """One file, as far as it has been read."""

    def __init__(self, part: LogPart, take: Lines, reader: RecordReader) -> None:
        self.part = part
        self.position = 0
        # What a file system lists may be behind what it gives to read.
        self.listed = 0
        self.corrupt = False
        self._reader = reader
        self._splitter = LineSplitter(take, reader.too_long)
        self._codec: Codec | None = None
        self._first = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file.

        Raises:
            CorruptLogError: they are not what its codec writes; the rest of the file cannot be read.
        """
        self.position += len(data)
        if self._codec is None:
            self._first += data
            if len(self._first) < FIRST_BYTES:
                return
            data, self._first = self._first, b""
            self._codec = codec_for(data, self._splitter.feed)
        self._codec.feed(data)

    def end(self) -> None:
        """Take that nothing more will come."""
        if self._codec is None:
            self._splitter.feed(self._first)
        self._reader.take_last(self._splitter.end())


class LogTail:
    """Feeds the records of one log, each once.

    Args:
        files: open its parts.
        take: takes the records.
        resume: a position up to which an earlier process has read; None where there was none.
        resumed: told when that has been reached, before the first record beyond it.

    Attributes:
        reader: makes the records, and counts.
        notes: what there is to say of the log's bytes, a sentence each.
    """

    def __init__(
        self,
        files: LogFiles,
        take: Callable[[dict[str, Any]], None],
        resume: tuple[int, int] | None = None,
        resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._files = files
        self._resume = resume
        self._resumed = resumed
        self.reader = RecordReader(take)
        self.notes: list[str] = []
        self._tail: _PartTail | None = None
        self._lines_before = 0
        self._finished = False

    @property
    def position(self) -> tuple[int, int]:
        """The number of the part that is being read, and how many of its lines have gone by."""
        if self._tail is None:
            return 0, 0
        return self._tail.part.index, self.reader.lines - self._lines_before

    def read(self, log: EventLog, final: bool) -> Iterator[int]:
        """Read what has come since the last time, block by block.

        Args:
            log: as it is now.
            final: whether it will not grow any more.

        Yields:
            How many bytes of its files were read.

        Raises:
            OSError: a part cannot be read; the next call goes on from there.
            LogRewrittenError: it is no longer the same log.
        """
        if self._finished:
            return
        now = self._tail.part.index if self._tail else -1
        for part in (part for part in log.parts if part.index >= now):
            tail = self._tail_of(part)
            if part.size < tail.listed:
                raise LogRewrittenError(f"{part.path} has {part.size} bytes, and had {tail.listed}")
            if part.size > tail.listed and not tail.corrupt:
                yield from self._read(tail, part)
            tail.listed = part.size
        if final:
            self._leave()
            self._finished = True

    def _tail_of(self, part: LogPart) -> _PartTail:
        tail = self._tail
        if tail is None or (tail.part.index, tail.part.compacted) != (part.index, part.compacted):
            self._leave()
            tail = self._tail = _PartTail(part, self._take_lines, self.reader)
            self._lines_before = self.reader.lines
        return tail

    def _read(self, tail: _PartTail, part: LogPart) -> Iterator[int]:
        for data in self._files.blocks(part, tail.position):
            try:
                tail.feed(data)
            except CorruptLogError as error:
                tail.corrupt = True
                where = f"{part.path}: cannot be read from about byte {tail.position} on"
                self.notes.append(f"{where} ({error})")
            yield len(data)
            if tail.corrupt:
                return

    def _take_lines(self, lines: list[bytes]) -> None:
        if self._resume is not None:
            had = self._had_before(len(lines), self._resume)
            if had < len(lines):
                self.reader.take_lines(lines[:had])
                self.resume_here()
                lines = lines[had:]
        self.reader.take_lines(lines)

    def _had_before(self, count: int, resume: tuple[int, int]) -> int:
        """Return how many of so many next lines an earlier process has had."""
        part, number = self.position
        if part != resume[0]:
            return count if part < resume[0] else 0
        return min(count, max(0, resume[1] - number))

    def resume_here(self) -> None:
        """Take that what comes now is new, wherever an earlier process left off."""
        if self._resume is not None:
            self._resume = None
            self._resumed()

    def _leave(self) -> None:
        if self._tail is not None:
            tail, self._tail = self._tail, None
            tail.end()
