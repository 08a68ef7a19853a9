"""Who owns which journal: a folder belongs to one driver at a time; ended drivers leave theirs behind."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.runtime.log_once import logger

_MOST_DRIVERS = 1_000


@dataclass(eq=False)
class Lock:
    """A locked folder, which no other driver can take; the kernel releases it when the process ends."""

    folder: Path
    fd: int

    @staticmethod
    def take(folder: Path) -> Lock | None:
        """Lock and return a folder; return None if another driver has it.

        Raises:
            OSError: it cannot be made, cannot be locked at all, or is open to other users.
        """
        own_folder(folder)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            os.close(fd)
            raise
        lock = Lock(folder, fd)
        _taken.add(lock)
        return lock

    def take_again(self) -> None:
        """Make and lock the folder again if somebody has removed it.

        Raises:
            OSError: it cannot be made, or another driver has taken its place.
        """
        if self.fd < 0 or os.fstat(self.fd).st_nlink:
            return
        base_folder(self.folder.parents[2])
        for level in (self.folder.parents[1], self.folder.parent):
            own_folder(level)
        new = Lock.take(self.folder)
        if new is None:
            raise OSError(errno.EBUSY, "another driver has it", str(self.folder))
        os.close(self.fd)
        self.fd, new.fd = new.fd, -1

    def release(self) -> None:
        """Release the folder for other drivers."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


_taken: weakref.WeakSet[Lock] = weakref.WeakSet()


def _release_all() -> None:
    for lock in list(_taken):
        lock.release()


# A forked child has the locks as well, and would keep them after this process has ended.
os.register_at_fork(after_in_child=_release_all)


@dataclass
class Claim:
    """The journals of one reporter and application that a driver has claimed.

    Attributes:
        own: the folder it writes to.
        orphans: the folders that ended drivers left behind, oldest first.
        busy: how many other drivers of the same application are running.
    """

    own: Lock
    orphans: list[Lock] = field(default_factory=list)
    busy: int = 0


def claim(base: Path, reporter: str, application: str) -> Claim:
    """Take a folder below ``<base>/<reporter>/<application>``, and those there that have no owner any more.

    Raises:
        OSError: a folder cannot be made, read or locked, or is open to other users.
    """
    parent = own_folder(own_folder(base_folder(base) / safe(reporter)) / safe(application or "application"))
    taken = sorted(int(path.name) for path in parent.iterdir() if path.name.isdecimal())
    new = (number for number in range(1, _MOST_DRIVERS) if number not in taken)
    free: list[Lock] = []
    busy = 0
    try:
        for number in (*taken, *new):
            if free and number not in taken:
                break
            lock = Lock.take(parent / str(number))
            if lock is not None:
                free.append(lock)
            else:
                busy += 1
    except OSError:
        for lock in free:
            lock.release()
        raise
    if not free:
        raise OSError(f"all {_MOST_DRIVERS} journals in {parent} are in use")
    own, orphans = free.pop(0), []
    for lock in free:
        if any(lock.folder.glob("*.journal")):
            orphans.append(lock)
        else:
            lock.release()
    return Claim(own, orphans, busy)


def safe(name: str) -> str:
    """Return the name in a form that is safe for a folder; a name that had to change stays unique."""
    changed = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100].lstrip(".")
    if changed == name:
        return name
    return f"{changed}~{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


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
        _say_once(
            folder, "is on a file system without modes, so anyone who can enter it can change the journal"
        )
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
