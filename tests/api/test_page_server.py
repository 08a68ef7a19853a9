"""Servers that strangers can reach: whatever they send, it is little that they take, and others are answered."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from spark_events_prometheus.server import MetricsServer

from spark_events.api import Secret, ServerAuthentication
from spark_events.api.toolkit.page_server import PageServer
from spark_events.history.page.report_server import ReportServer
from tests.support.waiting import wait_until

ADDRESS = "127.0.0.1"
FEW = 5
METRICS, REPORT = "spark_events_prometheus.server", "spark_events.history.page.report_server"


@contextmanager
def metrics(render: Callable[[], str]) -> Iterator[PageServer]:
    authentication = ServerAuthentication("metrics", Secret("right"), {})
    server = MetricsServer(ADDRESS, 0, lambda _: render().encode(), authentication, None)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def report(render: Callable[[], str]) -> Iterator[PageServer]:
    authentication = ServerAuthentication("report", Secret("right"), {})
    server = ReportServer(ADDRESS, 0, lambda *_: render(), authentication)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


SERVERS = pytest.mark.parametrize(
    ("serving", "path"), [(metrics, "/metrics"), (report, "/")], ids=["metrics", "report"]
)


def client_of(server: PageServer, opened: ExitStack) -> socket.socket:
    return opened.enter_context(socket.create_connection((ADDRESS, server.port), timeout=120))


def ask(client: socket.socket, path: str, more: bytes = b"") -> bytes:
    """Ask with the token, and return the status of the answer."""
    with suppress(OSError):  # it may answer and close before all is sent
        client.sendall(b"GET %s HTTP/1.0\r\nAuthorization: Bearer right\r\n%s\r\n" % (path.encode(), more))
    return client.makefile("rb").readline().split()[1]


@SERVERS
@pytest.mark.parametrize("lines", [1, 90])
def test_headers_are_read_up_to_a_limit(serving: type, path: str, lines: int) -> None:
    """Without a token, too: they are read before it."""
    with serving(lambda: "page") as server, ExitStack() as opened:
        length = 20_000 // lines
        headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * length) for number in range(lines))
        assert ask(client_of(server, opened), path, headers) == b"431"
        short = headers.replace(b"x" * length, b"x" * (length // 2))
        assert ask(client_of(server, opened), path, short) == b"200"


@SERVERS
def test_a_first_line_is_read_up_to_a_limit(serving: type, path: str) -> None:
    with serving(lambda: "page") as server, ExitStack() as opened:
        assert ask(client_of(server, opened), path + "?" + "x" * 20_000) == b"414"


@SERVERS
@pytest.mark.parametrize("sent", [b"x", b""], ids=["drips", "silent"])
def test_a_request_may_take_only_so_long(
    serving: type, path: str, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is not given anew with each byte."""
    monkeypatch.setattr("spark_events.api.toolkit.page_server._CLIENT_TIMEOUT_S", 0.5)
    with serving(lambda: "page") as server, ExitStack() as opened:
        client = client_of(server, opened)
        client.settimeout(0.05)
        until_s = time.monotonic() + 120
        while True:
            assert time.monotonic() < until_s, "it still reads"
            try:
                client.sendall(sent)
                if not client.recv(1_000):
                    break
            except TimeoutError:
                continue
            except OSError:
                break


@SERVERS
def test_silent_clients_have_few_threads(serving: type, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have asked are answered, however many say nothing."""
    monkeypatch.setattr(f"{METRICS}._MOST_CONNECTIONS", FEW)
    monkeypatch.setattr(f"{REPORT}._MOST_CONNECTIONS", FEW)
    monkeypatch.setattr("spark_events.api.toolkit.page_server._CLIENT_TIMEOUT_S", 600)
    asked, go, burst_is_over = threading.Event(), threading.Event(), threading.Event()
    let_go = PageServer._let_go

    def let_go_late(server: PageServer, client_address: object) -> None:
        """As where one core is busy: threads end long after their connections."""
        assert burst_is_over.wait(120)
        let_go(server, client_address)

    monkeypatch.setattr(PageServer, "_let_go", let_go_late)

    def page() -> str:
        asked.set()
        assert go.wait(120)
        return "page"

    with serving(page) as server, ExitStack() as opened:
        threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
        first = client_of(server, opened)
        first.sendall(b"GET %s HTTP/1.0\r\nAuthorization: Bearer right\r\n\r\n" % path.encode())
        assert asked.wait(120)
        silent = [opened.enter_context(socket.socket()) for _ in range(150)]
        for client in silent:  # without waiting, so that none is closed before the next comes
            client.setblocking(False)
            client.connect_ex((ADDRESS, server.port))
        wait_until(lambda: threading.active_count() > threads + len(silent), "all have come")
        burst_is_over.set()
        wait_until(lambda: threading.active_count() <= threads + FEW, "only a few have threads")
        assert len(os.listdir("/proc/self/fd")) <= files + len(silent) + 1 + FEW
        go.set()
        assert first.makefile("rb").readline().split()[1] == b"200"
        assert ask(client_of(server, opened), path) == b"200"
