"""Answers of servers that mean no good, or are broken: one try, in one timeout, of bounded size."""

from __future__ import annotations

import gzip

import pytest
import requests

from spark_events.api.toolkit.http_once import OneTryAdapter, innermost
from tests.support.raw_http import DRIPS, dripping, raw_http
from tests.support.socks import socks_proxy


def post(url: str, timeout_s: float | None = 20.0) -> requests.Response:
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, OneTryAdapter())
        return session.post(url, data=b"request", timeout=timeout_s, allow_redirects=False)


@pytest.mark.parametrize("what", DRIPS)
def test_an_answer_that_drips(what: str) -> None:
    with dripping(what) as url, pytest.raises(requests.ReadTimeout) as caught:
        post(url, 0.3)

    assert innermost(caught.value) == "the whole answer was not there within 0.3 s"


@pytest.mark.parametrize("timeout_s", [20.0, None])
def test_a_head_without_an_end(timeout_s: float | None) -> None:
    """Even of answers that are none, and come as fast as they are read."""
    pieces = [b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    with raw_http(pieces) as (url, _), pytest.raises(requests.ConnectionError) as caught:
        post(url, timeout_s)

    assert innermost(caught.value) == "the head of the answer is larger than 1 MiB"


def test_a_proxy_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the request, or for the tunnel that it goes through."""
    with dripping("head") as url:
        for scheme in ("http", "https"):
            monkeypatch.setenv(f"{scheme}_proxy", url)
            with pytest.raises(requests.RequestException) as caught:
                post(f"{scheme}://collector.invalid", 0.3)

            assert innermost(caught.value) == "the whole answer was not there within 0.3 s"


@pytest.mark.parametrize("what", ["head", "body"])
def test_a_proxy_of_socks(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections are of classes of their own."""
    pytest.importorskip("socks", reason="PySocks is missing")
    with dripping(what) as url, socks_proxy(int(url.rpartition(":")[2])) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(requests.RequestException) as caught:
            post("http://collector.invalid", 0.3)

    assert innermost(caught.value) == "the whole answer was not there within 0.3 s"


@pytest.mark.parametrize("packed", [True, False])
def test_an_answer_that_is_too_large(packed: bool) -> None:
    """Of 40 MB, that many packed or not, only the beginning is read."""
    body = bytes(40_000_000)
    pieces = [gzip.compress(body)] if packed else [body[:1_000_000]] * 40
    encoding = b"Content-Encoding: gzip\r\n" if packed else b""
    head = b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (encoding, sum(map(len, pieces)))
    with raw_http([head, *pieces]) as (url, asked):
        answer = post(url)

    assert answer.ok
    assert 1 << 20 <= len(answer.content) < 2 << 20
    assert [path for path, _ in asked] == ["/"]


def test_a_connection_is_used_again() -> None:
    with (
        raw_http([b"HTTP/1.1 200 OK\r\nX-Answer: 1\r\nContent-Length: 2\r\n\r\n", b"ok"]) as (url, asked),
        requests.Session() as session,
    ):
        session.mount("http://", OneTryAdapter())
        answers = [session.post(url, data=b"x", timeout=20) for _ in range(3)]

    assert [(answer.text, answer.headers["X-Answer"]) for answer in answers] == [("ok", "1")] * 3
    assert len(asked) == 3
    assert len({port for _, port in asked}) == 1


def test_a_server_that_asks_for_a_year_is_asked_once() -> None:
    with raw_http([b"HTTP/1.1 503 No\r\nRetry-After: 31536000\r\nContent-Length: 0\r\n\r\n"]) as (url, asked):
        assert post(url).status_code == 503

    assert [path for path, _ in asked] == ["/"]


def test_headers_that_are_broken(caplog: pytest.LogCaptureFixture) -> None:
    """Each answer has them; the log says so once, in one line. What others ask is not touched."""
    broken = b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\nConnection: close\r\nX\x1b: \x1b\r\n\r\n"
    for _ in range(3):
        with raw_http([broken]) as (url, _):
            assert post(url).status_code == 503
    first = [record for record in caplog.records if "Failed to parse headers" in record.msg]
    assert [record.exc_info for record in first] in ([], [None])  # an earlier test may have had some, too
    with raw_http([broken]) as (url, _):
        requests.post(url, data=b"request", timeout=20)
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "http://notaproxy.invalid:1"])
def test_a_proxy_that_is_not_there(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the destination that cannot be reached."""
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(requests.RequestException) as caught:
        post("http://192.0.2.1:4318/v1/logs")

    assert innermost(caught.value).startswith("its proxy (see HTTP_PROXY, HTTPS_PROXY): ")
