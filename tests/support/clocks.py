"""Clocks of processes that are wrong, and can be set while the processes run: by libfaketime, where it is there."""

from __future__ import annotations

import os
from pathlib import Path

HOUR_MS = 3_600_000
_LIBRARY = "LIBFAKETIME"
"""The environment variable with the library's path, if it is not where Debian's package libfaketime has it."""


def library() -> str:
    """Return the path of libfaketime; empty if it is not installed."""
    installed = [
        os.environ.get(_LIBRARY, ""),
        *map(str, Path("/usr/lib").glob("*/faketime/libfaketime.so.1")),
    ]
    return next((path for path in installed if path and Path(path).exists()), "")


class Clock:
    """A clock that a process and its children go by, from their start.

    Files have the times of the machine, as they have those of a file server.

    Args:
        file: says how far it is ahead.
        ahead_ms: how far that is at first, in ms.
    """

    def __init__(self, file: Path, ahead_ms: int = 0) -> None:
        self._file = file
        self.set(ahead_ms)

    def set(self, ahead_ms: int) -> None:
        """Set it; who goes by it sees that within a second."""
        made = self._file.with_suffix(".made")
        made.write_text(f"{ahead_ms / 1000:+.0f}\n")
        made.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a process that goes by it."""
        return {
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "NO_FAKE_STAT": "1",
            # Otherwise a JVM waits for ever.
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }
