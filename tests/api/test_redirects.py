"""Where a redirect leads, and what goes there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.request import Request

import pytest

from spark_events.api import ConfigError
from spark_events.api.toolkit.timed_http import http_opener
from spark_events.history.current import of_endpoint
from tests.support.raw_http import serving

SECRETS = {
    "Authorization": "Bearer s3cret",
    "Proxy-Authorization": "Basic s3cret",
    "Cookie": "session=s3cret",
}


@contextmanager
def asked(status: int = 200, location: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Give the URL of a server, and the headers of its requests; it redirects from ``/`` and ``/metrics``."""
    headers: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers.append({name.lower(): value for name, value in self.headers.items()})
            leads_on = bool(location) and self.path in ("/", "/metrics")
            self.send_response(302 if leads_on else status)
            if leads_on:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with serving(Handler) as url:
        yield url, headers


def test_secrets_do_not_go_to_another_origin() -> None:
    """Another port is one, too; other headers go there."""
    with asked() as (other, there), asked(location=f"{other}/page") as (url, _):
        http_opener().open(Request(url, headers={**SECRETS, "X-Asked": "yes"}), timeout=10).close()

    assert "s3cret" not in str(there)
    assert there[0]["x-asked"] == "yes"


def test_credentials_stay_within_their_origin() -> None:
    """But for the proxy's, which it is given anew where there is one."""
    with asked(location="/page") as (url, here):
        http_opener().open(Request(url, headers=SECRETS), timeout=10).close()

    assert [each.get("authorization") for each in here] == ["Bearer s3cret"] * 2
    assert [each.get("cookie") for each in here] == ["session=s3cret"] * 2
    assert "proxy-authorization" not in here[1]


def test_the_token_of_status_does_not_go_to_another_host() -> None:
    """If that one wants a token, the error says why it got none, and what to do."""
    with (
        asked(status=401) as (other, there),
        asked(location=f"{other}/page?key=s3cret") as (url, here),
        pytest.raises(ConfigError) as caught,
    ):
        of_endpoint(url, "s3cret")

    assert here[0]["authorization"] == "Bearer s3cret"
    assert "authorization" not in there[0]
    said = f"{url}: redirects to {other}/page?******, which answers 401 Unauthorized; the token is not sent there"
    assert str(caught.value) == f"{said}: give that URL, if it is to have the token"
