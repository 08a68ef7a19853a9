"""Cuts a stream of bytes into lines, none of them longer than memory allows."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable

import orjson

from spark_events.listeners.long_texts import LONGEST, head_length, joined, whole_characters

LONGEST_LINE = 16 << 20
"""Of longer lines the texts are cut; parsed, a line takes several times its bytes."""
Lines = Callable[[list[bytes]], None]


class LineSplitter:
    """Takes bytes in pieces of any size and passes on whole lines, each with its line feed.

    Args:
        take: called with the lines that a piece completes.
        too_long: called for each line skipped because it is too long even with its texts cut.
        longest: the most bytes that a line may have.
    """

    def __init__(self, take: Lines, too_long: Callable[[], None], longest: int = LONGEST_LINE) -> None:
        self._take = take
        self._too_long = too_long
        self._longest = longest
        self._pieces: list[bytes] = []
        self._held = 0
        self._long: LongLine | None = None
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """Called with the next bytes."""
        lines = io.BytesIO(data).readlines()  # which finds line feeds ten times as fast as split
        unfinished = b"" if data.endswith(b"\n") or not lines else lines.pop()
        if lines:
            lines[0] = self._complete(lines[0])
            if self._skipping:
                self._skipping = False
                del lines[0]
            self._take(lines)
        self._hold(unfinished)

    def end(self) -> bytes:
        """Return and forget the beginning of an unfinished line."""
        unfinished = self._long.end() if self._long else b"".join(self._pieces)
        self._reset()
        self._skipping = False
        return unfinished

    def take_unfinished(self, is_whole: Callable[[bytes], bool]) -> None:
        """Pass on the beginning of an unfinished line if it is whole by itself; its line end is skipped."""
        line = b"".join(self._pieces)
        if line and is_whole(line):
            self._reset()
            self._skipping = True
            self._take([line + b"\n"])

    def _complete(self, tail: bytes) -> bytes:
        if self._long is not None:
            self._long.feed(tail[:-1])
            line = self._long.end() + b"\n"
        elif self._pieces:
            line = b"".join((*self._pieces, tail))
        else:
            return tail
        self._reset()
        return line

    def _hold(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        if self._long is None:
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held <= self._longest:
                return
            self._long, piece = LongLine(), b"".join(self._pieces)
            self._pieces = []
        self._long.feed(piece)
        if self._long.size > self._longest:
            self._reset()
            self._skipping = True
            self._too_long()

    def _reset(self) -> None:
        self._pieces, self._held, self._long = [], 0, None


_SLICE = 65_536
_TEXT = re.compile(rb'(?:[^"\\]+|\\(?:u[0-9a-fA-F]{4}|[^u]))*')
_HALF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_ESCAPE = 6
_QUOTE = ord('"')


class LongLine:
    """One line of JSON that comes in pieces."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._rest = b""
        self._text: _LongText | None = None

    @property
    def size(self) -> int:
        """How many bytes of it are kept so far."""
        return len(self._kept) + len(self._rest)

    def feed(self, piece: bytes) -> None:
        """Called with the next bytes."""
        data, at = self._rest + piece, 0
        while at < len(data):
            before = at
            at = self._copy_to_text(data, at) if self._text is None else self._take_text(data, at, self._text)
            if at == before:  # an escape split between two pieces: the next piece has the rest
                break
        self._rest = data[at:]

    def end(self) -> bytes:
        """Return the line with its long texts cut."""
        return bytes(self._kept) + self._rest

    def _copy_to_text(self, data: bytes, at: int) -> int:
        quote = data.find(b'"', at)
        end = len(data) if quote < 0 else quote + 1
        self._kept += data[at : end - (quote >= 0)]
        if quote >= 0:
            self._text = _LongText()
        return end

    def _take_text(self, data: bytes, at: int, text: _LongText) -> int:
        stop = min(at + _SLICE, len(data))
        match = _TEXT.match(data, at, stop)
        end = match.end() if match else at
        ends = end < len(data) and data[end] == _QUOTE
        if not ends and _HALF_PAIR.fullmatch(data, max(at, end - _ESCAPE), end):
            end -= _ESCAPE  # the other half may come next
        text.add(data[at:end])
        if ends:
            self._kept += text.end()
            self._text = None
            return end + 1
        return end


class _LongText:
    """A text of which only the beginning and the end are kept."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head = self._tail = ""
        self._count = 0

    def add(self, raw: bytes) -> None:
        text: str = json.loads(f'"{self._decode(raw)}"', strict=False)
        self._count += len(text)
        missing = head_length() - len(self._head)
        if missing > 0:
            self._head, text = self._head + text[:missing], text[missing:]
        self._tail = (self._tail + text)[head_length() - LONGEST :]

    def end(self) -> bytes:
        return orjson.dumps(whole_characters(joined(self._head, max(0, self._count - LONGEST), self._tail)))
