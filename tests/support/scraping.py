"""Scraping by hand: with a password, over TLS, under any name."""

from __future__ import annotations

import base64
import socket
import ssl
import urllib.error
import urllib.request

from tests.support.pki import Pki

OWN_HOSTS = ("localhost", "LocalHost:80", "127.0.0.1:9249", "10.0.0.2", "[::1]", "[fe80::2]:9249")
OTHER_HOSTS = (
    "",
    "other.example",
    "other.example:9249",
    "localhost.other.example",
    "127.0.0.1.other.example",
    "localhost@other.example",
    "other.example:localhost",
    "[localhost]",
    "[other.example]:80",
    "::1",
    "1",
    "a\0b",
)


def code_of(url: str, context: ssl.SSLContext | None = None, **headers: str) -> int:
    """Return the code of an answer."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=5, context=context
        ) as page:
            assert page.read()
            return int(page.status)
    except urllib.error.HTTPError as error:
        return error.code if error.code != 401 or error.headers["WWW-Authenticate"] else -1


def trusting(pki: Pki, client: bool = False) -> ssl.SSLContext:
    """Return the TLS of a client that trusts the server, and may have a certificate of its own."""
    context = ssl.create_default_context(cafile=pki.authorities)
    if client:
        context.load_cert_chain(pki.client, pki.client_key)
    return context


def basic(pair: str) -> str:
    """Return the header ``Authorization`` of a user and a password."""
    return "Basic " + base64.b64encode(pair.encode()).decode()


def status_under(hosts: tuple[str, ...], port: int, path: str) -> int:
    """Return the status of the answer to a request with these headers ``Host``."""
    head = "".join(f"Host: {host}\r\n" for host in hosts)
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\n{head}\r\n".encode())
        with client.makefile("rb") as answer:
            return int(answer.read().split()[1])
