"""HTTP by Python's own means, for servers that may be hostile: within one timeout, and nothing but HTTP."""

from __future__ import annotations

import io
import socket
import time
from contextlib import suppress
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

_PORTS = {"http": 80, "https": 443}
_OF_ONE_ORIGIN = ("Authorization", "Cookie")
_LONGEST_HEAD = 1 << 20


def http_opener(
    http: type[HTTPHandler] = HTTPHandler, https: type[HTTPSHandler] = HTTPSHandler
) -> OpenerDirector:
    """Return what opens URLs of HTTP, also behind redirects and proxies, and no others: no file, no FTP.

    A redirect to another origin takes no credentials along.

    Args:
        http, https: open the connections.
    """
    opener = OpenerDirector()
    for handler in (
        ProxyHandler,
        http,
        https,
        _Redirects,
        HTTPDefaultErrorHandler,
        HTTPErrorProcessor,
        UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def same_origin(url: str, other: str) -> bool:
    """Return whether two URLs of HTTP have scheme, host and port in common.

    Raises:
        ValueError: the port of one of them is none.
    """
    return _origin(url) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


class _Redirects(HTTPRedirectHandler):
    """Follows redirects; Python's own would show the credentials to whomever they lead to."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            following.remove_header("Proxy-authorization")  # which the next one gets if it has a proxy, too
            if not same_origin(req.full_url, newurl):
                for name in _OF_ONE_ORIGIN:
                    following.remove_header(name)
        return following


class TimedResponse(HTTPResponse):
    """An answer whose head and body together take no longer than the socket's timeout allows.

    It is made for ``http.client.HTTPConnection.response_class``, below whichever library. Its head is
    bounded, too: Python reads interim answers (100 Continue) for as long as they come.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **keywords: Any) -> None:
        super().__init__(sock, *arguments, **keywords)
        self._read_from = _Until(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._read_from)

    def begin(self) -> None:
        """Read the head."""
        self._read_from.most = _LONGEST_HEAD
        super().begin()
        self._read_from.most = None


class _Until(io.RawIOBase):
    """Reads a socket until its time is over.

    Attributes:
        most: how many bytes may still be read; None has no limit.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._socket = sock
        self._timeout_s = sock.gettimeout()
        self._until = time.monotonic() + (self._timeout_s or 0.0)
        self.most: int | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count = self._read(buffer)
        if self.most is not None:
            self.most -= count or 0
            if self.most < 0:
                raise HTTPException(f"the head of the answer is larger than {_LONGEST_HEAD >> 20} MiB")
        return count

    def _read(self, buffer: Any) -> int | None:
        if self._timeout_s is None:
            return self._raw.readinto(buffer)
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
