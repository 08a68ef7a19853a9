"""Records that their destination has refused for good, set aside for a person to look at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from spark_events.api import append_whole
from spark_events.api.event import now_ms
from spark_events.runtime.journal import Dropped
from spark_events.runtime.workers.answers import LONGEST_REASON

_OLDER = ".1"
_PARTLY = b'{"refused":'
"""What the letters of a partial success begin with, most of which were delivered."""
Readable = Callable[[bytes], Any]


class DeadLetters:
    """A file of JSON lines: refused records and the reasons. A full file replaces the previous one.

    Args:
        path: the file.
        max_bytes: the most that this file and the previous one may take together, in bytes.
        readable: returns a record in a form that JSON can hold.
        dropped: called with the number of records lost when a file is replaced.
    """

    def __init__(self, path: Path, max_bytes: int, readable: Readable, dropped: Dropped) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._readable = readable
        self._dropped = dropped

    def add(self, records: Sequence[bytes], reason: str, refused: int) -> None:
        """Append records; one that does not fit a file by itself is dropped, and counted.

        Args:
            records: of one request.
            reason: the destination's; a long one is cut.
            refused: how many of them the destination refused. If not all, it does not say which.

        Raises:
            OSError: they cannot be written.
        """
        partly = {} if refused >= len(records) else {"refused": refused, "of": len(records)}
        letter = {**partly, "timeMs": now_ms(), "reason": reason[:LONGEST_REASON]}
        for lines in self._fitting(self._line(record, letter) for record in records):
            self._rotate(len(lines))
            self._append(lines)

    def _fitting(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield lines together, as many as fit a file."""
        together = bytearray()
        for line in lines:
            if len(line) > self._max_bytes // 2:
                self._dropped("dead_letters_full", 1)
                continue
            if len(together) + len(line) > self._max_bytes // 2:
                yield bytes(together)
                together.clear()
            together += line
        if together:
            yield bytes(together)

    def _append(self, lines: bytes) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            append_whole(fd, lines, os.fstat(fd).st_size, self.path)
        finally:
            os.close(fd)

    def _line(self, record: bytes, letter: dict[str, Any]) -> bytes:
        try:
            return _encode({**letter, "record": self._readable(record)})
        except Exception as error:  # a plugin's, of a record that may be broken
            shown = {"hex": record.hex(), "unreadable": f"{type(error).__name__}: {error}"}
            return _encode({**letter, "record": shown})

    def _rotate(self, more: int) -> None:
        if not self.path.exists() or self.path.stat().st_size + more <= self._max_bytes // 2:
            return
        older = self.path.with_name(self.path.name + _OLDER)
        if older.exists():
            with older.open("rb") as lines:
                refused = sum(not line.startswith(_PARTLY) for line in lines)
            if refused:
                self._dropped("dead_letters_full", refused)
        self.path.replace(older)


def _encode(letter: dict[str, Any]) -> bytes:
    return orjson.dumps(letter, default=str) + b"\n"
