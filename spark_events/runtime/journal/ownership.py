"""Whether a journal's folder is this user's own: in another one's, records could be removed or forged."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from spark_events.runtime.log_once import logger

_said: set[Path] = set()


class UnsafeFolderError(OSError):
    """The error of a folder that another user may have made for us to find."""


def own_folder(folder: Path) -> Path:
    """Make a folder of a journal, or check the one that is there; return its path.

    Raises:
        UnsafeFolderError: it is a symbolic link, or any user of this machine may write to it.
        OSError: it cannot be made.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if stat.S_ISLNK(state.st_mode):
        raise UnsafeFolderError(f"{folder} is a symbolic link of {_user(state.st_uid)}; remove it")
    if _writable_by_all(state.st_mode):
        if _has_modes(folder):
            raise UnsafeFolderError(
                f"{folder} of {_user(state.st_uid)} has mode {stat.S_IMODE(state.st_mode):04o}, so any user "
                "can remove or forge records; remove it, or give it to this user with mode 0700"
            )
        _say_once(folder, "is on a file system without modes, so whoever can enter it can change the journal")
    elif state.st_uid not in (0, os.geteuid()):
        # A mount may show another owner than the user who writes, such as NFS with root_squash.
        _say_once(folder, f"belongs to {_user(state.st_uid)}, who can remove or forge the journal's records")
    return folder


def base_folder(folder: Path) -> Path:
    """Make ``journal.dir``, or warn about the one that is there if any user may write to it; return its path.

    Container platforms give volumes such a mode, so it is used: what matters is who owns what is in it.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = folder.stat().st_mode
    if _writable_by_all(mode):
        allowed = f"has mode {stat.S_IMODE(mode):04o}, so any user of this machine can rename what is in it"
        _say_once(folder, f"{allowed}; give it mode 0700, or 1777 if several users need it")
    return folder


def _writable_by_all(mode: int) -> bool:
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def _has_modes(folder: Path) -> bool:
    """Return whether a new folder has the mode that it is made with: CIFS, say, shows one mode for all."""
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=".probe-", dir=folder) as probe:
        return not _writable_by_all(os.lstat(probe).st_mode)  # made with 0700, whatever the umask
    return True


def _say_once(folder: Path, what: str) -> None:
    if folder not in _said:
        _said.add(folder)
        logger.warning("the journal's folder %s %s", folder, what)


def _user(uid: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    return f"user {uid}"
