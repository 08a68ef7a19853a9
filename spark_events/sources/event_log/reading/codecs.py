"""Spark's four compression codecs, decoded block by block, and recognized by a file's first bytes."""

from __future__ import annotations

import abc
from collections.abc import Callable

from spark_events.api import needs_extra

with needs_extra("eventlog", "zstandard", "reading event logs"):
    import cramjam
    import zstandard

Sink = Callable[[bytes], None]
FIRST_BYTES = 8
"""How many bytes of a file tell its codec."""
_FOREIGN = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
_FEED = 16 << 10
_ZSTD_OUT = 256 << 10
_MOST_OF_BLOCK = 64 << 20


class CorruptLogError(Exception):
    """Compressed data that Spark cannot have written."""


class Codec(abc.ABC):
    """Takes a file's bytes in pieces of any size and passes on the decompressed content.

    Args:
        sink: takes decompressed bytes.

    Attributes:
        name: its name in ``spark.eventLog.compression.codec``.
    """

    name = ""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    @abc.abstractmethod
    def feed(self, data: bytes) -> None:
        """Called with the next bytes.

        Raises:
            CorruptLogError: they are not what the codec writes.
        """


class Plain(Codec):
    """No compression."""

    name = "none"

    def feed(self, data: bytes) -> None:
        """Pass on the bytes unchanged."""
        self._sink(data)


class Foreign(Codec):
    """Anything else that compresses files, in which Spark writes no log."""

    def __init__(self, sink: Sink, name: str) -> None:
        super().__init__(sink)
        self.name = name

    def feed(self, data: bytes) -> None:
        """Refuse the bytes."""
        raise CorruptLogError(f"it is compressed with {self.name}, which Spark does not use: decompress it")


class Zstd(Codec):
    """Zstandard; Spark ends a frame at each flush, so a log has many frames."""

    name = "zstd"
    magic = b"\x28\xb5\x2f\xfd"

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink)
        self._writer = zstandard.ZstdDecompressor().stream_writer(self, write_size=_ZSTD_OUT)  # type: ignore[arg-type]

    def feed(self, data: bytes) -> None:
        """Decompress; the output comes in pieces of bounded size, whatever the compression ratio."""
        try:
            self._writer.write(data)
        except zstandard.ZstdError as error:
            raise CorruptLogError(f"zstd: {error}") from error

    def write(self, data: bytes) -> int:
        """Called with what the decompressor writes."""
        self._sink(bytes(data))
        return len(data)


class _Blocks(Codec):
    """A codec whose blocks have a header with their length."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink)
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        """Decompress the complete blocks, and keep the rest for the next call."""
        for start in range(0, len(data), _FEED):
            self._held += data[start : start + _FEED]
            position = 0
            while taken := self._block(memoryview(self._held)[position:]):
                position += taken
            del self._held[:position]

    @abc.abstractmethod
    def _block(self, data: memoryview) -> int:
        """Decompress one block; return its length including the header, or 0 if it is still incomplete."""

    def _check_length(self, length: int) -> int:
        if not 0 <= length <= _MOST_OF_BLOCK:
            raise CorruptLogError(f"{self.name}: invalid block length of {length} bytes")
        return length


class Lz4(_Blocks):
    """The blocks of lz4-java's ``LZ4BlockOutputStream``, which are not LZ4 frames."""

    name = "lz4"
    magic = b"LZ4Block"
    _header = 21
    _stored, _compressed = 0x10, 0x20

    def _block(self, data: memoryview) -> int:
        if len(data) < self._header:
            return 0
        if data[:8] != self.magic:
            raise CorruptLogError("lz4: expected a block")
        method = data[8] & 0xF0
        packed = self._check_length(int.from_bytes(data[9:13], "little"))
        unpacked = self._check_length(int.from_bytes(data[13:17], "little"))
        end = self._header + packed
        if len(data) < end:
            return 0
        block = bytes(data[self._header : end])
        if method == self._compressed:
            block = _decompress(self.name, lambda: cramjam.lz4.decompress_block(block, output_len=unpacked))
        elif method != self._stored:
            raise CorruptLogError(f"lz4: unknown method {method:#x}")
        if len(block) != unpacked:
            raise CorruptLogError(f"lz4: {len(block)} bytes instead of {unpacked}")
        if block:  # an empty one ends a stream, after which another may begin
            self._sink(block)
        return end


class Snappy(_Blocks):
    """The blocks of snappy-java's ``SnappyOutputStream``, which are not Snappy frames."""

    name = "snappy"
    magic = b"\x82SNAPPY\x00"
    _header = 16

    def _block(self, data: memoryview) -> int:
        if data[:8] == self.magic:  # each stream begins with it, and a log may hold several
            return self._header if len(data) >= self._header else 0
        if len(data) < 8:
            return 0
        packed = self._check_length(int.from_bytes(data[:4], "big"))
        if len(data) < 4 + packed:
            return 0
        block = bytes(data[4 : 4 + packed])
        self._sink(_decompress(self.name, lambda: cramjam.snappy.decompress_raw(block)))
        return 4 + packed


class Lzf(_Blocks):
    """The chunks of compress-lzf's ``LZFOutputStream``."""

    name = "lzf"
    magic = b"ZV"

    def _block(self, data: memoryview) -> int:
        if len(data) < 5:
            return 0
        if data[:2] != self.magic or data[2] > 1:
            raise CorruptLogError("lzf: expected a chunk")
        header = 7 if data[2] else 5
        end = header + int.from_bytes(data[3:5], "big")
        if len(data) < end:
            return 0
        block = bytes(data[header:end])
        self._sink(_decompress_lzf(block, int.from_bytes(data[5:7], "big")) if data[2] else block)
        return end


def codec_for(first: bytes, sink: Sink) -> Codec:
    """Return the codec that a file's first bytes indicate; anything unknown counts as uncompressed."""
    if first.startswith(Zstd.magic):
        return Zstd(sink)
    for codec in (Lz4, Snappy, Lzf):
        if first.startswith(codec.magic):
            return codec(sink)
    for magic, name in _FOREIGN.items():
        if first.startswith(magic):
            return Foreign(sink, name)
    return Plain(sink)


def _decompress(name: str, call: Callable[[], object]) -> bytes:
    try:
        return bytes(call())  # type: ignore[call-overload, no-any-return]
    except (cramjam.DecompressionError, ValueError, MemoryError) as error:
        raise CorruptLogError(f"{name}: {error}") from error


def _decompress_lzf(block: bytes, length: int) -> bytes:
    """Decompress one LZF chunk, of at most 64 KiB. No maintained library has wheels for it."""
    out = bytearray()
    position, end = 0, len(block)
    try:
        while position < end:
            control = block[position]
            position += 1
            if control < 32:  # the number of literal bytes, minus one
                out += block[position : position + control + 1]
                position += control + 1
                continue
            run = control >> 5
            if run == 7:
                run += block[position]
                position += 1
            start = len(out) - ((control & 31) << 8) - block[position] - 1
            position += 1
            if start < 0:
                raise CorruptLogError("lzf: a reference to before the start of the chunk")
            run += 2
            while run > 0:  # the copied range may overlap the output
                piece = out[start : start + run]
                out += piece
                start += len(piece)
                run -= len(piece)
    except IndexError as error:
        raise CorruptLogError("lzf: an incomplete chunk") from error
    if len(out) != length:
        raise CorruptLogError(f"lzf: {len(out)} bytes instead of {length}")
    return bytes(out)
