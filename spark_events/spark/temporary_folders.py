"""Temporary folders that only this user can enter, and that do not stay when their process is killed."""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "spark-events-own-"
_SURELY_LOCKED_AFTER_S = 60.0
"""A younger folder without a lock may have been made by a process that is about to lock it."""
_LOG = logging.getLogger(__name__)
_has_swept = False


class TemporaryFolder:
    """A new folder with a random name and mode 0700, removed by ``remove`` or at the end of the process.

    While it is used, its process holds a lock on it, which systemd-tmpfiles respects, too. However the
    process ends, the kernel lets go of that, so the next process of the same user knows what is left over.

    Args:
        what: it is for; a part of its name.

    Attributes:
        path: of the folder.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, what: str) -> None:
        _sweep_once()
        self.path = Path(tempfile.gettempdir(), f"{_PREFIX}{what}-{secrets.token_hex(8)}")
        self._owner = os.getpid()
        self._descriptor = -1
        # Before it is there: Ctrl-C may come between any two steps.
        atexit.register(self.remove)
        self.path.mkdir(mode=0o700)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with suppress(OSError):  # a file system without locks: then nobody else gets one, either
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove it, with all that is in it. A forked process leaves it to its parent."""
        if os.getpid() != self._owner:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        atexit.unregister(self.remove)


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """Give the path of a ``TemporaryFolder``, and remove it afterwards."""
    folder = TemporaryFolder(what)
    try:
        yield folder.path
    finally:
        folder.remove()


def remove_leftovers() -> None:
    """Remove the folders of processes of this user that were killed; never raises."""
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            paths = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    except OSError as error:
        _LOG.debug("cannot look for leftovers: %s", error)
        return
    for path in paths:
        try:
            _remove_if_left(path)
        except OSError as error:  # another process removes it at the same time, or it is another user's
            _LOG.debug("%s stays: %s", path, error)


def _sweep_once() -> None:
    global _has_swept
    if not _has_swept:
        _has_swept = True
        remove_leftovers()


def _remove_if_left(path: str) -> None:
    """Remove a folder that nobody holds a lock on; what is not a folder of this user's stays.

    Raises:
        OSError: somebody uses it, or it is not a folder.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        state = os.fstat(descriptor)
        is_young = time.time() - state.st_mtime < _SURELY_LOCKED_AFTER_S
        if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077 or is_young:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)  # follows no symbolic link
    finally:
        os.close(descriptor)
