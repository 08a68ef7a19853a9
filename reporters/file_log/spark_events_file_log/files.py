"""Append-only files of whole lines, rotated by size or age, the oldest removed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import re
import stat
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from spark_events.api import ApplicationInfo, append_whole

_LONGEST_NAME = 100
"""Of an application, or of its id, in bytes: a file system takes 255."""


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

    A file is never renamed, so that tailing the folder works; the file being written is locked, so that no
    other application removes it.

    Args:
        kind: ``events``, ``spans`` or ``lineage``.

    Attributes:
        path: the file that is being written; the folder before ``open``.
    """

    def __init__(self, folder: Path, application: ApplicationInfo, kind: str, rotation: Rotation) -> None:
        self._folder = folder
        self._kind = kind
        self._rotation = rotation
        self._name = _name_of_files(application.name)
        run = "-".join(filter(None, (application.id, application.attempt_id))) or str(os.getpid())
        self._stem = f"{self._name}__{_safe(run)}.{kind}"
        self._fd = -1
        self._size = 0
        self._opened_at = 0.0
        self._synced = True
        self._resting = False
        # Whom files belong to that this process makes; some volumes, of NFS or SMB, give them another owner.
        self._owner = os.geteuid()
        self.path = folder

    def open(self) -> list[str]:
        """Make the folder, repair the files that a crash left there, and begin a file.

        Returns:
            A sentence for each file that was repaired, and one if runs are removed that this process wrote.

        Raises:
            OSError: the folder or the file cannot be made.
        """
        repairs = [repair(path, self._owner) for path in self._files_of_application()]
        removed = self._begin()
        said = [sentence for sentence in repairs if sentence]
        if removed and (self._folder, self._name) not in _LOSE_RUNS:
            _LOSE_RUNS.add((self._folder, self._name))
            said.append(
                f"{min(removed)} is removed, although this process wrote it, and so will be others of its "
                f"name: retention.max-files={self._rotation.keep} keeps no more files"
            )
        return said

    def write(self, lines: list[bytes]) -> None:
        """Append whole lines, as many per write as fit the file, and remove them from the list.

        Raises:
            OSError: the disk is full, say; the lines still in the list are in no file.
        """
        while lines:
            if self._fd < 0:
                self._reopen()
            if self._fd < 0 or self._removed() or (self._size and self._full(len(lines[0]))):
                self._begin()
            count, size = 1, self._size + len(lines[0])
            while count < len(lines) and size + len(lines[count]) <= self._rotation.size:
                size += len(lines[count])
                count += 1
            self._append(b"".join(lines[:count]))
            del lines[:count]

    def _append(self, data: bytes) -> None:
        try:
            append_whole(self._fd, data, self._size, self.path)
        except OSError:
            if os.fstat(self._fd).st_size != self._size:
                self.close()  # half a line could not be cut off: the next goes to a new file
            raise
        self._size += len(data)
        self._synced = False

    def sync(self) -> None:
        """Flush the lines to disk.

        Raises:
            OSError: they cannot be written to disk.
        """
        if not self._synced:
            self._reopen()
        if self._fd >= 0 and not self._synced:
            os.fdatasync(self._fd)
            self._synced = True

    def rest(self) -> None:
        """Close the file until the next write; until then, nothing of this process removes it."""
        if self._fd >= 0:
            _RESTING.add(self.path)
            self._resting = True
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        """Close the file; safe to call twice, and before ``open``."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._wake()

    def _wake(self) -> None:
        self._resting = False
        _RESTING.discard(self.path)

    def _reopen(self) -> None:
        """Open the file that rests, unless somebody has removed, changed or locked it meanwhile."""
        if not self._resting:
            return
        try:
            fd = _open_own(self.path, os.O_WRONLY | os.O_APPEND, self._owner)
        except OSError:  # what cannot be opened any more is followed by a new file
            self._wake()
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.fstat(fd).st_size == self._size
        except OSError:
            same = False
        if same:
            self._fd = fd
        else:
            os.close(fd)
        self._wake()

    def _removed(self) -> bool:
        """Return whether somebody deleted the file, so that lines written to it would be silently lost."""
        return os.fstat(self._fd).st_nlink == 0

    def _full(self, more: int) -> bool:
        age_ms = self._rotation.age_ms
        aged = age_ms is not None and (time.monotonic() - self._opened_at) * 1000 >= age_ms
        return aged or self._size + more > self._rotation.size

    def _begin(self) -> set[Path]:
        """Begin a file, and return those of this process that were removed for it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fd, path = self._create()
        self.close()
        self._fd, self._size, self._opened_at, self.path = fd, 0, time.monotonic(), path
        self._owner = os.fstat(fd).st_uid
        _MADE.add(path)
        return self._remove_oldest()

    def _create(self) -> tuple[int, Path]:
        """Make a file with the next number, and lock it.

        Other processes may begin files at the same time, as two that replay one log, and repair new ones.
        """
        for _ in range(_MOST_ATTEMPTS):
            with contextlib.suppress(FileExistsError, BlockingIOError):
                return self._create_next()
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))
        return self._create_next()

    def _create_next(self) -> tuple[int, Path]:
        path = self._folder / f"{self._stem}.{self._next_number():06d}.jsonl"
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        except OSError as error:  # some file systems have no locks
            os.close(fd)
            path.unlink(missing_ok=True)
            raise OSError(error.errno, f"it cannot be locked: {error.strerror}", str(path)) from error
        return fd, path

    def _next_number(self) -> int:
        numbers = (path.name.split(".")[-2] for path in self._folder.glob(f"{self._stem}.*.jsonl"))
        return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1

    def _files_of_application(self) -> list[Path]:
        named = self._folder.glob(f"{self._name}__*.{self._kind}.*.jsonl")
        return [path for path in named if _is_own(path, self._owner)]

    def _remove_oldest(self) -> set[Path]:
        oldest_first = sorted(self._files_of_application(), key=_modified)
        removed = set()
        for path in oldest_first[: -self._rotation.keep]:
            with _locked(path, os.O_RDONLY, self._owner) as fd:
                if fd is not None:
                    path.unlink(missing_ok=True)
                    removed.add(path)
        own = removed & _MADE
        _MADE.difference_update(own)
        return own


def repair(path: Path, owner: int) -> str:
    """Make a file end with a whole line, unless another driver is writing to it.

    A crash of the machine, or killing a process on a full disk, leaves half a line; the next one, appended to
    it, would be lost, too.

    Args:
        path: of the file.
        owner: whose it has to be.

    Returns:
        The repair as a sentence; empty where none was needed.
    """
    with _locked(path, os.O_RDWR, owner) as fd:
        size = os.fstat(fd).st_size if fd is not None else 0
        if fd is None or not size or os.pread(fd, 1, size - 1) == b"\n":
            return ""
        start = _start_of_last_line(fd, size)
        try:
            orjson.loads(os.pread(fd, size - start, start))
        except orjson.JSONDecodeError:
            os.ftruncate(fd, start)
            return f"{path} ended with an incomplete line of {size - start} bytes, which was cut off"
        os.pwrite(fd, b"\n", size)
        return f"{path} ended without a line feed, which was added"


def _start_of_last_line(fd: int, size: int) -> int:
    """Return the offset just after the last line feed; 0 if there is none."""
    end = size
    while end > 0:
        start = max(0, end - (1 << 16))
        line_feed = os.pread(fd, end - start, start).rfind(b"\n")
        if line_feed >= 0:
            return start + line_feed + 1
        end = start
    return 0


_MOST_ATTEMPTS, _LONGEST_PAUSE_S = 100, 0.01
_RESTING: set[Path] = set()
"""Files of this process that are not open, because many applications are followed, but still written to."""
_MADE: set[Path] = set()
_LOSE_RUNS: set[tuple[Path, str]] = set()
"""The files that this process has made, as a replay does for many runs; and the names that lose some."""


def _is_own(path: Path, owner: int) -> bool:
    try:
        return _has_own_state(path.lstat(), owner)
    except FileNotFoundError:
        return False


def _has_own_state(state: os.stat_result, owner: int) -> bool:
    """Return whether this may be a file of a reporter of this user: no pipe, and no other name of a file."""
    return stat.S_ISREG(state.st_mode) and state.st_uid == owner and state.st_nlink == 1


def _open_own(path: Path, flags: int, owner: int) -> int:
    """Open a file of this user's reporters; follows no link, and waits for no pipe.

    Raises:
        OSError: it is another file, or none.
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not _has_own_state(os.fstat(fd), owner):
        os.close(fd)
        raise PermissionError(errno.EPERM, "not a file of this user with one name", str(path))
    return fd


@contextlib.contextmanager
def _locked(path: Path, flags: int, owner: int) -> Iterator[int | None]:
    """Open and lock a file; yield None if it is gone, not ours, or being written by another application."""
    locked_fd = None
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(FileNotFoundError, PermissionError, BlockingIOError):
            fd = _open_own(path, flags, owner)
            stack.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked_fd = None if path in _RESTING else fd
        yield locked_fd


def _modified(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except FileNotFoundError:
        return 0.0, path.name


def _name_of_files(application: str) -> str:
    """Return what the names of an application's files begin with.

    That is no underscore: what begins with one is hidden from those who read folders as Spark does.
    """
    name = _safe(application).strip("_")
    if name:
        return name
    of_signs = f"-{zlib.crc32(application.encode('utf-8', 'replace')):08x}" if application else ""
    return f"application{of_signs}"


def _safe(name: str) -> str:
    """Return a name without characters that are special in a path or a glob; letters of all scripts stay."""
    safe = re.sub(r"_{2,}", "_", re.sub(r"[^\w-]", "_", name))[:_LONGEST_NAME]
    return safe.encode("utf-8", "ignore")[:_LONGEST_NAME].decode("utf-8", "ignore")
