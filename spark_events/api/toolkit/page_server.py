"""An HTTP server for a page: clients take little of its process, and hold up nobody."""

from __future__ import annotations

import abc
import logging
import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException, LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any

from spark_events.api.toolkit.servers import ServerAuthentication, ServerTls, answers_own_names_only

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CLIENT_TIMEOUT_S = 10
"""So long a request, and then its answer, may take."""
_LONGEST_REQUEST = 16_384
"""Bytes of a request's line and headers, together."""
_PAUSE_S = 0.05
logger = logging.getLogger("spark_events.server")


class PageServer(ThreadingHTTPServer):
    """Answers each connection in a thread of its own, of which there are only so many.

    If there are more, the oldest connection that has not sent its request yet is closed; if all have sent
    theirs, the oldest. So clients that stay silent, or that send a byte now and then, hold up nobody.

    Args:
        address: to listen on, of IPv4 or IPv6, or a name.
        port: 0 takes any free one.
        handler: answers the requests.
        authentication: of requests.
        tls: None serves plain HTTP.
        most: how many connections there may be at once.

    Raises:
        OSError: the port cannot be taken.
    """

    daemon_threads = True
    # Two servers on one port would each get some of the requests.
    allow_reuse_port = False
    # With socketserver's default of 5, the kernel drops what a burst of clients sends.
    request_queue_size = 1_024

    def __init__(
        self,
        address: str,
        port: int,
        handler: type[PageHandler],
        authentication: ServerAuthentication,
        tls: ServerTls | None,
        most: int,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), handler)
        self.authentication = authentication
        self.own_names_only = answers_own_names_only(self.socket, authentication, tls)
        self._tls = tls
        self._most = most
        self._waiting: dict[Any, socket.socket] = {}
        """The connections that have not sent their request yet, by their clients' addresses, oldest first."""
        self._asking: dict[Any, socket.socket] = {}
        """Those that have."""
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; if there is no room for it, another makes some."""
        if len(self._waiting) + len(self._asking) >= self._most:
            self._close_oldest(self._waiting or self._asking)
        try:
            return super().get_request()
        except OSError:
            self._close_oldest(self._waiting)
            time.sleep(_PAUSE_S)  # with too many open files, it would be the same again at once
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread."""
        with self._lock:
            self._waiting[client_address] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the process may have no more threads
            self._let_go(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._let_go(client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake, if TLS is on, and answer."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_CLIENT_TIMEOUT_S)
        context = self._tls.context
        with context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as secured:
            with self._lock:
                if client_address in self._waiting:
                    self._waiting[client_address] = secured
            secured.do_handshake()
            super().finish_request(secured, client_address)

    def asked(self, client_address: Any) -> None:
        """Called when a client has sent its request: those that have not are closed before it."""
        with self._lock:
            if (connection := self._waiting.pop(client_address, None)) is not None:
                self._asking[client_address] = connection

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not write to stderr: a client that left is not worth a word."""
        logger.debug("could not answer a request from %s", client_address, exc_info=True)

    def _let_go(self, client_address: Any) -> None:
        with self._lock:
            self._waiting.pop(client_address, None)
            self._asking.pop(client_address, None)

    def _close_oldest(self, connections: dict[Any, socket.socket]) -> None:
        with self._lock, suppress(OSError):
            if connections:
                # Its thread ends only later: it counts no longer, or the next would find it again.
                connections.pop(next(iter(connections))).shutdown(socket.SHUT_RDWR)


class PageHandler(BaseHTTPRequestHandler):
    """Reads one request, which may be only so long, and may take only so much time."""

    server: PageServer
    server_version = "spark-events"
    sys_version = ""

    def setup(self) -> None:
        """Read what the client sends within the limits."""
        super().setup()
        self.rfile.close()
        self.rfile = BufferedReader(_Request(self.connection))

    def handle_one_request(self) -> None:
        """Answer the request of this connection."""
        try:
            super().handle_one_request()
        except HTTPException:  # raised in its first line; the base class answers for the headers
            self.close_connection = True
            self.requestline = self.request_version = self.command = ""
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)

    def parse_request(self) -> bool:
        """Read the request, and return whether it can be answered."""
        can_be_answered = super().parse_request()
        self.connection.settimeout(_CLIENT_TIMEOUT_S)
        self.server.asked(self.client_address)
        return can_be_answered

    def do_GET(self) -> None:
        """Answer; of an answer to HEAD, the body is left out."""
        self.answer()

    do_HEAD = do_GET  # noqa: N815 - the name is http.server's

    @abc.abstractmethod
    def answer(self) -> None:
        """Answer the request that was read."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
        """Say nothing of each request."""


class _Request(RawIOBase):
    """The bytes that a client sends: up to a number, and for a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = _LONGEST_REQUEST
        self._until_s = time.monotonic() + _CLIENT_TIMEOUT_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what there is.

        Raises:
            LineTooLong: it is more than a request may have.
            TimeoutError: the time is over.
        """
        if not self._left:
            raise LineTooLong("request")
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request takes too long")
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
