"""Cuts long texts in a JSON line while reading it, so that a line of any length needs little memory."""

from __future__ import annotations

import codecs
import json
import re

import orjson

from spark_events.listeners.long_texts import LONGEST, head_length, joined, whole_characters

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
