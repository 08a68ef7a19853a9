"""An HTTP server that answers byte by byte, as a hostile or a broken one does."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PAUSE_S = 0.02
_OK = b"HTTP/1.1 200 OK\r\n"
_END = b"Content-Length: 0\r\n\r\n"

DRIPS = {
    "head": [_OK, *[b"X-%d: x\r\n" % number for number in range(60)], _END],
    "header line": [_OK, b"X: ", *[b"x"] * 60, b"\r\n", _END],
    "body": [_OK, b"Content-Length: 60\r\n\r\n", *[b"x"] * 60],
    "chunks": [_OK, b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n"] * 60, b"0\r\n\r\n"],
    "100 Continue": [*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 60, _OK, _END],
}
"""Answers in pieces: all of them together take 1 s and more, and no pause between two is as long as 300 ms."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *arguments: object) -> None:
        """Say nothing of clients that give up."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Give the URL of a server on a free port of this machine that hands its requests to this."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def raw_http(pieces: Iterable[bytes], pause_s: float = 0.0) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Give the URL of a server that answers each request with these pieces, and what it is asked for: paths and clients' ports."""
    asked: list[tuple[str, int]] = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((self.path, self.client_address[1]))
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    if over.wait(pause_s):
                        return
            except ConnectionError:  # whoever asked has given up
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_CONNECT = _answer  # noqa: N815 - names of http.server

        def log_message(self, *arguments: object) -> None:
            pass

    with serving(Handler) as url:
        try:
            yield url, asked
        finally:
            over.set()


@contextmanager
def dripping(what: str) -> Iterator[str]:
    """Give the URL of a server that drips one of ``DRIPS``."""
    with raw_http(DRIPS[what], _PAUSE_S) as (url, _):
        yield url
