"""Serves the page of a report over HTTP, for those who have no Grafana."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from spark_events.api import (
    WRONG_HOST,
    ConfigError,
    ServerAuthentication,
    ServerTls,
    SparkEventsError,
    answers_own_names_only,
    are_own_names,
)
from spark_events.api.option_types import DURATION
from spark_events.api.toolkit.formatting import cut
from spark_events.history.page.live_page import View
from spark_events.runtime.log_once import logger

_CLIENT_TIMEOUT_S = 10
_LONGEST_PATH = 4_096
_MOST_WAITED = 1_024
_PAUSE_S = 0.05
_RETRY_AFTER_S = 5
_PARTS = ("app", "query", "since")
_LONGEST_NAME = 60
_LEFT = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class ReportServer(ThreadingHTTPServer):
    """Answers GET / with the page; its query string says what is shown: app, query, since.

    Each connection has a thread. Of those that have asked nothing yet, the oldest is closed if there are too
    many, or no more files: clients that send a byte now and then hold up nobody.

    Args:
        address: to listen on, of IPv4 or IPv6.
        port: 0 takes any free one.
        html: returns the page of a view; it may ask whether the reader still waits for it.
        authentication: of requests.
        tls: None serves plain HTTP.

    Raises:
        OSError: the port cannot be taken.
    """

    daemon_threads = True
    allow_reuse_port = False
    request_queue_size = 1_024  # of 5, as is the default, the kernel drops what a burst of clients sends

    def __init__(
        self,
        address: str,
        port: int,
        html: Callable[[View, Callable[[], bool]], str],
        authentication: ServerAuthentication,
        tls: ServerTls | None = None,
    ) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        self._waited: dict[Any, socket.socket] = {}
        """The connections that have sent no whole request yet, by their clients, the oldest first."""
        self._lock = threading.Lock()
        super().__init__((address, port), _Handler)
        self.html = html
        self.authentication = authentication
        self._tls = tls
        self.own_names_only = answers_own_names_only(self.socket, authentication, tls)

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; if there is no room for it, a client that has asked nothing yet makes some."""
        if len(self._waited) >= _MOST_WAITED:
            self._close_oldest()
        try:
            return super().get_request()
        except OSError:
            self._close_oldest()
            time.sleep(_PAUSE_S)  # with too many open files, it would be the same again at once
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread."""
        with self._lock:
            self._waited[client_address] = request
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asked(client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake, if TLS is on, and answer."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_CLIENT_TIMEOUT_S)
        context = self._tls.context
        with context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as secured:
            with self._lock:
                self._waited[client_address] = secured
            secured.do_handshake()
            super().finish_request(secured, client_address)

    def asked(self, client_address: Any) -> None:
        """Called when a client has sent its request: it is no longer waited for."""
        with self._lock:
            self._waited.pop(client_address, None)

    def _close_oldest(self) -> None:
        with self._lock, suppress(StopIteration, OSError):
            self._waited.pop(next(iter(self._waited))).shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not write to stderr: a client that left is not worth a word."""
        logger.debug("could not answer a request from %s", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    timeout = _CLIENT_TIMEOUT_S
    server_version = "spark-events"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page."""
        self.server.asked(self.client_address)
        try:
            url = urlsplit(self.path)
        except ValueError:  # of IPv6, say
            url = urlsplit("/no/url")
        authentication = self.server.authentication
        if self.server.own_names_only and not are_own_names(self.headers.get_all("Host", [])):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, WRONG_HOST)
        elif not authentication.admits(self.headers.get("Authorization", "")):
            challenge = {"WWW-Authenticate": authentication.challenge}
            self._answer(HTTPStatus.UNAUTHORIZED, "a password or a token is needed", challenge)
        elif self._is_of_another_site():
            self._answer(HTTPStatus.FORBIDDEN, "a page of another site may link to this one, not load it")
        elif url.path != "/" or len(self.path) > _LONGEST_PATH:
            self._answer(HTTPStatus.NOT_FOUND, "the report is at /")
        else:
            self._answer_page({name: values[-1] for name, values in parse_qs(url.query).items()})

    def do_HEAD(self) -> None:
        """Answer as to GET, without the page."""
        self.do_GET()

    def _is_of_another_site(self) -> bool:
        """Return whether a browser loads this for a page of another site, as an image, say."""
        site, into = self.headers.get("Sec-Fetch-Site", ""), self.headers.get("Sec-Fetch-Dest", "")
        return site == "cross-site" and into != "document"

    def _answer_page(self, asked: dict[str, str]) -> None:
        if unknown := sorted(asked.keys() - set(_PARTS)):  # ?from=… is not to look like what was asked for
            shown, allowed = cut(unknown[0], _LONGEST_NAME), ", ".join(_PARTS)
            self._answer(HTTPStatus.BAD_REQUEST, f"{shown}: is not known in an address; {allowed} are")
            return
        since = asked.get("since", "")
        try:
            view = View(
                asked.get("app", ""), asked.get("query", ""), DURATION.read("since", since) if since else None
            )
        except ConfigError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
            return
        try:
            html = self.server.html(view, lambda: not _has_left(self.connection))
        except SparkEventsError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error), {"Retry-After": str(_RETRY_AFTER_S)})
        except Exception:
            logger.exception("the page of %s cannot be made", view)
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the page cannot be made; see the log")
        else:
            self._answer(HTTPStatus.OK, html, {"Content-Type": "text/html; charset=utf-8"})

    def _answer(self, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
        """Say nothing of each request."""


def _has_left(connection: socket.socket) -> bool:
    """Return whether the client has closed a connection; systems other than Linux say so seldom."""
    poll = select.poll()
    poll.register(connection, _LEFT)
    return bool(poll.poll(0))
