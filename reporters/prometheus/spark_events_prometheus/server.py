"""A small HTTP server for one page; prometheus-client's own has no time limit and answers on every path."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

_CLIENT_TIMEOUT_S = 10
logger = logging.getLogger("spark_events.prometheus")


class MetricsServer:
    """Serves a registry at ``/metrics``, and ``/healthz``, on daemon threads.

    Args:
        address: the address to listen on.
        port: the port; 0 takes any free one.
        registry: what is served.

    Raises:
        OSError: the port cannot be taken.
    """

    def __init__(self, address: str, port: int, registry: CollectorRegistry) -> None:
        handler = type("Handler", (_Handler,), {"registry": registry})
        self._server = _Server((address, port), handler)
        name = f"spark-events-metrics-{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name=name, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two drivers on one port would each get some of the scrapes.
    allow_reuse_port = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing to stderr: a client that went away, or a scrape while Python ends, is no news."""
        logger.debug("a request of %s could not be answered", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    timeout = _CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/metrics":
            encoder, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, content_type, encoder(self.registry))
        elif path == "/healthz":
            self._answer(200, "text/plain", b"ok\n")
        else:
            self._answer(404, "text/plain", b"see /metrics\n")

    def _answer(self, code: int, content_type: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: a scrape every few seconds is no news."""
