"""A cgroup of Linux with a limit of memory, as a container has."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

_V1_LIMITS = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")  # without and with swap
_MOUNT = re.compile(r"^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)$", re.MULTILINE)


class MemoryCgroup:
    """A cgroup below that of this process, whose own limits hold on.

    Args:
        folder: of the cgroup.
        limit: in bytes, of all its processes together.

    Raises:
        OSError: this machine does not allow it.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self.procs = folder / "cgroup.procs"
        self._folder.mkdir()
        try:
            if (folder / _V1_LIMITS[0]).exists():
                self._events = folder / "memory.oom_control"
                for name in _V1_LIMITS:
                    if (folder / name).exists():
                        (folder / name).write_text(str(limit))
            else:
                self._events = folder / "memory.events"
                (folder / "memory.max").write_text(str(limit))
                if (folder / "memory.swap.max").exists():
                    (folder / "memory.swap.max").write_text("0")
        except OSError:
            self._folder.rmdir()
            raise

    @property
    def kills(self) -> int:
        """How many of its processes the kernel has killed, because they used too much."""
        counted = re.search(r"^oom_kill (\d+)$", self._events.read_text(), re.MULTILINE)
        assert counted is not None, "the kernel does not count"
        return int(counted.group(1))

    def take(self, processes: Iterable[int]) -> None:
        """Move processes into it; what they allocate from then on counts, and whatever they start."""
        for process in processes:
            self.procs.write_text(str(process))

    def remove(self) -> None:
        """Remove it, and end what still runs in it."""

        def is_removed() -> bool:
            for pid in map(int, self.procs.read_text().split()):
                with suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            with suppress(OSError):  # a process has not quite ended
                self._folder.rmdir()
            return not self._folder.exists()

        wait_until(is_removed, "the cgroup is removed")


@contextmanager
def memory_cgroup(limit: int) -> Iterator[MemoryCgroup]:
    """Give a cgroup with a limit of memory; where this machine does not allow that, skip the test."""
    try:
        cgroup = new_memory_cgroup(str(os.getpid()), limit)
    except OSError as error:
        pytest.skip(f"no cgroup with a limit of memory can be made here: {error}")
    try:
        yield cgroup
    finally:
        cgroup.remove()


def new_memory_cgroup(name: str, limit: int) -> MemoryCgroup:
    """Return a new cgroup below that of this process.

    Args:
        name: unlike that of any other.
        limit: in bytes.

    Raises:
        OSError: this machine does not allow it.
    """
    return MemoryCgroup(_own_cgroup() / f"spark-events-{name}", limit)


def _own_cgroup() -> Path:
    """Return the folder of the cgroup that limits the memory of this process.

    Raises:
        OSError: there is none in which others can be made.
    """
    paths = {
        controllers: path
        for _, controllers, path in (
            line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()
        )
    }
    for mount, kind, options in _MOUNT.findall(Path("/proc/self/mountinfo").read_text()):
        if kind == "cgroup" and "memory" in options.split(","):
            (path,) = (path for names, path in paths.items() if "memory" in names.split(","))
            return Path(mount + path)
        if (
            kind == "cgroup2"
            and "memory" in Path(mount + paths[""], "cgroup.controllers").read_text().split()
        ):
            own = Path(mount + paths[""])
            # Refused where this cgroup has processes of its own and is not the uppermost.
            (own / "cgroup.subtree_control").write_text("+memory")
            return own
    raise OSError("nothing limits memory by cgroups")
