"""Commands of ``spark-events``, forked from a process that has imported most of what they import.

A test of what a command says does not need its start: half a second of imports each time. Forked, a command still
has a process of its own, with its own folder, environment, output and end, and imports the modules of the commands
themselves, which look at the environment. What Python and its libraries look at when they start is the same: one
process forks for each such environment. One that only one command has is not worth a process, so each first
command starts as a user starts it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tests.support.applications import cli

_Environment = tuple[tuple[str, str], ...]
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "TZ")
"""How variables begin that Python looks at when it starts."""
_PROCESS = str(Path(__file__).with_name("forking_process.py"))
_MOST_PARENTS = 4
_seen: set[_Environment] = set()
_parents: OrderedDict[_Environment, _Parent] = OrderedDict()


def run_forked(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        arguments: after ``spark-events``.
        cwd: where it runs.
        env: the whole environment.
        check: whether an exit code other than 0 is an error.
        timeout: seconds.

    Raises:
        subprocess.CalledProcessError: ``check``, and it failed.
        subprocess.TimeoutExpired: it did not end; it has been killed.
    """
    environment = dict(os.environ if env is None else env)
    # It differs in each test, and no command reads it.
    environment.pop("PYTEST_CURRENT_TEST", None)
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        code = _run(list(arguments), str(cwd or os.getcwd()), environment, out, err, timeout)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    done = subprocess.CompletedProcess(["spark-events", *arguments], code, *texts)
    if check:
        done.check_returncode()
    return done


def end_parents() -> None:
    """End the processes that fork."""
    while _parents:
        _parents.popitem()[1].end()


def _run(
    arguments: list[str],
    cwd: str,
    environment: dict[str, str],
    out: IO[bytes],
    err: IO[bytes],
    timeout: float,
) -> int:
    key = tuple(sorted((name, environment[name]) for name in environment if name.startswith(_OF_PYTHON)))
    if key not in _seen:
        _seen.add(key)
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        started = subprocess.run(
            cli(*arguments), cwd=cwd, env=environment, timeout=timeout, check=False, **streams
        )
        return started.returncode
    if key not in _parents:
        if len(_parents) == _MOST_PARENTS:
            _parents.popitem(last=False)[1].end()
        _parents[key] = _Parent(environment)
    _parents.move_to_end(key)
    request = {"arguments": arguments, "cwd": cwd, "environment": environment}
    return _parents[key].run(request, out, err, timeout)


class _Parent:
    """A process that has imported most of what commands import, and forks for each of them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, _PROCESS, str(its.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self._answers = self._socket.makefile("r")

    def run(self, request: dict[str, Any], out: IO[bytes], err: IO[bytes], timeout: float) -> int:
        """Return the exit code of a command."""
        told = json.dumps(request).encode()
        socket.send_fds(self._socket, [len(told).to_bytes(4, "big")], [out.fileno(), err.fileno()])
        self._socket.sendall(told)
        pid = int(self._answers.readline())
        over = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
        over.start()
        try:
            status = int(self._answers.readline())
            if not over.is_alive():
                raise subprocess.TimeoutExpired(request["arguments"], timeout)
        finally:
            over.cancel()
        return os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._answers.close()
        self._socket.close()
