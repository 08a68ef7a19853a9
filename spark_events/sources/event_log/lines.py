"""Cuts a stream of bytes into lines, none of them longer than memory allows."""

from __future__ import annotations

import io
from collections.abc import Callable

from spark_events.sources.event_log.long_lines import LongLine

LONGEST = 16 << 20
"""Of longer lines the texts are cut; parsed, a line takes several times its bytes."""
Lines = Callable[[list[bytes]], None]


class LineSplitter:
    """Takes bytes in pieces of any size and passes on whole lines, each with its line feed.

    Args:
        take: called with the lines that a piece completes.
        too_long: called for each line skipped because it is too long even with its texts cut.
        longest: the most bytes that a line may have.
    """

    def __init__(self, take: Lines, too_long: Callable[[], None], longest: int = LONGEST) -> None:
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
