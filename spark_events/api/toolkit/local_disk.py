"""Helpers to write to the driver's disk."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from spark_events.api.errors import ConfigError


def probe_folder(folder: Path) -> str:
    """Check that a folder can be created and written, by creating and removing a file in it.

    Returns:
        A few words that say so.

    Raises:
        ConfigError: it cannot.
    """
    existing = folder
    try:
        existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        with tempfile.TemporaryDirectory(prefix=".spark-events-probe-", dir=existing) as made:
            Path(made, "probe").write_bytes(b"probe")
    except OSError as error:
        raise ConfigError(f"cannot write to folder {existing}: {_reason(error)}") from error
    return f"{folder} is writable"


def _reason(error: OSError) -> str:
    """Return why nothing can be made in a folder; /proc, say, claims that the folder is not there."""
    made_nothing = error.errno == errno.ENOENT
    return "its file system takes no new files" if made_nothing else error.strerror or str(error)


def decoded(url: str) -> str:
    """Return a URL of this machine with ``%20`` and the like as a path, as reporters read it.

    Others stay as they are, and so does one of a file that really has such a name.
    """
    if not url.startswith("file:") or "%" not in url:
        return url
    path = url.removeprefix("file:").removeprefix("//")
    return url if os.path.lexists(path) else unquote(path)


def all_below(folder: Path) -> Iterator[Path]:
    """Yield all files and folders below a folder; links to folders are not followed.

    Raises:
        OSError: a folder cannot be read; see ``raise_for_folder``.
    """
    for base, folders, files in os.walk(folder, onerror=raise_for_folder):
        yield from (Path(base, name) for name in (*folders, *files))


def raise_for_folder(error: OSError) -> None:
    """Raise an error about a folder, unless it is not there any more, or nobody means it.

    Nobody means hidden ones, and that in which a disk keeps what it has found.
    """
    name = os.path.basename(os.fsdecode(error.filename or ""))
    if not isinstance(error, FileNotFoundError) and not name.startswith(".") and name != "lost+found":
        raise error


def append_whole(fd: int, data: bytes, end: int, path: Path) -> None:
    """Append all or nothing, in one write: on a full disk, a partial one precedes that with the error.

    Args:
        fd: the file, opened to append.
        data: what is appended.
        end: the file's current size, in bytes, to which it is truncated after a partial write.
        path: the file, for the error.

    Raises:
        OSError: the disk is full, say.
    """
    try:
        written = os.write(fd, data)
        while written < len(data):  # asked for the rest, the system says why: the disk is full, or a quota
            written += os.write(fd, data[written:])
    except OSError as error:
        os.ftruncate(fd, end)
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that somebody may be reading: it has all of this, or what it had before.

    What is not a file, such as ``/dev/stdout`` or a pipe, is written to.

    Raises:
        ConfigError: it cannot be written; the disk is full, say.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        target = path.resolve()  # a link stays one
        if target.is_symlink():  # from Python 3.13 on, links in a circle are not errors
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        new = target.with_name(f".{uuid.uuid4().hex}.new")
        try:
            new.write_bytes(content)
            if target.exists():
                shutil.copymode(target, new)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:  # the latter of links in a circle, before Python 3.13
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: cannot be written: {reason}") from error
