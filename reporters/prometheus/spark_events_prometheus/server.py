"""The server of the metrics; prometheus-client's own has no time limit and answers on every path."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from prometheus_client.exposition import choose_encoder

from spark_events.api import (
    WRONG_HOST,
    ServerAuthentication,
    ServerTls,
    are_own_names,
    close_in_children,
)
from spark_events.api.toolkit.page_server import PageHandler, PageServer
from spark_events_prometheus.exposition import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE
from spark_events_prometheus.linger import Scrapers, hand_over

_MOST_CONNECTIONS = 64
ANSWERED_BY_DRIVER = {"Spark-Events-Answered-By": "driver"}
"""The header by which ``status`` knows that the driver answers now, rather than something that collects."""
_NO_HEADERS: Mapping[str, str] = {}
logger = logging.getLogger("spark_events.prometheus")


class MetricsServer(PageServer):
    """Serves metrics at ``/metrics``, and ``/healthz``, on daemon threads.

    Args:
        port: 0 takes any free one.
        render: returns the metrics, in OpenMetrics' format where its argument is true.
        tls: None serves plain HTTP.

    Raises:
        OSError: the port cannot be taken.
    """

    def __init__(
        self,
        address: str,
        port: int,
        render: Callable[[bool], bytes],
        authentication: ServerAuthentication,
        tls: ServerTls | None,
    ) -> None:
        super().__init__(address, port, _MetricsHandler, authentication, tls, _MOST_CONNECTIONS)
        close_in_children(self.socket)
        self.render = render
        self.scrapers = Scrapers()
        name = f"spark-events-metrics-{self.port}"
        threading.Thread(target=self.serve_forever, args=(0.2,), name=name, daemon=True).start()

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


class _MetricsHandler(PageHandler):
    server: MetricsServer

    def answer(self) -> None:
        """Answer with the metrics, or that they cannot be had so."""
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


def _wants_openmetrics(accept: str) -> bool:
    try:
        _, chosen = choose_encoder(accept)
    except Exception:  # a version that is not a number: then all that is there can be had as plain text
        return False
    return bool(chosen.startswith("application/openmetrics-text"))
