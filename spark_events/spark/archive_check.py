"""Whether an archive of classes is the one that was made: Java itself crashes with one that is damaged.

Beside an archive is its sum: the size and the hash, and the state of the file that had this hash. While that
is the file's state, reading it again (200 MB) would give nothing new.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

_READ = 1 << 20


def keep(unfinished: Path, archive: Path) -> None:
    """Give a new archive its name and its sum, so that a power cut leaves either none of it or all.

    Raises:
        OSError: it cannot be written.
    """
    unfinished.chmod(0o644)
    _sync(unfinished)
    hashed = _hash_of(unfinished)
    unfinished.replace(archive)
    _write_sum(archive, hashed)


def is_whole(archive: Path) -> bool:
    """Return whether it is there, as it was made, and nobody else can have changed it; remove a damaged one.

    Java runs what is in it, so it has to be this user's, or root's, and so has its folder.
    """
    try:
        if not (is_own(archive) and is_own(archive.parent)):
            return False
        if _is_as_made(archive):
            return True
    except FileNotFoundError:
        if not archive.exists():
            return False
    except (OSError, ValueError, TypeError, KeyError):
        pass
    remove(archive)
    return False


def remove(archive: Path) -> None:
    """Remove an archive and its sum, if they can be removed; the next command has another one made."""
    for path in (archive, _sum_of(archive), archive.with_suffix(".begun")):
        with suppress(OSError):
            path.unlink()


def is_own(path: Path) -> bool:
    """Return whether a file or folder is this user's or root's, no link, and nobody else may write to it.

    Raises:
        OSError: it is not there.
    """
    state = path.lstat()
    kinds = stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)
    return kinds and state.st_uid in (0, os.geteuid()) and not state.st_mode & 0o022


def _is_as_made(archive: Path) -> bool:
    known = json.loads(_sum_of(archive).read_bytes())
    state = _state_of(archive)
    if known["size"] != archive.stat().st_size:
        return False
    if known["state"] == state:
        return True
    if known["blake2b"] != _hash_of(archive):
        return False
    with suppress(OSError):  # another user's folder: then it is read each time
        _write_sum(archive, known["blake2b"])
    return True


def _sum_of(archive: Path) -> Path:
    return archive.with_suffix(".sum")


def _state_of(archive: Path) -> list[int]:
    """Return what changes whenever somebody writes to the file, moves it or copies it."""
    state = archive.stat()
    return [state.st_ino, state.st_mtime_ns, state.st_ctime_ns]


def _hash_of(file: Path) -> str:
    digest = hashlib.blake2b()
    with file.open("rb") as opened:
        while chunk := opened.read(_READ):
            digest.update(chunk)
    return digest.hexdigest()


def _write_sum(archive: Path, hashed: str) -> None:
    known: dict[str, Any] = {"size": archive.stat().st_size, "blake2b": hashed, "state": _state_of(archive)}
    unfinished = _sum_of(archive).with_suffix(f".{os.getpid()}.new")
    unfinished.write_text(json.dumps(known))
    _sync(unfinished)
    unfinished.replace(_sum_of(archive))
    _sync(archive.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
