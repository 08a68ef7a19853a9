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
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import close_in_children
from spark_events.runtime.log_once import logger
from spark_events.task.failed_tasks import MOST_BYTES

CAUSES: Mapping[str, str] = {
    "other_sender": "they do not begin with the token of this application",
    "malformed": "they are not what a worker sends",
    "too_long": "they are longer than 1 MiB, or had not ended after 2 s or when the application did",
    "silent": "their connections did not begin with a token in time, while many did not",
}
_BACKLOG = 256
_MOST_CONNECTIONS = 256
_MOST_SILENT = 16
_SILENT_S = 0.1
_LONGEST_TOKEN = 200
_READ_WITHIN_S = 2.0
_CLOSE_WITHIN_S = 1.0
_RECEIVED = 65_536
_PAUSE_S = 0.05


@dataclass(slots=True)
class _Received:
    """What a connection has sent so far, and since when it is open, in s of a clock that only grows."""

    since_s: float
    data: bytearray = field(default_factory=bytearray)
    is_known: bool = False


class FailedTaskReceiver:
    """Listens for connections with a token, a line feed and one report as JSON.

    All connections are read at once, each for at most 2 s. Of those that have not sent the token, at most
    16 are waited for so long; where there are more, the oldest are closed after 100 ms. (For all of them that
    would be too strict: a worker whose container is throttled pauses as long between connecting and sending.)
    At most 256 are open, and the kernel keeps as many that wait.

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
        close_in_children(self._server)
        self._server.setblocking(False)
        self._closed, self._closing = socket.socketpair()
        self._is_closed = False
        self._open: dict[socket.socket, _Received] = {}
        self._selector = selectors.DefaultSelector()
        for waited in (self._server, self._closed):
            self._selector.register(waited, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="spark-events-failed-tasks", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.getsockname()[1])

    def close(self) -> None:
        """Stop, also in the middle of a report, and close the sockets."""
        with suppress(OSError):  # it was closed before
            # Closing is not enough: a forked child may have a copy.
            self._closing.shutdown(socket.SHUT_RDWR)
        self._closing.close()
        self._thread.join(_CLOSE_WITHIN_S)

    def _run(self) -> None:
        try:
            while not self._is_closed:
                for key, _ in self._selector.select(self._wait_s()):
                    self._handle(key.fileobj)
                self._close_late()
        except Exception:
            logger.exception("reports of failed tasks are no longer received; everything else continues")
        finally:
            for connection in [*self._open]:
                self._end(connection, "too_long" if self._open[connection].is_known else "silent")
            self._selector.close()
            self._server.close()
            self._closed.close()

    def _wait_s(self) -> float | None:
        """Return how long nothing can be late; None if there is nothing to wait for."""
        if not self._open:
            return None
        return _SILENT_S / 2 if self._silent() > _MOST_SILENT else _SILENT_S

    def _silent(self) -> int:
        return sum(not received.is_known for received in self._open.values())

    def _handle(self, ready: Any) -> None:
        if ready is self._closed:
            self._is_closed = True
        elif ready is self._server:
            self._accept()
        elif ready in self._open:
            self._read(ready)

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            logger.debug("a worker's connection was gone: %r", error)
            time.sleep(_PAUSE_S)  # with too many open files, it would be the same again at once
            return
        connection.setblocking(False)
        self._open[connection] = _Received(time.monotonic())
        self._selector.register(connection, selectors.EVENT_READ)
        if len(self._open) == _MOST_CONNECTIONS:
            self._selector.unregister(self._server)

    def _read(self, connection: socket.socket) -> None:
        """Read what is there; close the connection at its end, and once it cannot be a report any more."""
        received = self._open[connection]
        try:
            chunk = connection.recv(_RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            self._end(connection, "too_long")
            return
        received.data += chunk
        if not received.is_known:
            token, has_token, _ = received.data.partition(b"\n")
            if has_token or not chunk or len(token) > _LONGEST_TOKEN:
                if not hmac.compare_digest(bytes(token[:_LONGEST_TOKEN]), self._token):
                    self._end(connection, "other_sender")
                    return
                received.is_known = True
        if not chunk:
            self._end(connection, self._take_report(bytes(received.data)))
        elif len(received.data) > MOST_BYTES + _LONGEST_TOKEN:
            self._end(connection, "too_long")

    def _take_report(self, data: bytes) -> str:
        """Hand on a report, and return nothing; or return why it is none."""
        try:
            report = json.loads(data.partition(b"\n")[2])
        except (ValueError, RecursionError):
            return "malformed"
        if not isinstance(report, dict) or not isinstance(report.get("failed"), dict):
            return "malformed"
        self._take(report)
        return ""

    def _close_late(self) -> None:
        """Close the connections that had their time, after a last look at what has come meanwhile."""
        now_s = time.monotonic()
        for connection, received in [*self._open.items()]:  # the oldest first
            is_crowd = not received.is_known and self._silent() > _MOST_SILENT
            if now_s - received.since_s < (_SILENT_S if is_crowd else _READ_WITHIN_S):
                continue
            length = len(received.data)
            self._read(connection)
            says_more = is_crowd and len(received.data) > length and now_s - received.since_s < _READ_WITHIN_S
            if connection in self._open and not says_more:
                self._end(connection, "silent" if is_crowd else "too_long")

    def _end(self, connection: socket.socket, cause: str) -> None:
        if len(self._open) == _MOST_CONNECTIONS and not self._is_closed:
            self._selector.register(self._server, selectors.EVENT_READ)
        del self._open[connection]
        self._selector.unregister(connection)
        connection.close()
        if cause:
            self.dropped[cause] += 1
