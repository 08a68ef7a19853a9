"""Hands a closing server's socket and last page to a small process: the end of a driver is scraped."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from spark_events.api import ServerAuthentication, ServerTls, answers_own_names_only
from spark_events_prometheus.exposition import CONTENT_TYPE
from spark_events_prometheus.last_page import LEAVE, LEAVING

_PROGRAM = Path(__file__).with_name("last_page.py")
_AWAITED_FOR_S = 600.0
_MOST_SCRAPERS = 64
LEAVES_WITHIN_S = 5
"""Less than ``attach(strict=True)`` waits for a reporter."""
_ANSWERS_WITHIN_S = 3.0
"""On a busy machine, a page is that slow whose process is about to start."""
_LONGEST_ANSWER = 1_024
logger = logging.getLogger("spark_events.prometheus")


class Scrapers:
    """Who has scraped; those who have not done so for ten minutes are not expected to come again."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def scraped(self, address: str) -> None:
        """Called when an address asks for the page."""
        with self._lock:
            self._seen.pop(address, None)
            self._seen[address] = time.monotonic()
            if len(self._seen) > _MOST_SCRAPERS:
                del self._seen[next(iter(self._seen))]

    @property
    def expected(self) -> list[str]:
        """Those that will come again."""
        earliest = time.monotonic() - _AWAITED_FOR_S
        with self._lock:
            return [address for address, seen in self._seen.items() if seen > earliest]


def hand_over(
    server: socket.socket,
    metrics: bytes,
    addresses: Iterable[str],
    authentication: ServerAuthentication,
    tls: ServerTls | None,
    linger_ms: int,
) -> None:
    """Start the process, which serves one page on a socket that listens, and do not wait for it.

    Args:
        server: the socket; the caller closes its own copy afterwards.
        metrics: the page.
        addresses: who should have it.
        authentication, tls: as before.
        linger_ms: how long it is served at most, in ms.

    Raises:
        OSError: no process can be started.
    """
    salt = secrets.token_bytes(16)
    about = {
        "content_type": CONTENT_TYPE,
        "challenge": authentication.challenge,
        "salt": salt.hex(),
        "admitted": authentication.digests(salt),
        "tls": [str(file) if file else None for file in tls.files] if tls else None,
        "addresses": list(addresses),
        "linger_s": linger_ms / 1000,
        "own_names_only": answers_own_names_only(server, authentication, tls),
    }
    with _file_without_name() as file:
        file.write(json.dumps(about).encode() + b"\n" + metrics)
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), str(server.fileno())],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[server.fileno()],
            start_new_session=True,  # Ctrl-C and the end of the terminal are the driver's
            cwd="/",
        )
    with contextlib.suppress(RuntimeError):  # the interpreter is about to end, and needs no more threads
        threading.Thread(target=process.wait, name="spark-events-last-page", daemon=True).start()


def can_hand_over() -> bool:
    """Return whether a process can be started here that takes a socket."""
    return os.name == "posix" and bool(sys.executable) and _PROGRAM.is_file()


def ask_to_leave(address: str, port: int, within_s: int = LEAVES_WITHIN_S) -> bool:
    """Ask what listens on a port to leave, if that is the last page of another driver.

    Args:
        address, port: where it listens.
        within_s: how long it may stay for a scrape, in seconds, if it was not scraped yet.

    Returns:
        Whether it is such a page.
    """
    try:
        with socket.create_connection((_reachable(address), port), _ANSWERS_WITHIN_S) as connection:
            connection.sendall(LEAVE + b"%d HTTP/1.0\r\n\r\n" % within_s)
            answer = b""
            until_s = time.monotonic() + _ANSWERS_WITHIN_S
            while len(answer) < _LONGEST_ANSWER and (left_s := until_s - time.monotonic()) > 0:
                connection.settimeout(left_s)  # something else may send a byte now and then
                received = connection.recv(_LONGEST_ANSWER)
                if not received:
                    break
                answer += received
            return answer.endswith(LEAVING)
    except OSError:
        return False


def _reachable(address: str) -> str:
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)


def _file_without_name() -> IO[bytes]:
    """Return a file in memory where there are such, in a temporary one otherwise."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("spark-events-last-page"), "w+b")
    return tempfile.TemporaryFile()
