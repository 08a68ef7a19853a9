"""Append-only files of whole lines, rotated by size or age, the oldest removed."""

from __future__ import annotations

import fcntl
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ApplicationInfo


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is full, and how many are kept.

    Attributes:
        size: bytes in a file.
        age_ms: how long a file is written to, in ms; None has no limit.
        keep: files of one application name and kind.
    """

    size: int
    age_ms: int | None
    keep: int


class RotatedFile:
    """The files of one application: ``<name>__<id>.<kind>.<number>.jsonl``.

    A file is never renamed, so that whoever tails the folder follows it; the one being written holds a lock,
    so that no other application removes it.

    Args:
        folder: where the files are.
        application: whose files they are.
        kind: ``events`` or ``spans``.
        rotation: when a file is full, and how many are kept.

    Attributes:
        path: the file that is being written; the folder before ``open``.
    """

    def __init__(self, folder: Path, application: ApplicationInfo, kind: str, rotation: Rotation) -> None:
        self._folder = folder
        self._kind = kind
        self._rotation = rotation
        self._name = _safe(application.name or "application")
        run = "-".join(filter(None, (application.id, application.attempt_id))) or str(os.getpid())
        self._stem = f"{self._name}__{_safe(run)}.{kind}"
        self._fd = -1
        self._size = 0
        self._opened_at = 0.0
        self.path = folder

    def open(self) -> None:
        """Make the folder and begin a file.

        Raises:
            OSError: the folder or the file cannot be made.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._begin()

    def write(self, line: bytes) -> None:
        """Append one line in one write.

        Raises:
            OSError: the disk is full, say; nothing of the line stays in the file.
        """
        if self._size and self._full(len(line)):
            self._begin()
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(f"wrote {written} of {len(line)} bytes to {self._folder}: is the disk full?")
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += written

    def close(self) -> None:
        """Close the file; safe to call twice, and before ``open``."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _full(self, more: int) -> bool:
        age_ms = self._rotation.age_ms
        aged = age_ms is not None and (time.monotonic() - self._opened_at) * 1000 >= age_ms
        return aged or self._size + more > self._rotation.size

    def _begin(self) -> None:
        path = self._folder / f"{self._stem}.{self._next_number():06d}.jsonl"
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.close()
        self._fd, self._size, self._opened_at, self.path = fd, 0, time.monotonic(), path
        self._remove_oldest()

    def _next_number(self) -> int:
        numbers = [
            int(path.name.split(".")[-2]) for path in self._folder.glob(f"{_glob(self._stem)}.*.jsonl")
        ]
        return max(numbers, default=0) + 1

    def _remove_oldest(self) -> None:
        ours = list(self._folder.glob(f"{_glob(self._name)}__*.{self._kind}.*.jsonl"))
        if len(ours) <= self._rotation.keep:
            return
        ours.sort(key=_modified)
        for path in ours[: -self._rotation.keep]:
            _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        pass  # another driver writes to it
    finally:
        os.close(fd)


def _modified(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except FileNotFoundError:
        return 0.0, path.name


def _safe(name: str) -> str:
    return re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9-]", "_", name))[:100]


def _glob(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)
