"""How far a journal has been acknowledged, and what became of everything it ever held."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

_SLOT = 1_024
_HEAD = struct.Struct(">IH")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a journal has been acknowledged.

    Attributes:
        segment: the number of the segment.
        offset: in bytes; everything before it is acknowledged.
        totals: by name, what became of the records before it.
    """

    segment: int = 0
    offset: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)


class JournalCursor:
    """A file of two slots, written alternately, each with a checksum, so that one is always intact.

    It is written in place: a full disk takes no new file, and without a new cursor nothing could be deleted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._turn = 0

    def open(self) -> Position:
        """Open or create the file, and return the position it holds.

        Raises:
            OSError: it cannot be made.
        """
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        data = os.pread(self._fd, 2 * _SLOT, 0)
        slots = (data[:_SLOT], data[_SLOT : 2 * _SLOT])
        written = [parsed for slot in slots if (parsed := _parse(slot))]
        if not written:
            os.pwrite(self._fd, bytes(2 * _SLOT), 0)
            return Position()
        self._turn, position = max(written, key=lambda parsed: parsed[0])
        return position

    def move(self, position: Position) -> None:
        """Write a position over the older of the two.

        Raises:
            OSError: it cannot be written; the other slot still says where it was.
        """
        self._turn += 1
        body = orjson.dumps([self._turn, position.segment, position.offset, dict(position.totals)])
        data = _HEAD.pack(zlib.crc32(body), len(body)) + body
        os.pwrite(self._fd, data.ljust(_SLOT, b"\0"), self._turn % 2 * _SLOT)

    def make_again(self) -> None:
        """Make the file again if somebody has removed it; it has no position until the next ``move``.

        Raises:
            OSError: it cannot be made.
        """
        if self._fd < 0 or not os.fstat(self._fd).st_nlink:
            self.close()
            self.open()

    def sync(self) -> None:
        """Flush the file to disk."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _parse(slot: bytes) -> tuple[int, Position] | None:
    if len(slot) < _HEAD.size:
        return None
    checksum, size = _HEAD.unpack_from(slot)
    body = slot[_HEAD.size : _HEAD.size + size]
    if not body or zlib.crc32(body) != checksum:
        return None
    turn, segment, offset, totals = orjson.loads(body)
    return turn, Position(segment, offset, totals)
