"""An HTTP answer that is read within one timeout as a whole, as Python's own is between two bytes only."""

from __future__ import annotations

import io
import socket
import time
from contextlib import suppress
from http.client import HTTPResponse
from typing import Any


class TimedResponse(HTTPResponse):
    """An answer whose head and body together take no longer than the socket's timeout allows.

    It is made for ``http.client.HTTPConnection.response_class``, below whichever library.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **keywords: Any) -> None:
        super().__init__(sock, *arguments, **keywords)
        timeout_s = sock.gettimeout()
        if timeout_s is not None:
            raw = self.fp.detach()
            self.fp = io.BufferedReader(_Until(raw, sock, timeout_s))


class _Until(io.RawIOBase):
    """Reads a socket until its time is over."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, timeout_s: float) -> None:
        self._raw = raw
        self._socket = sock
        self._timeout_s = timeout_s
        self._until = time.monotonic() + timeout_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self._socket.settimeout(left_s)
            with suppress(TimeoutError):
                count = self._raw.readinto(buffer)
                self._socket.settimeout(self._timeout_s)  # for the next request on this connection
                return count
        raise TimeoutError(f"the whole answer was not there within {self._timeout_s:g} s")

    def close(self) -> None:
        self._raw.close()
        super().close()
