"""A SOCKS5 proxy (RFC 1928) without authentication, which connects to one server whatever it is asked for."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

_NO_AUTHENTICATION = b"\x05\x00"
_CONNECTED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


class _Server(ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def socks_proxy(port: int) -> Iterator[str]:
    """Give the URL of a proxy, all of whose connections go to one port of this machine."""

    class Handler(StreamRequestHandler):
        wbufsize = 0

        def handle(self) -> None:
            _, methods = self.rfile.read(2)
            self.rfile.read(methods)
            self.wfile.write(_NO_AUTHENTICATION)
            *_, length = self.rfile.read(5)  # version, command, reserved, "a name follows", its length
            self.rfile.read(length + 2)
            self.wfile.write(_CONNECTED)
            with socket.create_connection(("127.0.0.1", port)) as server, contextlib.suppress(OSError):
                answers = threading.Thread(target=_relay, args=(server, self.connection), daemon=True)
                answers.start()
                while received := self.rfile.read1(65_536):  # type: ignore[attr-defined]
                    server.sendall(received)
                server.shutdown(socket.SHUT_WR)
                answers.join()

    with _Server(("127.0.0.1", 0), Handler) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"socks5h://127.0.0.1:{proxy.server_address[1]}"
        finally:
            proxy.shutdown()


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError), source.makefile("rb", buffering=0) as reader:
        shutil.copyfileobj(reader, target.makefile("wb", buffering=0))
