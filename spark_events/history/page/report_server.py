"""Serves the page of a report over HTTP, for those who have no Grafana."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from spark_events.api import (
    WRONG_HOST,
    ConfigError,
    ServerAuthentication,
    ServerTls,
    SparkEventsError,
    are_own_names,
)
from spark_events.api.option_types import DURATION
from spark_events.api.toolkit.formatting import cut
from spark_events.api.toolkit.page_server import PageHandler, PageServer
from spark_events.history.page.live_page import View
from spark_events.runtime.log_once import logger

_LONGEST_PATH = 4_096
_MOST_CONNECTIONS = 1_024
_RETRY_AFTER_S = 5
_PARTS = ("app", "query", "since")
_LONGEST_NAME = 60
_LEFT = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class ReportServer(PageServer):
    """Answers GET / with the page; its query string says what is shown: app, query, since.

    Args:
        address: to listen on, of IPv4 or IPv6.
        port: 0 takes any free one.
        html: returns the page of a view; it may ask whether the reader still waits for it.
        authentication: of requests.
        tls: None serves plain HTTP.

    Raises:
        OSError: the port cannot be taken.
    """

    def __init__(
        self,
        address: str,
        port: int,
        html: Callable[[View, Callable[[], bool]], str],
        authentication: ServerAuthentication,
        tls: ServerTls | None = None,
    ) -> None:
        super().__init__(address, port, _Handler, authentication, tls, _MOST_CONNECTIONS)
        self.html = html


class _Handler(PageHandler):
    server: ReportServer

    def answer(self) -> None:
        """Answer with the page."""
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


def _has_left(connection: socket.socket) -> bool:
    """Return whether the client has closed a connection; systems other than Linux say so seldom."""
    poll = select.poll()
    poll.register(connection, _LEFT)
    return bool(poll.poll(0))
