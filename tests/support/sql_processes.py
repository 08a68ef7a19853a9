"""Deployers, and the session that hosts queries, as processes that can be killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_events.sql_runner.deploy.launch import submit_command
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.store.store import StoreError
from tests.support.applications import App, kill_all
from tests.support.paths import REPO
from tests.support.waiting import wait_until

# A machine with much other work gives it no turn for seconds. Of a killed one it is seen at once.
_LEASE_MS = 15_000
_PATIENCE_S = 600
_CONF = {
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.log.level": "WARN",
}


@dataclass
class Said:
    """What a deployer printed.

    Attributes:
        decided: by query, what was planned: action, version and reason.
        results: by query, how it went.
        error: why nothing was done; empty if something was.
        code: the exit code; negative for a signal.
    """

    decided: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: str = ""
    code: int = 0

    @property
    def went_well(self) -> bool:
        """Whether everything was done."""
        return self.code == 0 and not any(result["failed"] for result in self.results.values())


class Deployer:
    """A deployment, or a stop, in a process of its own, which begins at once.

    Args:
        store: the store's URL.
        arguments: of ``sql_truth_deploy``.
        folder: for what it says of errors.
        environment: more variables for it.
    """

    def __init__(
        self, store: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._errors = folder / "deployers.txt"
        with self._errors.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.sql_truth_deploy", store, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": os.pathsep.join(map(str, (REPO, *REPO.glob("reporters/*")))),
                },
            )

    def kill(self) -> None:
        """Kill it at once."""
        with suppress(ProcessLookupError):
            self.process.kill()

    def suspended(self) -> AbstractContextManager[None]:
        """Let it stand still while a block runs."""
        return _suspended([self.process.pid])

    def result(self) -> Said:
        """Wait for its end, and return what it printed."""
        out, _ = self.process.communicate(timeout=900)
        said = Said(code=self.process.returncode)
        for line in out.splitlines():
            with suppress(ValueError):  # it was killed within a line
                values = json.loads(line)
                if "error" in values:
                    said.error = values["error"]
                else:
                    kind = said.decided if "action" in values else said.results
                    kind[values["name"]] = values
        if said.code == 1:
            said.error = self._errors.read_text()[-2_000:]
        return said


class Session:
    """The session application; it can be started again after its end.

    Args:
        store: the store's URL.
        folder: for its output.
        conf: more of Spark's keys.
        environment: more variables for it.
    """

    def __init__(
        self,
        store: str,
        folder: Path,
        conf: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = environment
        self._store = store
        self._folder = folder
        self._placement = Placement(
            master="local[2]", poll_ms=100, lease_ms=_LEASE_MS, conf={**_CONF, **(conf or {})}
        )
        self._app: App | None = None
        self._starts = 0

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self._app is not None and not self._app.ended

    def start(self) -> None:
        """Start it, and wait until it takes orders."""
        self._starts += 1
        folder = self._folder / f"session-{self._starts}"
        folder.mkdir()
        host = self._placement.session_host
        command = submit_command(self._store, host, self._placement, {}, single=False)
        app = self._app = App(command, {}, folder, more=self._environment)
        wait_until(lambda: app.ended or self._is_alive(), "the session is there", _PATIENCE_S)
        assert not app.ended, f"the session has ended; see {folder}"

    def kill(self, who: str) -> None:
        """Kill its JVM, its Python, or both, and wait until both have ended."""
        if self._app is None or self._app.ended:
            return
        java = self._app.process.pid
        python = [child for child in _children(java) if "application.py" in _command(child)]
        assert python, "the application has its Python"
        victims = {"jvm": [java], "python": python, "both": [java, *python]}[who]
        kill_all(victims)
        self._app.process.wait(60)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in python), "its Python ends")

    def suspended(self) -> AbstractContextManager[None]:
        """Let its JVM and its Python stand still while a block runs."""
        if self._app is None or self._app.ended:
            return nullcontext()
        java = self._app.process.pid
        return _suspended([java, *_children(java)])

    def end(self) -> None:
        """Ask it to end, as ``session --end`` does, and wait for that."""
        if self._app is None or self._app.ended:
            return
        self._workspace().link(self._placement.session_host).request_end()
        self._app.process.wait(120)

    def close(self) -> None:
        """Make sure that nothing of it is left."""
        if self._app is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._app.process.pid, signal.SIGKILL)
            self._app.process.wait(60)

    def _is_alive(self) -> bool:
        with suppress(StoreError):
            return self._workspace().link(self._placement.session_host).is_alive
        return False

    def _workspace(self) -> Workspace:
        return Workspace(self._store, self._placement)


@contextmanager
def _suspended(pids: Sequence[int]) -> Iterator[None]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _children(parent: int) -> list[int]:
    """Return the children of a process; those that a thread of it lists are gone with the thread."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    return ""
