"""Serves a driver's last metrics until they are scraped: a process of its own, which outlives the driver.

It is run as a script, without spark-events, so it imports the standard library alone, and little of that.
Its standard input is the page: a line of JSON (see ``Page``), and the metrics.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
import time
from typing import Any

ENOUGH = 2
"""Scrapes from each address: two servers may share one, and rules may be evaluated more rarely than that."""
_ANYBODY = ""
LEAVE = b"GET /leave?within="
LEAVING = b"leaving\n"
_STRANGERS_S = 5.0
"""How long the page stays at least where another user's process needs the port."""
_CLIENT_TIMEOUT_S = 10.0
_MOST_CONNECTIONS = 16
_LONGEST_REQUEST = 16_384
_TLS_HANDSHAKE = b"\x16"
_LOOK_S = 0.2
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::[0-9]*)?")
"""As in ``spark_events.api.toolkit.servers``, which says what it is for."""
_WRONG_HOST = b"only requests to localhost or to an IP address are answered\n"


class Page:
    """The page, and who has had it how often.

    Args:
        content_type: of the metrics.
        challenge: the header ``WWW-Authenticate`` of an answer to a client without credentials.
        salt, admitted: the HMAC-SHA256, in hex, of each header ``Authorization`` that is answered; if there
            is none, everybody is.
        tls: the files of certificate, key, and authorities of clients or None; None for plain HTTP.
        addresses: from which it was scraped before; if there are none, it is served to all who come, until
            the time is over or the next driver needs the port.
        linger_s: how long to serve it at most, in seconds.
        metrics: the page itself.
        own_names_only: whether only requests to ``localhost`` or to IP addresses are answered.
    """

    def __init__(
        self,
        content_type: str,
        challenge: str,
        salt: str,
        admitted: list[str],
        tls: list[Any] | None,
        addresses: list[str],
        linger_s: float,
        metrics: bytes,
        own_names_only: bool = False,
    ) -> None:
        self._content_type, self._challenge = content_type, challenge
        self._salt, self._admitted = salt, admitted
        self._metrics = metrics
        self._own_names_only = own_names_only
        self._scrapes = dict.fromkeys(addresses or [_ANYBODY], 0)
        # Others than those who come first may be the ones that collect it.
        self._enough: float = ENOUGH if addresses else float("inf")
        self._until_s = time.monotonic() + linger_s
        self._tls: Any = None
        if tls is not None:
            self._tls = _tls_context(*tls)

    @property
    def done(self) -> bool:
        """Whether all have had it, or the time is over."""
        return time.monotonic() > self._until_s or min(self._scrapes.values()) >= self._enough

    def serve(self, connection: Any, address: str) -> None:
        """Answer one request, and close the connection."""
        with connection:
            try:
                connection.settimeout(_CLIENT_TIMEOUT_S)
                encrypted = connection.recv(1, socket.MSG_PEEK) == _TLS_HANDSHAKE
                if self._tls is None:
                    self._answer(connection, address, may_scrape=True)
                elif encrypted:
                    with self._tls.wrap_socket(connection, server_side=True) as secured:
                        self._answer(secured, address, may_scrape=True)
                else:
                    self._answer(connection, address, may_scrape=False)
            except OSError:
                pass  # it left

    def _answer(self, connection: Any, address: str, may_scrape: bool) -> None:
        request = _request_from(connection)
        line = request.split(b"\r\n", 1)[0]
        hosts = _values(request, b"host")
        # The next driver's request has no such header; that of a browser, whoever sent it here, has one.
        if line.startswith(LEAVE) and not hosts and _is_here(connection, address):
            try:  # first, as the process may end at once
                _send(connection, "200 OK", "text/plain", LEAVING)
            finally:
                seconds = float(line.split()[1].partition(b"=")[2])
                is_own = _is_of_this_user(connection.getpeername())
                self._leave_within(seconds if is_own else max(seconds, _STRANGERS_S))
        elif not may_scrape:
            return
        elif self._own_names_only and not all(map(is_own_name, hosts)):
            _send(connection, "421 Misdirected Request", "text/plain", _WRONG_HOST)
        elif not line.startswith((b"GET /metrics ", b"GET /metrics?")):
            _send(connection, "404 Not Found", "text/plain", b"see /metrics\n")
        elif not self._admits(request):
            _send(connection, "401 Unauthorized", "text/plain", b"", self._challenge)
        else:
            _send(connection, "200 OK", self._content_type, self._metrics)
            whose = address if address in self._scrapes else _ANYBODY
            if whose in self._scrapes:
                self._scrapes[whose] += 1

    def _leave_within(self, seconds: float) -> None:
        """Make room for another driver: one scrape is enough now, and there is less time for it."""
        self._enough = 1
        self._until_s = min(self._until_s, time.monotonic() + seconds)

    def _admits(self, request: bytes) -> bool:
        if not self._admitted:
            return True
        import hmac

        given = b""
        for value in _values(request, b"authorization"):
            # Just as ``http.server`` reads it, and ServerAuthentication sees it.
            scheme, _, credentials = value.partition(" ")
            given = f"{scheme.capitalize()} {credentials.strip()}".encode()
        digest = hmac.new(bytes.fromhex(self._salt), given, "sha256").hexdigest()
        return any(hmac.compare_digest(digest, admitted) for admitted in self._admitted)


def _values(request: bytes, name: bytes) -> list[str]:
    """Return the values of a header, each time that a request has it."""
    headers = (line.partition(b":") for line in request.split(b"\r\n")[1:])
    return [value.strip().decode("latin-1") for key, _, value in headers if key.strip().lower() == name]


def is_own_name(host: str) -> bool:
    """Return whether a header ``Host`` is ``localhost`` or a literal IP address, with or without a port."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    of_ipv6, name = match.groups()
    try:
        socket.inet_pton(socket.AF_INET6 if of_ipv6 else socket.AF_INET, of_ipv6 or name)
    except (OSError, ValueError):
        return not of_ipv6 and name.lower() == "localhost"
    return True


def _tls_context(certificate: str, key: str, client_authorities: str | None) -> Any:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_authorities is not None:
        context.load_verify_locations(client_authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _request_from(connection: Any) -> bytes:
    request = b""
    until_s = time.monotonic() + _CLIENT_TIMEOUT_S
    while b"\r\n\r\n" not in request and len(request) < _LONGEST_REQUEST and time.monotonic() < until_s:
        received = connection.recv(4_096)
        if not received:
            break
        request += received
    return request


def _send(connection: Any, status: str, content_type: str, body: bytes, challenge: str = "") -> None:
    head = f"HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    if challenge:
        head += f"WWW-Authenticate: {challenge}\r\n"
    connection.sendall(f"{head}\r\n".encode() + body)


def _is_here(connection: Any, address: str) -> bool:
    """Return whether a client is on this machine."""
    return address == connection.getsockname()[0] or address.startswith(("127.", "::1", "::ffff:127."))


def _is_of_this_user(peer: tuple[Any, ...]) -> bool:
    """Return whether a client on this machine is a process of this user, or of root.

    Linux lists the user of each socket. Elsewhere, nobody's is known.

    Args:
        peer: the client's address and port.
    """
    import os

    port = f":{peer[1]:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table) as lines:
            users = {words[7] for words in map(str.split, lines) if words[1].endswith(port)}
            if users and users <= {"0", str(os.getuid())}:
                return True
    return False


def _end(connection: socket.socket) -> None:
    """End a connection, so that the thread that waits for it ends, too."""
    with contextlib.suppress(OSError):  # it is over
        connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve on the socket whose number is the only argument."""
    server = socket.socket(fileno=int(sys.argv[1]))
    server.settimeout(_LOOK_S)
    page = Page(**json.loads(sys.stdin.buffer.readline()), metrics=sys.stdin.buffer.read())
    clients: list[tuple[threading.Thread, socket.socket]] = []
    while not page.done:
        try:
            connection, (address, *_) = server.accept()
        except OSError:  # nobody came, or is gone again
            continue
        clients = [client for client in clients if client[0].is_alive()]
        if len(clients) >= _MOST_CONNECTIONS:  # the oldest is the likeliest to say nothing
            _end(clients.pop(0)[1])
        thread = threading.Thread(target=page.serve, args=(connection, address), daemon=True)
        clients.append((thread, connection))
        thread.start()
    server.close()


if __name__ == "__main__":
    main()
