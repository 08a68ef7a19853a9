"""A server of one's own: its port, its TLS, and who may ask it."""

from __future__ import annotations

import base64
import hmac
import os
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from weakref import WeakSet

from spark_events.api.option_types import Secret

_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::[0-9]*)?")
"""A header ``Host``: an address of IPv6 or something else, and maybe a port."""
WRONG_HOST = (
    "only requests to localhost or to an IP address are answered, because other names could be anyone's; "
    "ask for one of these, or have the server want a token"
)
"""The answer to a request to another name."""
_NOT_IN_CHILDREN: WeakSet[socket.socket] = WeakSet()


def close_in_children(server: socket.socket) -> None:
    """Let forked children close their copy of a socket that listens.

    A pool of processes may outlive the driver: the port would stay taken, and nobody would answer on it.
    """
    _NOT_IN_CHILDREN.add(server)


def _close_all() -> None:
    for server in list(_NOT_IN_CHILDREN):
        with suppress(OSError):
            server.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


class ServerTls:
    """The server's side of TLS; its files are read again when they change.

    Args:
        certificate: PEM file of the server's certificate.
        key: PEM file of that certificate's key.
        client_authorities: PEM file of those whose clients may connect; None asks clients for nothing.

    Attributes:
        files: these three.

    Raises:
        OSError: a file cannot be read, or is not a PEM file of its kind.
    """

    def __init__(self, certificate: Path, key: Path, client_authorities: Path | None) -> None:
        self.files = (certificate, key, client_authorities)
        self._stamp = self._file_times()
        self._context = self._load()

    @property
    def asks_clients(self) -> bool:
        """Whether clients need a certificate."""
        return self.files[2] is not None

    @property
    def context(self) -> ssl.SSLContext:
        """For the next connection; files that cannot be read just now leave the one before."""
        try:
            stamp = self._file_times()
            if stamp != self._stamp:
                self._context, self._stamp = self._load(), stamp
        except OSError:
            pass  # being replaced; the next connection tries again
        return self._context

    def _load(self) -> ssl.SSLContext:
        certificate, key, client_authorities = self.files
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        if client_authorities is not None:
            context.load_verify_locations(client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _file_times(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in self.files if path is not None)


def normal_header(authorization: str) -> str:
    """Return a header ``Authorization`` with its scheme as we write it, because its case does not matter."""
    scheme, _, credentials = authorization.strip().partition(" ")
    return f"{scheme.capitalize()} {credentials.strip()}"


class ServerAuthentication:
    """The credentials of which a request needs one; if there are none, it needs none.

    Args:
        realm: what the server says that it protects.
        token: of bearer authentication; None for none.
        passwords: of basic authentication, by user.
    """

    def __init__(self, realm: str, token: Secret | None, passwords: Mapping[str, Secret]) -> None:
        self._realm = realm
        self._token = token
        self._passwords = passwords

    @property
    def needed(self) -> bool:
        """Whether a request needs credentials."""
        return bool(self._passwords) or self._token is not None

    @property
    def challenge(self) -> str:
        """The challenge in the answer to a request without credentials."""
        return f'Basic realm="{self._realm}"' if self._passwords else "Bearer"

    def admits(self, authorization: str) -> bool:
        """Return whether a request's header ``Authorization`` has them."""
        expected = self._headers()
        given = normal_header(authorization).encode("utf-8", "replace")
        # In constant time, so that its duration says nothing of how much was right.
        return not expected or any(hmac.compare_digest(given, header) for header in expected)

    def digests(self, salt: bytes) -> list[str]:
        """Return the HMAC-SHA256, in hex, of each header that is admitted, for another process."""
        return [hmac.new(salt, header, "sha256").hexdigest() for header in self._headers()]

    def _headers(self) -> list[bytes]:
        """Return the headers ``Authorization`` that have the credentials."""
        headers = []
        for user, password in self._passwords.items():
            pair = f"{user}:{password.reveal()}"
            headers.append("Basic " + base64.b64encode(pair.encode()).decode())
        if self._token is not None:
            headers.append("Bearer " + self._token.reveal())
        return [header.encode() for header in headers]


def answers_own_names_only(
    server: socket.socket, authentication: ServerAuthentication, tls: ServerTls | None
) -> bool:
    """Return whether a server answers only requests to this machine's own names; see ``are_own_names``.

    It is so if nothing but the loopback address protects it. Otherwise, a page of the web could read what it
    serves: its browser runs here, and the page's host may have this machine's address a moment later.

    Args:
        server: the socket that listens.
        authentication: of its requests.
        tls: which protects it, too: browsers compare the certificate's names.
    """
    if authentication.needed or tls is not None:
        return False
    address = ip_address(server.getsockname()[0].partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def are_own_names(hosts: Iterable[str]) -> bool:
    """Return whether all headers ``Host`` of a request are ``localhost`` or literal IP addresses.

    Nobody else can have these names. A request without the header is not a browser's.
    """
    return all(map(_is_own_name, hosts))


def _is_own_name(host: str) -> bool:
    match = _HOST.fullmatch(host.strip())
    if match is None:
        return False
    of_ipv6, name = match.groups()
    try:
        socket.inet_pton(socket.AF_INET6 if of_ipv6 else socket.AF_INET, of_ipv6 or name)
    except (OSError, ValueError):  # no address
        return not of_ipv6 and name.lower() == "localhost"
    return True
