"""Runs Spark applications, and commands, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.paths import REPO
from tests.support.spark import _BASE_CONF
from tests.support.waiting import wait_until


def without_jvms_words(err: str) -> list[str]:
    """Return the lines of what came on stderr, but for those of the JVM itself, which are not the program's."""
    return [line for line in err.splitlines() if not line.startswith(("NOTE: ", "WARNING: Using"))]


@dataclass
class AppRun:
    """A Spark application that has ended."""

    code: int
    out: str
    err: str


class App:
    """A Spark application in a process of its own, configured by a spark-defaults.conf alone.

    Its output goes to files: a pipe that nobody reads would hold it up.
    """

    def __init__(
        self,
        command: list[str],
        conf: Mapping[str, str],
        folder: Path,
        stdin: int = subprocess.DEVNULL,
        more: Mapping[str, str] | None = None,
        base: Mapping[str, str] = _BASE_CONF,
    ) -> None:
        conf_dir = folder / "spark-conf"
        conf_dir.mkdir(exist_ok=True)
        lines = [f"{key}  {value}" for key, value in {**base, **conf}.items()]
        (conf_dir / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        environment = {
            **os.environ,
            **(more or {}),
            "SPARK_CONF_DIR": str(conf_dir),
            "PYTHONPATH": os.pathsep.join(map(str, (REPO, *REPO.glob("reporters/*")))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdout=out,
                stderr=err,
                stdin=stdin,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition, while the application runs."""
        try:
            wait_until(lambda: self.ended or condition(), what)
        except AssertionError:
            self.kill()
            raise
        assert not self.ended, f"it ended before: {what}\n{self._err.read_text()[-3000:]}"

    def wait_for_line(self, line: str) -> None:
        """Wait until it has printed a line."""
        self.wait_for(lambda: line in self._out.read_text().splitlines(), f"it prints {line!r}")

    def end(self, timeout_s: float = 280) -> AppRun:
        """Wait until it has ended."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"it did not end within {timeout_s} s:\n{self._err.read_text()[-3000:]}"
            ) from None
        err = _without_ends_of_long_lines(self._err)
        _check_form_of_messages(err)
        return AppRun(self.process.returncode, self._out.read_text(), err)

    def kill(self) -> None:
        """End it and all its children by force."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes; the end of one may have taken the next with it."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _without_ends_of_long_lines(path: Path) -> str:
    """Return a file's text with at most 100 kB of each line: Spark writes messages of megabytes, again and again."""
    with path.open("rb") as file:
        return "".join(_text_of(line, 100_000) for line in file)


def _text_of(line: bytes, longest: int) -> str:
    if len(line) <= longest:
        return line.decode(errors="replace")
    return line[:longest].decode(errors="replace") + "\n"


def _check_form_of_messages(err: str) -> None:
    """Each line with which the framework speaks up says who speaks, how serious it is, and a sentence."""
    ours = [line for line in err.splitlines() if re.match(r"\W*spark[-_]events\b", line, re.IGNORECASE)]
    odd = [
        line
        for line in ours
        if not re.match(
            r"spark-events: (INFO: (reporting on|nothing is reported)|(WARNING|ERROR|CRITICAL): \S)", line
        )
    ]
    assert odd == []


def cli(*arguments: str) -> list[str]:
    """Return the command line of ``spark-events``."""
    return [str(Path(sys.executable).with_name("spark-events")), *arguments]


def reported(events: Path, tables: Path) -> dict[str, Any]:
    """Return the tables of ``spark-events report``, which are written to a file."""
    command = cli("report", str(events), "--json", str(tables))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(tables.read_text()))


def on_a_terminal(*arguments: str) -> list[str]:
    """Return the command line of ``spark-events`` that Ctrl-C ends, as on a terminal.

    A test run in the background has that signal ignored, and hands that on. A function that the child calls
    before it becomes the command would do, but for gRPC, whose threads a fork leaves behind.
    """
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", heed, *cli(*arguments)]
