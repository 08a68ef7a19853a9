"""Whether a packed file ends in the middle, or is damaged there: DuckDB takes that for its end."""

from __future__ import annotations

import os
import zlib
from typing import IO

_FRAME = 0xFD2FB528
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_OF_ONE_BYTE_REPEATED = 1
_GZIP = 16 + zlib.MAX_WBITS
_AT_ONCE = 1 << 16
"""Bytes that are unpacked at once; what comes of them is at most a thousand times as long."""


def gzip_has_no_end(file: IO[bytes]) -> bool:
    """Return whether a file of gzip members cannot be unpacked to its end: only unpacking it tells.

    Zeros after the last member are padding, as for ``gzip`` itself.
    """
    unpacking = None
    while packed := file.read(_AT_ONCE):
        while packed:
            if unpacking is None:
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                unpacking = zlib.decompressobj(_GZIP)
            try:
                unpacking.decompress(packed)
            except zlib.error:
                return True
            packed = unpacking.unused_data
            if unpacking.eof:
                unpacking = None
    return unpacking is not None


def zstandard_has_no_end(file: IO[bytes]) -> bool:
    """Return whether the last frame of a file of Zstandard lacks its end; all else is left to the reader.

    It looks at the sizes in the headers alone (RFC 8878, section 3.1), and unpacks nothing.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    while (at := file.tell()) < size:
        magic = _number(file, 4)
        if magic in _SKIPPABLE:
            file.seek(at + 8 + _number(file, 4))
        elif magic == _FRAME:
            _skip_frame(file, size)
        else:
            return size - at < 4
    return file.tell() > size


def _skip_frame(file: IO[bytes], size: int) -> None:
    """Go to the end of a frame, or beyond the end of the file if it has none."""
    descriptor = _number(file, 1)
    is_single_segment = descriptor >> 5 & 1
    of_window = 0 if is_single_segment else 1
    of_dictionary = (0, 1, 2, 4)[descriptor & 3]
    of_content_size = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    file.seek(of_window + of_dictionary + of_content_size, os.SEEK_CUR)
    is_last = 0
    while not is_last:
        if file.tell() + 3 > size:
            file.seek(size + 1)
            return
        block = _number(file, 3)
        is_last, kind, length = block & 1, block >> 1 & 3, block >> 3
        file.seek(1 if kind == _OF_ONE_BYTE_REPEATED else length, os.SEEK_CUR)
    has_checksum = descriptor >> 2 & 1
    file.seek(4 * has_checksum, os.SEEK_CUR)


def _number(file: IO[bytes], length: int) -> int:
    return int.from_bytes(file.read(length), "little")
