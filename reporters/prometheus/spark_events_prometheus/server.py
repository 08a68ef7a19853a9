"""A small HTTP server for one page; prometheus-client's own has no time limit and answers on every path."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.exposition import choose_encoder

from spark_events.api import (
    WRONG_HOST,
    ServerAuthentication,
    ServerTls,
    answers_own_names_only,
    are_own_names,
    close_in_children,
)
from spark_events_prometheus.exposition import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE
from spark_events_prometheus.linger import Scrapers, hand_over
from spark_events_prometheus.listening import family_of

_CLIENT_TIMEOUT_S = 10
_MOST_CONNECTIONS = 64
_PAUSE_S = 0.05
ANSWERED_BY_DRIVER = {"Spark-Events-Answered-By": "driver"}
"""The header by which ``status`` knows that the driver answers now, rather than something that collects."""
_NO_HEADERS: Mapping[str, str] = {}
logger = logging.getLogger("spark_events.prometheus")


class MetricsServer(ThreadingHTTPServer):
    """Serves metrics at ``/metrics``, and ``/healthz``, on daemon threads.

    Each connection has a thread; if there are too many, the oldest is closed. So a silent client holds up
    nobody: its TLS handshake waits in its own thread, and the number of waiting clients is limited.

    Args:
        port: 0 takes any free one.
        render: returns the metrics, in OpenMetrics' format where its argument is true.
        tls: None serves plain HTTP.

    Raises:
        OSError: the port cannot be taken.
    """

    daemon_threads = True
    # With socketserver's default of 5, a burst of connections would wait seconds for the kernel to retry.
    request_queue_size = 128
    # Two drivers on one port would each get some of the scrapes.
    allow_reuse_port = False

    def __init__(
        self,
        address: str,
        port: int,
        render: Callable[[bool], bytes],
        authentication: ServerAuthentication,
        tls: ServerTls | None,
    ) -> None:
        self.address_family = family_of(address)
        super().__init__((address, port), _MetricsHandler)
        close_in_children(self.socket)
        self.render = render
        self.scrapers = Scrapers()
        self.authentication = authentication
        self._tls = tls
        self.own_names_only = answers_own_names_only(self.socket, authentication, tls)
        self._open: dict[int, socket.socket] = {}
        """The connections by their ids, the oldest first."""
        self._lock = threading.Lock()
        name = f"spark-events-metrics-{self.port}"
        threading.Thread(target=self.serve_forever, args=(0.2,), name=name, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.server_address[1])

    def close(self, linger_ms: int = 0, awaits_scrape: bool = False) -> None:
        """Stop serving, and free the port once those who scraped have had the last values, too.

        Args:
            linger_ms: how long another process serves these, at most, in ms.
            awaits_scrape: whether it does so for whoever comes, if nobody has scraped.
        """
        self.shutdown()
        addresses = self.scrapers.expected
        try:
            if linger_ms and (addresses or awaits_scrape):
                hand_over(
                    self.socket, self.render(False), addresses, self.authentication, self._tls, linger_ms
                )
        except OSError as error:
            logger.warning("the last values are not served any longer: %s", error)
        finally:
            self.server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_S)  # with too many open files, it would be the same again at once
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread."""
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                with contextlib.suppress(OSError):
                    next(iter(self._open.values())).shutdown(socket.SHUT_RDWR)
            self._open[id(request)] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the process may have no more threads
            with self._lock:
                self._open.pop(id(request), None)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(id(request), None)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake, if TLS is on, and answer."""
        request.settimeout(_CLIENT_TIMEOUT_S)
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        secured = self._tls.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        with secured:
            with self._lock:
                self._open[id(request)] = secured
            secured.do_handshake()
            super().finish_request(secured, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not write to stderr: a client that left, or a scrape during exit, is not worth reporting."""
        logger.debug("could not answer a request from %s", client_address, exc_info=True)


class _MetricsHandler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = _CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        authentication = self.server.authentication
        if self.server.own_names_only and not are_own_names(self.headers.get_all("Host", [])):
            self._answer(421, "text/plain", f"{WRONG_HOST}\n".encode())
        elif path == "/metrics" and not authentication.admits(self.headers.get("Authorization", "")):
            hint = b"see auth.username, auth.password, auth.token\n"
            self._answer(401, "text/plain", hint, {"WWW-Authenticate": authentication.challenge})
        elif path == "/metrics":
            # Before the answer: a driver that closes right after it still waits for the next scrape.
            if self.command == "GET":
                self.server.scrapers.scraped(self.client_address[0])
            openmetrics = _wants_openmetrics(self.headers.get("Accept", ""))
            content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE
            self._answer(200, content_type, self.server.render(openmetrics), ANSWERED_BY_DRIVER)
        elif path == "/healthz":
            self._answer(200, "text/plain", b"ok\n")
        else:
            self._answer(404, "text/plain", b"see /metrics\n")

    do_HEAD = do_GET  # noqa: N815 - the name is http.server's
    """The same answer, of which the body is left out."""

    def _answer(
        self, code: int, content_type: str, body: bytes, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Do nothing: a scrape every few seconds is not worth logging."""


def _wants_openmetrics(accept: str) -> bool:
    try:
        _, chosen = choose_encoder(accept)
    except Exception:  # a version that is not a number: then all that is there can be had as plain text
        return False
    return bool(chosen.startswith("application/openmetrics-text"))
