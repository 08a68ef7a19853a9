"""Waiting for a condition, free ports, and asking over HTTP."""

from __future__ import annotations

import os
import random
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from typing import Any


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 280.0) -> Any:
    """Return the condition's first true value; fail when the time is over, which a busy machine must not reach.

    The time is no bound on what is tested: an application that takes 30 s here took over 120 s on a machine with
    other work.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s} s: {what}")


def _ports_of_this_worker() -> Iterator[int]:
    """Yield ports in any order, none twice before all were there, and none that another worker of pytest yields."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    ports = range(10_000 + worker, 32_000, workers)
    # The kernel's randomness, since tests seed that of `random`.
    return cycle(random.SystemRandom().sample(ports, len(ports)))


_PORTS = _ports_of_this_worker()


def free_port() -> int:
    """Return a port that nobody listens on, and that no outgoing connection gets: those are above 32767.

    A test may listen there much later, so that no other test gets it in the meantime.
    """
    while True:
        port = next(_PORTS)
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def http_get(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Return the body of a page; an empty text while nobody answers."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=dict(headers or {})), timeout=5
        ) as page:
            return str(page.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def is_listening(host: str, port: int) -> bool:
    """Return whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
