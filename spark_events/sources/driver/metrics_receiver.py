"""Receives what Spark's GraphiteSink sends from the driver and all executors, in the driver's Python."""

from __future__ import annotations

import errno
import math
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping

from spark_events.api import close_in_children
from spark_events.runtime.log_once import logger

Measurements = dict[str, dict[str, float]]
"""By executor, and by the name of each metric, such as ``jvm.heap.committed``."""
CAUSES: Mapping[str, str] = {
    "other_sender": "their names do not begin with the token and this application",
    "malformed": "they are not 'name value time'",
    "too_many": "there are more names than the receiver keeps",
    "too_long": "a line is longer than 2 KiB; if it does not end, its connection is closed",
    "too_many_connections": "more connections are open than the receiver keeps; the oldest is closed",
}
_LONGEST_LINE = 2_048
_MOST_CONNECTIONS = 256
_MOST_NAMES, _MOST_BYTES = 200_000, 32 << 20
_MOST_GONE = 10_000
_LONGEST_VALUE = 128
"""Of the value and the time, in bytes: numbers of Java's have less than 30 each."""
_RECEIVED = 65_536
_LOOK_S = 0.5
_PAUSE_S = 0.05
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class MetricsReceiver:
    """Listens for lines ``<token>.<application>.<executor>.<name> <value> <time>``.

    Whatever is sent, it keeps the last value of each of at most 200,000 names, of 32 MiB in all, and 2 KiB
    for each of at most 256 connections; what it drops is counted by cause.

    Args:
        address: to listen on.
        port: to listen on.
        prefix: how the names of this application begin, without the dot before the executor.

    Attributes:
        dropped: lines, or connections, that were dropped, by cause.

    Raises:
        OSError: it cannot listen there.
    """

    def __init__(self, address: str, port: int, prefix: str, most_names: int = _MOST_NAMES) -> None:
        self.dropped: Counter[str] = Counter()
        self._prefix = f"{prefix}.".encode()
        self._most_names = most_names
        # What each executor has sent since the last ``take``: values with their times, by name.
        self._received: dict[str, dict[str, bytes]] = {}
        # Where the value of each whole name belongs, so that known names are not taken apart again.
        self._names: dict[bytes, tuple[dict[str, bytes], str]] = {}
        self._bytes = 0  # of these names
        self._gone: dict[str, None] = {}  # executors; Spark gives none of their ids to another
        self._lock = threading.Lock()
        self._rests: dict[socket.socket, bytes] = {}  # of each connection, the beginning of its next line
        self._close_at = math.inf
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._server = socket.create_server((address, port), family=family, backlog=_MOST_CONNECTIONS)
        close_in_children(self._server)
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="spark-events-receiver", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.getsockname()[1])

    def start(self) -> None:
        """Begin to receive, on a thread of its own."""
        self._thread.start()

    def close(self, linger_s: float = 0.0) -> None:
        """Stop, and close all connections.

        Args:
            linger_s: how long to go on receiving, in seconds, without waiting for that here: Spark sends once
                more while it stops, and writes a stack trace to its log if nobody is there.
        """
        self._close_at = time.monotonic() + linger_s
        if not linger_s:
            self._thread.join(2 * _LOOK_S + 1)

    def take(self) -> Measurements:
        """Return what was received since the last call."""
        received = {}
        with self._lock:
            for executor, values in self._received.items():
                if values:
                    received[executor] = values.copy()
                    values.clear()
        return {executor: self._numbers(values) for executor, values in received.items()}

    def forget(self, executor: str) -> None:
        """Called when an executor is gone: its names make room for others; what it still sends is ignored."""
        with self._lock:
            self._gone[executor] = None
            if len(self._gone) > _MOST_GONE:
                del self._gone[next(iter(self._gone))]
            values = self._received.pop(executor, None)
            for full_name in [name for name, (whose, _) in self._names.items() if whose is values]:
                del self._names[full_name]
                self._bytes -= len(full_name)

    def _numbers(self, values: Mapping[str, bytes]) -> dict[str, float]:
        numbers = {}
        for name, rest in values.items():
            text, blank, _ = rest.partition(b" ")  # behind it is the time
            try:
                value = float(text if blank and b"_" not in text else b"")
            except ValueError:
                self.dropped["malformed"] += 1
                continue
            if value - value == 0.0:  # neither NaN nor infinite
                numbers[name] = value
        return numbers

    # -- on the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while time.monotonic() < self._close_at:
                for key, _ in self._selector.select(_LOOK_S):
                    if key.fileobj is self._server:
                        self._accept()
                    else:
                        self._receive(key.fileobj)  # type: ignore[arg-type]
        except Exception:
            logger.exception("metrics of executors are no longer received; everything else continues")
        finally:
            for connection in [*self._rests]:
                self._close(connection)
            self._selector.close()
            self._server.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            if error.errno in _NO_ROOM:
                time.sleep(_PAUSE_S)  # it would be the same again at once
            return  # else it is gone again
        if len(self._rests) >= _MOST_CONNECTIONS:
            self.dropped["too_many_connections"] += 1
            self._close(next(iter(self._rests)))
        connection.setblocking(False)
        self._rests[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _receive(self, connection: socket.socket) -> None:
        if connection not in self._rests:  # closed to make room, in the same round
            return
        try:
            data = connection.recv(_RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
            return
        *lines, rest = (self._rests[connection] + data).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            self.dropped["too_long"] += 1
            self._close(connection)
        else:
            self._rests[connection] = rest
        names = self._names
        with self._lock:
            for line in lines:
                if len(line) > _LONGEST_LINE:  # it may have come in one piece
                    self.dropped["too_long"] += 1
                    continue
                full_name, _, rest = line.partition(b" ")
                if len(rest) > _LONGEST_VALUE:
                    self.dropped["malformed"] += 1
                    continue
                place = names.get(full_name) or self._place_of_new(full_name, rest)
                if place is not None:
                    place[0][place[1]] = rest

    def _place_of_new(self, full_name: bytes, rest: bytes) -> tuple[dict[str, bytes], str] | None:
        """Return and remember the place of a name; None if it is not one of this application's."""
        if not full_name.startswith(self._prefix):
            self.dropped["other_sender"] += 1
            return None
        executor, _, name = full_name[len(self._prefix) :].decode("utf-8", "replace").partition(".")
        if not name or not rest or len(full_name) > _LONGEST_LINE:
            self.dropped["malformed"] += 1
            return None
        if executor in self._gone:
            return None
        if len(self._names) >= self._most_names or self._bytes + len(full_name) > _MOST_BYTES:
            self.dropped["too_many"] += 1
            return None
        self._bytes += len(full_name)
        place = self._names[full_name] = (self._received.setdefault(executor, {}), name)
        return place

    def _close(self, connection: socket.socket) -> None:
        del self._rests[connection]
        self._selector.unregister(connection)
        connection.close()
