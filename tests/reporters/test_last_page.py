"""The last page of the Prometheus reporter, which another process serves once the driver is gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_events_prometheus import last_page, linger, reporter
from spark_events_prometheus.factory import PrometheusReporterFactory
from spark_events_prometheus.linger import ask_to_leave
from spark_events_prometheus.reporter import PrometheusReporter
from spark_events_prometheus.server import MetricsServer

from spark_events.api import ConfigError, Counter, ReporterConfig, ServerAuthentication, are_own_names
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup
from tests.support.pki import Pki
from tests.support.raw_http import raw_http
from tests.support.scraping import OTHER_HOSTS, OWN_HOSTS, basic, code_of, status_under, trusting
from tests.support.waiting import free_port, http_get, is_listening, wait_until

PREFIX = "spark.metrics.reporter.prom."
DRIVER = """
import sys
from spark_events_prometheus.factory import PrometheusReporterFactory
from spark_events.api import ReporterConfig
from tests.support.waiting import http_get

options = {"port": sys.argv[1], "linger.timeout": "60s"}
reporter = PrometheusReporterFactory().create(ReporterConfig("spark.metrics.reporter.prom.", options))
reporter.open()
http_get(reporter.destination)
reporter.close()
print("ended")
"""


class Served:
    """A reporter with one counter, on a port that is free again at the end of the test."""

    def __init__(self, port: int, options: dict[str, str], tells_end: bool = False) -> None:
        self.port = port
        ports = options.pop("ports", str(port))
        values = {"port": ports, "linger.timeout": "60s", **options}
        config = ReporterConfig(PREFIX, values, tells_end=tells_end)
        self.reporter: PrometheusReporter = PrometheusReporterFactory().create(config)
        self.counter = Counter()
        group = ScopeGroup(Registry(()), ("spark",), (), {}, {})
        self.reporter.notify_of_added_metric(self.counter, "rows", group)
        self.reporter.open()
        self.url = self.reporter.destination

    @property
    def listening(self) -> bool:
        return is_listening("127.0.0.1", self.port)


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(port: int | None = None, tells_end: bool = False, **options: str) -> Served:
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        made.append(Served(port or free_port(), named, tells_end))
        return made[-1]

    yield start
    for served in made:
        served.reporter.close()
    for served in made:
        leave(served.port)


def leave(port: int) -> None:
    if ask_to_leave("127.0.0.1", port, 0):
        wait_until(lambda: not is_listening("127.0.0.1", port), "the port is free")


def test_another_port_of_a_range_is_taken_first(serve: Callable[..., Served]) -> None:
    """The last page of a driver stays where the next one can serve on the next port at once."""
    first = serve()
    http_get(first.url)
    first.reporter.close()
    second = serve(first.port, ports=f"{first.port}-{first.port + 50}")
    assert second.url != first.url
    assert http_get(first.url)


def test_the_end_is_scraped(serve: Callable[..., Served]) -> None:
    """Who has scraped gets the last values twice; then the process ends by itself."""
    served = serve()
    assert "spark_rows_total 0.0" in http_get(served.url)
    served.counter.inc(7)
    served.reporter.close()

    assert "spark_rows_total 7.0" in http_get(served.url)
    assert code_of(served.url.replace("/metrics", "/healthz")) == 404
    assert "spark_rows_total 7.0" in http_get(served.url)
    wait_until(lambda: not served.listening, "the port is free")


def test_one_that_nobody_has_scraped(serve: Callable[..., Served]) -> None:
    """It ends with its driver, unless it is to wait for whoever comes: until the next driver needs the port."""
    served = serve()
    served.reporter.close()
    assert not served.listening

    served = serve(linger__include_unscraped="true")
    served.counter.inc(7)
    served.reporter.close()
    for _ in range(last_page.ENOUGH + 2):  # somebody else may have the values first
        assert "spark_rows_total 7.0" in http_get(served.url)
    assert "spark_rows_total 0.0" in http_get(serve(served.port).url)


def test_the_end_of_a_driver_that_was_killed(serve: Callable[..., Served]) -> None:
    """Another process tells it, at the first port that is free then; the next driver gets the port before."""
    served = serve(tells_end=True)
    assert not served.listening
    taken = serve(served.port)
    served.reporter.close()
    assert "spark_rows_total 0.0" in http_get(taken.url)
    taken.reporter.close()
    leave(taken.port)

    served = serve(served.port, tells_end=True)
    served.counter.inc(7)
    served.reporter.close()
    url = f"http://127.0.0.1:{served.port}/metrics"
    assert "spark_rows_total 7.0" in http_get(url)
    next_driver = serve(served.port)
    assert "spark_rows_total 0.0" in http_get(next_driver.url)


@pytest.mark.parametrize(
    ("port", "starts", "why"),
    [("0", True, "port 0 is another one each time"), ("", True, "in use"), ("", False, "no process today")],
)
def test_why_the_end_of_a_killed_driver_is_not_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, port: str, starts: bool, why: str
) -> None:
    """Only what is so is said: a port may be free, and no process can be started."""

    def popen(*_: Any, **__: Any) -> Any:
        raise OSError("no process today")

    if not starts:
        monkeypatch.setattr(linger.subprocess, "Popen", popen)
    with socket.socket() as other:
        taken = port or str(free_port())
        if starts and not port:
            other.bind(("127.0.0.1", int(taken)))
            other.listen()
        config = ReporterConfig(PREFIX, {"port": taken}, tells_end=True)
        PrometheusReporterFactory().create(config).close()
    assert f"{PREFIX}port: the end is not served: " in caplog.text
    assert why in caplog.text


def test_expected_before_it_is_answered() -> None:
    """However soon a driver closes after its page has arrived, the same server is waited for."""
    everyone = ServerAuthentication("metrics", None, {})
    server = MetricsServer("127.0.0.1", 0, lambda _: b"%d" % len(server.scrapers.expected), everyone, None)
    try:
        assert http_get(f"http://127.0.0.1:{server.port}/metrics") == "1"
    finally:
        server.close()


@pytest.mark.parametrize("options", [{}, {"linger.timeout": "0"}])
def test_nobody_waits(serve: Callable[..., Served], options: dict[str, str]) -> None:
    """Nothing is left of a driver that nobody scraped, or that should not linger."""
    served = serve(**options)
    if options:
        http_get(served.url)
    served.reporter.close()
    assert not served.listening


def test_nobody_comes(serve: Callable[..., Served]) -> None:
    """It does not wait longer than it may."""
    served = serve(linger__timeout="100ms")
    http_get(served.url)
    served.reporter.close()
    wait_until(lambda: not served.listening, "the port is free")


def test_the_driver_does_not_wait() -> None:
    """Its process ends, and whoever reads its output sees the end of that, while the page is still there."""
    port = free_port()
    run = subprocess.run(
        [sys.executable, "-c", DRIVER, str(port)], capture_output=True, text=True, check=True, timeout=50
    )
    assert (run.stdout, run.stderr) == ("ended\n", "")
    assert is_listening("127.0.0.1", port)
    leave(port)


def test_the_next_driver_takes_the_port(serve: Callable[..., Served]) -> None:
    """A last page that has been scraped makes room at once; a driver does not."""
    port = free_port()
    first = serve(port)
    http_get(first.url)
    first.reporter.close()
    http_get(first.url)
    second = serve(port)
    second.counter.inc(2)
    assert "spark_rows_total 2.0" in http_get(second.url)
    with pytest.raises(ConfigError, match="cannot listen on port"):
        serve(port)
    assert "spark_rows_total 2.0" in http_get(second.url)


def test_it_says_that_it_leaves_before_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process ends as soon as it may: who asked would take the port for another program's."""
    page = last_page.Page("text/plain", "", "", [], None, ["127.0.0.1"], 60, b"")
    done = []
    send = last_page._send

    def recorded(*arguments: Any) -> None:
        done.append(page.done)
        send(*arguments)

    monkeypatch.setattr(last_page, "_send", recorded)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for request in (b"GET /metrics HTTP/1.0", last_page.LEAVE + b"0 HTTP/1.0"):
            with socket.create_connection(server.getsockname()) as asking:
                asking.sendall(request + b"\r\n\r\n")
                page.serve(server.accept()[0], "127.0.0.1")
    assert (done, page.done) == ([False, False], True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may act as another user")
def test_another_user_does_not_make_it_leave_at_once() -> None:
    """Whose driver needs the port gets it after five seconds, whatever it asks for."""
    page = last_page.Page("text/plain", "", "", [], None, ["127.0.0.1"], 60, b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if child == 0:
            os.setuid(12_345)
            with socket.create_connection(server.getsockname()) as asking:
                asking.sendall(last_page.LEAVE + b"0 HTTP/1.0\r\n\r\n")
                asking.recv(9)
            os._exit(0)
        page.serve(server.accept()[0], "127.0.0.1")
        os.waitpid(child, 0)
    assert not page.done


def test_no_browser_makes_it_leave() -> None:
    """A page of the web may send a browser there, whose requests have a header ``Host``; a driver's has none."""
    page = last_page.Page("text/plain", "", "", [], None, ["127.0.0.1"], 60, b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        for header, leaves in ((b"Host: 127.0.0.1:9249\r\n", False), (b"", True)):
            with socket.create_connection(server.getsockname()) as asking:
                asking.sendall(last_page.LEAVE + b"0 HTTP/1.0\r\n" + header + b"\r\n")
                page.serve(server.accept()[0], "127.0.0.1")
                with asking.makefile("rb") as answer:
                    assert answer.read().endswith(last_page.LEAVING) is leaves
            assert page.done is leaves


def test_a_page_that_ends_meanwhile(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is free once it was asked is taken, whatever it said."""
    first = serve(linger__timeout="0")

    def asked(address: str, port: int) -> bool:
        first.reporter.close()
        return False

    monkeypatch.setattr(reporter, "ask_to_leave", asked)
    assert http_get(serve(first.port).url)


def test_clients_that_say_nothing(serve: Callable[..., Served]) -> None:
    """They neither hide the end nor keep the port: the oldest of many is ended."""
    served = serve()
    http_get(served.url)
    served.counter.inc(7)
    served.reporter.close()
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    assert "spark_rows_total 7.0" in http_get(served.url)
    assert ask_to_leave("127.0.0.1", served.port)
    for client in silent:
        client.close()


def test_something_else_on_the_port_that_never_ends_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver does not wait for it, however often a byte comes."""
    monkeypatch.setattr(linger, "_ANSWERS_WITHIN_S", 0.2)
    with raw_http([b"x"] * 500, pause_s=0.02) as (url, _):
        assert not ask_to_leave("127.0.0.1", int(url.rpartition(":")[2]))


def test_the_next_driver_waits_a_little(serve: Callable[..., Served]) -> None:
    """It leaves a last page the time for a scrape, but no more."""
    first = serve()
    http_get(first.url)
    first.reporter.close()
    assert ask_to_leave("127.0.0.1", first.port)
    assert "spark_rows_total 0.0" in http_get(first.url)
    wait_until(lambda: not first.listening, "the port is free")
    assert not ask_to_leave("127.0.0.1", first.port)


def test_the_same_secrets(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """Either of password and token will do, nothing else."""
    monkeypatch.setenv("PASSWORD", "päss")
    served = serve(auth__username="me", auth__password="env:PASSWORD", auth__token="t0ken")
    assert code_of(served.url) == 401
    assert code_of(served.url, Authorization="Bearer t0ken") == 200
    served.reporter.close()

    assert code_of(served.url) == 401
    assert code_of(served.url, Authorization=basic("me:wrong")) == 401
    assert code_of(served.url, Authorization=basic("me:päss")) == 200
    assert code_of(served.url, Authorization="bEARER t0ken") == 200
    wait_until(lambda: not served.listening, "the port is free")


def test_the_same_names(serve: Callable[..., Served]) -> None:
    """Without a token, only this machine's own names are answered; who asks by another has not scraped."""
    served = serve()
    http_get(served.url)
    served.reporter.close()
    assert status_under(("other.example",), served.port, "/metrics") == 421
    assert status_under(("localhost", "other.example"), served.port, "/metrics") == 421
    assert status_under((), served.port, "/metrics") == 200
    assert status_under(("localhost:9249",), served.port, "/metrics") == 200
    wait_until(lambda: not served.listening, "the port is free")


def test_any_name_of_a_page_for_others(serve: Callable[..., Served]) -> None:
    served = serve(bind__address="0.0.0.0")
    http_get(f"http://127.0.0.1:{served.port}/metrics")
    served.reporter.close()
    assert status_under(("driver.example",), served.port, "/metrics") == 200


def test_which_names_are_own() -> None:
    """It cannot import what the server before it has, and is of the same opinion."""
    assert [host for host in (*OWN_HOSTS, *OTHER_HOSTS) if last_page.is_own_name(host)] == list(OWN_HOSTS)
    assert [host for host in (*OWN_HOSTS, *OTHER_HOSTS) if are_own_names([host])] == list(OWN_HOSTS)


def test_the_same_tls(serve: Callable[..., Served], pki: Pki) -> None:
    """With the same certificate, to the same clients; the next driver takes the port all the same."""
    files = {"tls__certificate": str(pki.server), "tls__key": str(pki.server_key)}
    served = serve(**files, tls__client__authorities=str(pki.authorities))
    assert code_of(served.url, trusting(pki, client=True)) == 200
    served.reporter.close()

    with pytest.raises(OSError, match=r".*"):
        code_of(served.url, trusting(pki))
    with pytest.raises(OSError, match=r".*"):
        code_of(served.url.replace("https", "http"))
    assert code_of(served.url, trusting(pki, client=True)) == 200
    assert http_get(serve(served.port).url)


def test_a_busy_machine(serve: Callable[..., Served]) -> None:
    """A page that answers only after a second is asked all the same, and leaves."""
    served = serve()
    http_get(served.url)
    served.reporter.close()
    wait_until(lambda: len(last_pages()) == 1 and http_get(served.url), "its page is there, no other one is")
    (page,) = last_pages()
    os.kill(page, signal.SIGSTOP)
    going_on = threading.Timer(1.0, os.kill, (page, signal.SIGCONT))
    going_on.start()
    try:
        assert http_get(serve(served.port).url)
    finally:
        going_on.join()


def test_it_is_small(serve: Callable[..., Served]) -> None:
    """A third of what the smallest driver's Python has, which has imported the reporter."""
    served = serve()
    http_get(served.url)
    served.reporter.close()
    http_get(served.url)  # it is there, with all that it imports
    assert min(map(resident_kb, last_pages())) < 24_000


def last_pages() -> list[int]:
    """Return the processes of this one that serve a last page."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc")
    program, parent = "spark_events_prometheus/last_page.py", str(os.getpid())
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if program in command_of(folder) and parent_of(folder) == parent
    ]


def command_of(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text()
    except OSError:
        return ""


def parent_of(folder: Path) -> str:
    return (folder / "stat").read_text().rpartition(")")[2].split()[1]


def resident_kb(process: int) -> int:
    folder = Path("/proc") / str(process)
    (line,) = [x for x in (folder / "status").read_text().splitlines() if x.startswith("VmRSS")]
    return int(line.split()[1])
