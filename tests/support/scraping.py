"""Scraping by hand: with a password, over TLS."""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request

from tests.support.pki import Pki


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
