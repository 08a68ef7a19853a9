"""Waiting for a condition, free ports, and asking over HTTP."""

from __future__ import annotations

import secrets
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 120.0) -> Any:
    """Return the condition's first true value; fail when the time is over, which a busy machine must not reach."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s} s: {what}")


def free_port() -> int:
    """Return a port that nobody listens on, and that no outgoing connection gets: those are above 32767."""
    while True:
        port = 10_000 + secrets.randbelow(22_000)
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
