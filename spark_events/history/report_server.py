"""Serves the page of a report over HTTP, for those who have no Grafana."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from spark_events.api import ConfigError, ServerAuthentication, ServerTls, SparkEventsError
from spark_events.api.option_types import DURATION
from spark_events.history.live_page import View
from spark_events.runtime.log_once import logger

_CLIENT_TIMEOUT_S = 10
_LONGEST_PATH = 4_096
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class ReportServer(ThreadingHTTPServer):
    """Answers GET / with the page; its query string says what is shown: app, query, since.

    Args:
        address: to listen on, of IPv4 or IPv6.
        port: 0 takes any free one.
        html: returns the page of a view.
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
        html: Callable[[View], str],
        authentication: ServerAuthentication,
        tls: ServerTls | None = None,
    ) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address, port), _Handler)
        self.html = html
        self.authentication = authentication
        self._tls = tls

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.server_address[1])

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake, if TLS is on, and answer; each connection has a thread."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(_CLIENT_TIMEOUT_S)
        with self._tls.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

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
        url = urlsplit(self.path)
        authentication = self.server.authentication
        if not authentication.admits(self.headers.get("Authorization", "")):
            challenge = {"WWW-Authenticate": authentication.challenge}
            self._answer(HTTPStatus.UNAUTHORIZED, "a password or a token is needed", challenge)
        elif url.path != "/" or len(self.path) > _LONGEST_PATH:
            self._answer(HTTPStatus.NOT_FOUND, "the report is at /")
        else:
            self._answer_page({name: values[-1] for name, values in parse_qs(url.query).items()})

    def do_HEAD(self) -> None:
        """Answer as to GET, without the page."""
        self.do_GET()

    def _answer_page(self, asked: dict[str, str]) -> None:
        since = asked.get("since", "")
        try:
            view = View(
                asked.get("app", ""), asked.get("query", ""), DURATION.read("since", since) if since else None
            )
        except ConfigError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
            return
        try:
            html = self.server.html(view)
        except SparkEventsError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
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
