"""Reads an event log from its first part to its last, also while it grows and its parts come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.sources.event_log.reading.codecs import (
    FIRST_BYTES,
    Codec,
    CorruptLogError,
    Plain,
    codec_for,
)
from spark_events.sources.event_log.reading.files import EventLog, LogFiles, LogPart
from spark_events.sources.event_log.reading.lines import Lines, LineSplitter
from spark_events.sources.event_log.records import TOO_LONG, RecordReader, is_whole_record


class LogRewrittenError(Exception):
    """The error of a log that has become shorter: it is a different log under the same name."""


class LogCompactedError(Exception):
    """The error of a log of which parts that were not read yet have been made one with those that were."""


class LinePosition(NamedTuple):
    """How far a log has been read.

    Attributes:
        part: the number of the part that is being read.
        lines: how many of its lines have been read.
    """

    part: int
    lines: int

    def lines_until(self, end: LinePosition, at_most: int) -> int:
        """Return how many of this part's next ``at_most`` lines come before another position."""
        if self.part != end.part:
            return at_most if self.part < end.part else 0
        return min(at_most, max(0, end.lines - self.lines))


NOTHING_READ = LinePosition(0, 0)


class LogTail:
    """Feeds the records of one log, each once.

    Args:
        take: takes the records.
        resume: how far an earlier process has read; None if there was none.
        on_resumed: called when that position is reached, before the first record beyond it.

    Attributes:
        reader: makes the records, and counts.
        notes: remarks about the log's bytes, one sentence each.
    """

    def __init__(
        self,
        files: LogFiles,
        take: Callable[[dict[str, Any]], None],
        resume: LinePosition | None = None,
        on_resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._files = files
        self._resume = resume
        self._on_resumed = on_resumed
        self.reader = RecordReader(take)
        self.notes: list[str] = []
        self._part: _PartReader | None = None
        self._lines_of_earlier_parts = 0
        self._finished = False
        self._has_all = True

    @property
    def position(self) -> LinePosition:
        """How far the log has been read."""
        if self._part is None:
            return NOTHING_READ
        return LinePosition(self._part.part.index, self.reader.lines - self._lines_of_earlier_parts)

    def read(self, log: EventLog, final: bool) -> Iterator[int]:
        """Read what was added since the last call, block by block.

        Args:
            log: the log as it is now.
            final: whether it will not grow any more.

        Yields:
            The number of bytes read from its files.

        Raises:
            OSError: a part cannot be read; the next call continues from there.
            LogRewrittenError: it is no longer the same log.
            LogCompactedError: it has to be read anew, up to the position.
        """
        if self._finished:
            return
        current = self._part.part.index if self._part else -1
        had_all, self._has_all = self._has_all, False
        for part in (part for part in log.parts if part.index >= current):
            if self._repeats(part, had_all):
                continue
            reader = self._reader_of(part)
            if part.size < reader.listed_size:
                raise LogRewrittenError(
                    f"{path_without_secrets(part.path)} has {part.size} bytes, but had {reader.listed_size}"
                )
            if part.size > reader.listed_size and not reader.corrupt:
                yield from self._read_part(reader, part)
            reader.listed_size = part.size
        self._has_all = True
        if final:
            self._end_part()
            self._finished = True

    def take_unfinished_line(self) -> None:
        """Take what follows the last line feed as a line, if it is a whole record: nothing follows it."""
        if self._part is not None:
            self._part.take_unfinished_line()

    def take_rest_as_new(self) -> None:
        """Treat all further records as new, even if an earlier process has read further than this."""
        if self._resume is not None:
            self._resume = None
            self._on_resumed()

    def _repeats(self, part: LogPart, had_all: bool) -> bool:
        """Return whether a part was made of parts that have been read: it has nothing else.

        Args:
            part: of the log as it is now.
            had_all: whether all that there was has been read.

        Raises:
            LogCompactedError: it has a part of those that have been read, and of others.
        """
        before = self._part.part if self._part is not None else None
        if before is None or not part.compacted or (before.index, before.compacted) == (part.index, True):
            return False
        if part.index > before.index or not had_all:
            raise LogCompactedError
        return True

    def _reader_of(self, part: LogPart) -> _PartReader:
        """Return the reader of a part, ending the one of another part that was being read."""
        reader = self._part
        if reader is None or (reader.part.index, reader.part.compacted) != (part.index, part.compacted):
            self._end_part()
            reader = self._part = _PartReader(part, self._take_lines, self.reader)
            self._lines_of_earlier_parts = self.reader.lines
        return reader

    def _read_part(self, reader: _PartReader, part: LogPart) -> Iterator[int]:
        # Use its current path: Spark renames a log when it is complete.
        for block in self._files.blocks(part, reader.offset):
            try:
                reader.feed(block)
            except CorruptLogError as error:
                reader.corrupt = True
                since = f" from about byte {reader.offset} on" if self.position.lines else ""
                self.notes.append(f"{path_without_secrets(part.path)}: cannot be read{since} ({error})")
            yield len(block)
            if reader.corrupt:
                return

    def _take_lines(self, lines: list[bytes]) -> None:
        if self._resume is not None:
            # What a compacted part has that is new cannot be told from what was read before it was compacted.
            is_compacted = self._part is not None and self._part.part.compacted
            at_most = len(lines)
            repeated = at_most if is_compacted else self.position.lines_until(self._resume, at_most)
            if repeated < len(lines):
                self.reader.take_lines(lines[:repeated])
                self.take_rest_as_new()
                lines = lines[repeated:]
        self.reader.take_lines(lines)

    def _end_part(self) -> None:
        if self._part is not None:
            has_any = self.position.lines > 0
            reader, self._part = self._part, None
            if not reader.end() and not has_any and reader.compressed_by and not reader.corrupt:
                path = path_without_secrets(reader.part.path)
                self.notes.append(
                    f"{path}: its {reader.compressed_by} data are cut off, or have nothing in them"
                )


class _PartReader:
    """Reads one file.

    Attributes:
        part: the file, as it was when its reading began.
        offset: how many of its bytes have been read.
        listed_size: its size as listed by the file system then, which may be less than what was read.
        corrupt: whether the rest of it cannot be read.
    """

    def __init__(self, part: LogPart, take: Lines, reader: RecordReader) -> None:
        self.part = part
        self.offset = 0
        self.listed_size = 0
        self.corrupt = False
        self._reader = reader
        self._splitter = LineSplitter(take, lambda: reader.skip_line(TOO_LONG))
        self._codec: Codec | None = None
        self._first_bytes = b""

    def feed(self, block: bytes) -> None:
        """Called with the next bytes of the file.

        Raises:
            CorruptLogError: they are not what its codec writes; the rest of the file cannot be read.
        """
        self.offset += len(block)
        if self._codec is None:
            self._first_bytes += block
            if len(self._first_bytes) < FIRST_BYTES:
                return
            block, self._first_bytes = self._first_bytes, b""
            self._codec = codec_for(block, self._splitter.feed)
        self._codec.feed(block)

    def take_unfinished_line(self) -> None:
        """Take the unfinished line at the end, if it is whole; should its line feed come, it is skipped."""
        if not self.corrupt:
            self._splitter.take_unfinished(is_whole_record)

    @property
    def compressed_by(self) -> str:
        """The codec that has compressed the file; empty if none has, or nobody knows yet."""
        return "" if self._codec is None or isinstance(self._codec, Plain) else self._codec.name

    def end(self) -> bytes:
        """Take the unfinished line at the end as the last one, and return it."""
        if self._codec is None:
            self._splitter.feed(self._first_bytes)
        line = self._splitter.end()
        self._reader.take_last(line)
        return line
