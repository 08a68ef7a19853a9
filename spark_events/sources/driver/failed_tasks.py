"""Receives the reports of tasks that fail, from workers on all executors, in the driver's Python."""

from __future__ import annotations

import hmac
import json
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from spark_events.runtime.log_once import logger
from spark_events.task.failed_tasks import MOST_BYTES

CAUSES: Mapping[str, str] = {
    "other_sender": "they do not begin with the token of this application",
    "malformed": "they are not what a worker sends",
    "too_long": "they are longer than 1 MiB, or had not ended after 2 s or when the application did",
}
_BACKLOG = 256
_LONGEST_TOKEN = 200
_READ_WITHIN_S = 2.0
_CLOSE_WITHIN_S = 1.0
_RECEIVED = 65_536
_PAUSE_S = 0.05


class FailedTaskReceiver:
    """Listens for connections with a token, a line feed and one report as JSON.

    One connection is read after the other, each within 2 s: workers do not wait for that. The kernel keeps
    256 that wait; a worker that finds no place gives up after a second.

    Args:
        host: to listen on.
        port: to listen on; 0 for any that is free.
        token: with which reports begin.
        take: called with each report, on the receiver's thread.

    Attributes:
        dropped: reports that were dropped, by cause.

    Raises:
        OSError: it cannot listen there.
    """

    def __init__(self, host: str, port: int, token: str, take: Callable[[dict[str, Any]], None]) -> None:
        self.dropped: Counter[str] = Counter()
        self._token = token.encode()
        self._take = take
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._server.setblocking(False)
        self._closed, self._closing = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="spark-events-failed-tasks", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.getsockname()[1])

    def close(self) -> None:
        """Stop, also in the middle of a report, and close the sockets."""
        self._closing.close()
        self._thread.join(_CLOSE_WITHIN_S)

    def _run(self) -> None:
        try:
            while self._readable(self._server, None):
                try:
                    connection, _ = self._server.accept()
                except OSError as error:
                    logger.debug("a worker's connection was gone: %r", error)
                    time.sleep(_PAUSE_S)  # with too many open files, it would be the same again at once
                    continue
                with connection:
                    self._receive(connection)
        except Exception:
            logger.exception("reports of failed tasks are no longer received; everything else continues")
        finally:
            self._server.close()
            self._closed.close()

    def _readable(self, waited: socket.socket, within_s: float | None) -> bool:
        """Return whether there is something to read within that time, and before the receiver is closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(waited, selectors.EVENT_READ)
            selector.register(self._closed, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(within_s)]
        return bool(ready) and self._closed not in ready

    def _receive(self, connection: socket.socket) -> None:
        received = self._all_of(connection)
        if received is None:
            self.dropped["too_long"] += 1
            return
        token, _, written = received.partition(b"\n")
        if not hmac.compare_digest(token[:_LONGEST_TOKEN], self._token):
            self.dropped["other_sender"] += 1
            return
        try:
            report = json.loads(written)
        except (ValueError, RecursionError):
            report = None
        if isinstance(report, dict) and isinstance(report.get("failed"), dict):
            self._take(report)
        else:
            self.dropped["malformed"] += 1

    def _all_of(self, connection: socket.socket) -> bytes | None:
        """Return all that a connection sends; None if that is too much, or takes too long."""
        chunks: list[bytes] = []
        size, until_s = 0, time.monotonic() + _READ_WITHIN_S
        while size <= MOST_BYTES + _LONGEST_TOKEN and self._readable(connection, until_s - time.monotonic()):
            try:
                chunk = connection.recv(_RECEIVED)
            except OSError:
                return None
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            size += len(chunk)
        return None
