"""Commands of ``spark-events`` one after the other in a process of their own, which has a JVM already.

A start of Python and of a JVM takes longer than most commands. Each command has one test that starts it as a
user does; what such a start shows, Spark's own words on standard error say, is not to be seen here.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tests.support.applications import cli

_LONGEST_S = 400
"""How long a command may take, in a process of its own or in one that is there."""


class WarmCommands:
    """The process; it starts with the first command.

    Args:
        folder: for what it and its JVM print.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._answers: IO[str] | None = None

    def run(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end.

        Args:
            arguments: after ``spark-events``.
            cwd: where it runs.
            environment: the whole of it.

        Raises:
            AssertionError: if it does not end. Its process is killed, and the next command has another.
        """
        process, answers = self._start()
        request = {"arguments": arguments, "cwd": str(cwd), "environment": dict(environment)}
        assert process.stdin is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        poll = select.poll()  # select.select takes no descriptor above 1,023
        poll.register(answers, select.POLLIN)
        ended = poll.poll(1_000 * _LONGEST_S)
        if not ended:
            self.close()
        answer = answers.readline() if ended else ""
        said = (self._folder / "warm.txt").read_text()[-3_000:]
        assert answer, f"{' '.join(arguments)}: no end within {_LONGEST_S} s:\n{said}"
        code, out, err = json.loads(answer)
        return subprocess.CompletedProcess(list(arguments), code, out, err)

    def close(self) -> None:
        """End the process, if it was started."""
        if self._process is not None and self._answers is not None:
            self._process.kill()
            self._process.wait()
            self._answers.close()
            self._process = self._answers = None

    def _start(self) -> tuple[subprocess.Popen[str], IO[str]]:
        if self._process is None or self._answers is None:
            reading, writing = os.pipe()
            with (self._folder / "warm.txt").open("w") as said:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(writing)],
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    text=True,
                    pass_fds=[writing],
                )
            os.close(writing)
            self._answers = os.fdopen(reading)
        return self._process, self._answers


def run_command(
    *arguments: str, cwd: Path, environment: Mapping[str, str], warm: WarmCommands | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as a user does or, where only its result matters, in a process that is there.

    Args:
        arguments: after ``spark-events``.
        cwd: where it runs.
        environment: what differs from the tests' own.
        warm: the process.
    """
    environment = {**os.environ, **environment}
    if warm is not None:
        return warm.run(*arguments, cwd=cwd, environment=environment)
    return subprocess.run(
        cli(*arguments),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )


def serve(answers: IO[str]) -> None:
    """Run the commands that come on standard input, a JSON object a line, until it is closed."""
    from pyspark import SparkContext

    # Before any command: its configuration would become that of the JVM, and of all that come after it.
    SparkContext._ensure_initialized()
    for line in sys.stdin:
        request = json.loads(line)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["cwd"])
        answers.write(json.dumps(_run(request["arguments"])) + "\n")
        answers.flush()


def _run(arguments: list[str]) -> tuple[Any, str, str]:
    from spark_events.cli.main import main
    from spark_events.cli.terminal import console

    sys.argv = ["spark-events", *arguments]
    for each in (console.out, console.err):
        each.width = int(os.environ.get("COLUMNS", "80"))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
    _leave_nothing()
    return code, out.getvalue(), err.getvalue()


def _leave_nothing() -> None:
    """Make the process what the next command would find in one of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for handler in list(logging.root.handlers):
        logging.root.removeHandler(handler)
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "w") as pipe:
        serve(pipe)
