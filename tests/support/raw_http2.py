"""A server of HTTP/2 that answers as none of gRPC does: as a proxy in front of a collector, say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS = 0, 1, 3, 4
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1


def headers(stream: int, *fields: tuple[str, str], ends: bool = False) -> bytes:
    """Return a frame of headers, each written out (RFC 7541, 6.2.2)."""
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields)
    return _frame(_HEADERS, _END_HEADERS | (_END_STREAM if ends else 0), stream, block)


def data(stream: int, payload: bytes) -> bytes:
    """Return a frame of data, the last one."""
    return _frame(_DATA, _END_STREAM, stream, payload)


def reset(stream: int, code: int) -> bytes:
    """Return a frame that ends a request (RFC 9113, 6.4)."""
    return _frame(_RST_STREAM, 0, stream, code.to_bytes(4, "big"))


@contextmanager
def raw_http2(
    fields: Sequence[tuple[str, str]], body: bytes | None = b"", reset_code: int = -1
) -> Iterator[str]:
    """Give the URL of a server that answers each request with these headers, and a body where there is one."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer(stream: int) -> bytes:
        if reset_code >= 0:
            return reset(stream, reset_code)
        return headers(stream, *fields, ends=body is None) + (b"" if body is None else data(stream, body))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=_talk, args=(connection, answer), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()


def _talk(connection: socket.socket, answer: object) -> None:
    assert callable(answer)
    with connection, connection.makefile("rb") as received:
        try:
            received.read(len(_PREFACE))
            connection.sendall(_frame(_SETTINGS, 0, 0))
            while len(head := received.read(9)) == 9:
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                received.read(int.from_bytes(head[:3], "big"))
                if kind == _SETTINGS and not flags & _ACK:
                    connection.sendall(_frame(_SETTINGS, _ACK, 0))
                if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                    connection.sendall(answer(stream))
        except OSError:
            pass  # whoever asked is gone


def _text(value: str) -> bytes:
    assert len(value) < 127  # longer ones are written in another way
    return bytes([len(value)]) + value.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
