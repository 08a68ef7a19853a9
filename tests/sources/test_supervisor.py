"""The supervisor's socket: whatever a driver sends there, the status of its program stays what it is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_events.submit.supervisor import Applications
from tests.support.waiting import wait_until

NO_MESSAGES = [
    "7",
    "[" * 100_000,
    '{"application": [], "changed": {}}',
    '{"application": "a", "changed": 1}',
    "x",
]
PROGRAM = """
import os, socket, sys, time
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["SPARK_EVENTS_SUPERVISOR"])
    body = sys.argv[1].encode()
    connection.sendall(len(body).to_bytes(4, "big") + body)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # until it is read
sys.exit(7)
"""
SUPERVISED = sys.executable, "-m", "spark_events.submit.supervisor"
WITHOUT_A_SOCKET = """
import resource
from spark_events.submit.supervisor import main
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))  # one for its folder
main()
"""


@pytest.mark.parametrize("sent", NO_MESSAGES, ids=lambda sent: sent[:20])
def test_what_is_no_message(tmp_path: Path, sent: str) -> None:
    """The connection is closed, nobody waits for it, and the next one is served."""
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    for text in (sent, json.dumps({"said": "hello"})):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(applications.path)
            connection.sendall(len(text).to_bytes(4, "big") + text.encode())
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    wait_until(lambda: not applications._connections, "no connection is left")


@pytest.mark.parametrize(
    "sent", ['{"application": "a", "changed": {}}', '{"application": "a", "changed": {"1": "x"}}']
)
def test_a_testament_that_cannot_be_read(sent: str) -> None:
    """It costs the word about the end, and nothing else."""
    done = run(*SUPERVISED, sys.executable, "-c", PROGRAM, sent)

    assert done.returncode == 7, done.stderr
    assert "an end cannot be told" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_temporary_folder_with_a_long_path(tmp_path: Path) -> None:
    """Its sockets have addresses all the same, and what is said there is heard."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    program = "import sys; from spark_events.submit.supervisor import say; sys.exit(7 if say('hello') else 1)"
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = run(*SUPERVISED, sys.executable, "-c", program, env=environment)

    assert (done.returncode, done.stderr) == (7, "spark-events: INFO: hello\n")
    assert not list(folder.iterdir())


def test_no_socket_can_be_made() -> None:
    """The program runs, which is more important than the word about its end."""
    program = 'echo "of: $SPARK_EVENTS_SUPERVISOR"; kill -TERM $$'
    done = run(sys.executable, "-c", WITHOUT_A_SOCKET, "sh", "-c", program)

    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "of: \n")
    assert "WARNING: nothing can be kept in" in done.stderr
    assert "Traceback" not in done.stderr


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)
