"""A catalogue that receives OpenLineage's events over HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import free_port


class Catalogue:
    """An HTTP server that answers as it is told, and when ``go_on`` is set; no real one can be made to."""

    def __init__(self) -> None:
        self.port = free_port()
        self.code = 200
        self.go_on = threading.Event()
        self.go_on.set()
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.asked = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        catalogue = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                catalogue.asked += 1
                catalogue.go_on.wait()
                catalogue.keys.append(self.headers.get("Authorization"))
                if catalogue.code == 200:
                    catalogue.events.append(json.loads(body))
                self.send_response(catalogue.code)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
