"""The supervisor's socket: whatever a driver sends there, the status of its program stays what it is."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("sent", NO_MESSAGES, ids=lambda sent: sent[:20])
def test_what_is_no_message(tmp_path: Path, sent: str) -> None:
    """The connection is closed, nobody waits for it, and the next one is served."""
    applications = Applications(str(tmp_path / "socket"))
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
    command = [sys.executable, "-m", "spark_events.submit.supervisor", sys.executable, "-c", PROGRAM, sent]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 7, done.stderr
    assert "an end cannot be told" in done.stderr
    assert "Traceback" not in done.stderr
