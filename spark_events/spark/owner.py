"""The process that runs a transaction, and what distinguishes it from all others."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_STARTED_FIELD = 19
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Owner:
    """A driver's process.

    Attributes:
        host: its machine's name.
        pid: its process id there.
        started: when it started, in the kernel's ticks; empty if the system does not say.
        space: the boot of the machine and the process namespace in which the pid is valid.
        application: the Spark application's id.
    """

    host: str
    pid: int
    started: str
    space: str
    application: str

    @classmethod
    def this_process(cls, application: str) -> Owner:
        """Return the current process."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _started(pid), _space(), application)

    @property
    def is_dead(self) -> bool:
        """Whether the process is certainly gone; only its own machine can tell."""
        if not self.started or self.host != socket.gethostname() or self.space != _space():
            return False
        return _started(self.pid) != self.started

    def __str__(self) -> str:
        return f"{self.application} (process {self.pid} on {self.host})"


def _started(pid: int) -> str:
    try:
        # The command's name, in parentheses, may contain spaces.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return fields[_STARTED_FIELD] if fields[0] != "Z" else ""


def _space() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""
