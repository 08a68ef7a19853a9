"""Who owns which journal: a folder belongs to one driver at a time; ended drivers leave theirs behind."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from spark_events.runtime.journal.ownership import base_folder, own_folder

_MOST_DRIVERS = 1_000


@dataclass
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
        # A forked child has the lock as well, and would keep it after this process has ended.
        os.register_at_fork(after_in_child=lock.release)
        return lock

    def release(self) -> None:
        """Release the folder for other drivers."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


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
    for number in (*taken, *new):
        if free and number not in taken:
            break
        lock = Lock.take(parent / str(number))
        if lock is not None:
            free.append(lock)
        else:
            busy += 1
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
