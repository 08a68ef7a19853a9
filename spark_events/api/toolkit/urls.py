"""URLs that somebody has configured."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http_url(text: str) -> bool:
    """Return whether a text is a URL of HTTP or HTTPS, with a host, and a port from 1 to 65535 if any.

    Sockets would take a larger port for another, and show what is sent there to whomever that belongs to.
    """
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
