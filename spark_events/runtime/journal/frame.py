"""One record in a file: a magic number, its length, its time, a checksum, its bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAGIC = b"\xf5SE"
RECORD = MAGIC + b"r"
CONTEXT = MAGIC + b"c"
_HEADER = struct.Struct(">4sIQI")
_CHECKED = struct.Struct(">4sIQ")
OVERHEAD = _HEADER.size

Read = Callable[[int, int], bytes]
"""Returns bytes of a file: offset, size; fewer where the file ends before."""


class Frame(NamedTuple):
    """One intact frame.

    Attributes:
        kind: ``RECORD`` or ``CONTEXT``.
        time_ms: when it was written, in ms since the epoch.
        payload: what was written.
        start: its offset in the file.
        end: the offset just after it.
    """

    kind: bytes
    time_ms: int
    payload: bytes
    start: int
    end: int


def encode(kind: bytes, salt: int, time_ms: int, payload: bytes) -> bytes:
    """Return the bytes of a frame.

    Args:
        kind: ``RECORD`` or ``CONTEXT``.
        salt: of the file. It is part of the checksum, so that bytes of a payload that look like a frame
            are never read as one, even if the frame around them is damaged.
        time_ms: when it is written, in ms since the epoch.
        payload: what is written.
    """
    size = len(payload)
    checksum = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, size, time_ms), salt))
    return _HEADER.pack(kind, size, time_ms, checksum) + payload


def intact(window: bytes, start: int, base: int, salt: int) -> Iterator[Frame]:
    """Yield the frames in a piece of a file, up to the first that is damaged or extends past the piece.

    Args:
        window: the piece.
        start: the offset in the piece at which to begin.
        base: the offset of the piece in the file.
        salt: see ``encode``.
    """
    last = len(window) - OVERHEAD
    while start <= last:
        kind, size, time_ms, checksum = _HEADER.unpack_from(window, start)
        body = start + OVERHEAD
        payload = window[body : body + size]
        if len(payload) < size or kind not in (RECORD, CONTEXT):
            return
        if zlib.crc32(payload, zlib.crc32(window[start : start + _CHECKED.size], salt)) != checksum:
            return
        yield Frame(kind, time_ms, payload, base + start, base + body + size)
        start = body + size


def next_frame(read: Read, start: int, end: int, salt: int) -> Frame | None:
    """Return the first intact frame at or after an offset; None if there is none.

    What is read may be shorter than it was written: somebody has cut the file.
    """
    while start + OVERHEAD <= end:
        header = read(start, OVERHEAD)
        if len(header) < OVERHEAD:
            return None
        kind, size, time_ms, checksum = _HEADER.unpack(header)
        behind = start + OVERHEAD + size
        if behind <= end and kind in (RECORD, CONTEXT):
            payload = read(start + OVERHEAD, size)
            seed = zlib.crc32(_CHECKED.pack(kind, size, time_ms), salt)
            if zlib.crc32(payload, seed) == checksum:
                return Frame(kind, time_ms, payload, start, behind)
        start = _find_magic(read, start + 1, end)
    return None


def _find_magic(read: Read, start: int, end: int, step: int = 1 << 16) -> int:
    """Return the offset of the next magic number; ``end`` if there is none."""
    while start < end:
        place = read(start, min(step, end - start)).find(MAGIC)
        if place >= 0:
            return start + place
        # It may straddle two steps.
        start += max(1, min(step, end - start) - len(MAGIC) + 1)
    return end
