"""``spark-events serve``, as a user runs it: in a browser, with new events, with access, with mistakes."""

from __future__ import annotations

import base64
import errno
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from spark_events.api import ConfigError, Secret, ServerAuthentication
from spark_events.api.errors import NothingToReadError
from spark_events.history.options import ReportOptions
from spark_events.history.page.live_page import LivePage, View, filtered
from spark_events.history.page.report_server import ReportServer
from spark_events.history.reading.local_files import state_of_files
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.selection import Selection
from spark_events.history.store.store import HistoryStore
from tests.support.applications import cli, on_a_terminal
from tests.support.browser import browser
from tests.support.forked_commands import run_forked
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, fleet, write
from tests.support.pki import Pki
from tests.support.scraping import OTHER_HOSTS, OWN_HOSTS, code_of, status_under
from tests.support.waiting import wait_until


class Served:
    """A report that is served; its files may grow."""

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        write(folder / "log", *fleet())
        self.process = subprocess.Popen(
            on_a_terminal("serve", "log", "--listen", "0", "--every", "1s", *arguments),
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"https?://127\.0\.0\.1:\d+/", line)
        assert match, line + self.process.stdout.read()
        self.url = match.group()

    def get(self, path: str = "", authorization: str = "") -> tuple[int, str]:
        """Return the status and the body of an answer."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": authorization})
        try:
            with urllib.request.urlopen(request, timeout=280) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C, and return the exit code and what it said."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=280)
        return self.process.returncode, said


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Serve a report; whatever is served at the end is ended."""
    running: list[Served] = []

    def begin(*arguments: str, **more: Any) -> Served:
        running.append(Served(tmp_path, *arguments, **more))
        return running[-1]

    yield begin
    for served in running:
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait(20)


def test_in_a_browser(serve: Callable[..., Served]) -> None:
    """It shows what is down, and soon what has come back; a click on an outage leads to its failures."""
    served = serve("--sla", "1h")
    with browser() as open_page:
        page = open_page(served.url)
        assert page.inner_text("#now") == "1 down: shop / orders"
        assert page.complaints == []
        page.locator("svg#timeline a").first.click()
        page.wait_for_url("**/?app=shop&query=orders#failed")
        assert "KAFKA_GONE" in page.inner_text("#failed")
        assert "out_of_memory" not in page.inner_text("#failed")
        page.click("text=nightly")  # which has no such query
        page.wait_for_url("**/?app=nightly")
        assert page.locator("#uptime").count() == 0
        assert page.locator("#runs tr").count() == 2
        page.goto(served.url)
        back = Story("shop").run("run-3").query(31 * HOUR, "RESTARTING").query(31 * HOUR, "RUNNING")
        write(served.folder / "log", back, name="shop__app-1.events.000002.jsonl")
        # The page asks again by itself.
        page.locator("#now", has_text="nothing is down").wait_for(timeout=60_000)
    code, said = served.end()
    assert (code, said.strip()) == (0, "ended")


def test_who_may_read(serve: Callable[..., Served]) -> None:
    """With a token, nobody without it; scripts send it as a Bearer, browsers as a password."""
    served = serve("--token", "env:REPORT_TOKEN", environment={"REPORT_TOKEN": "s3cret"})
    assert served.get()[0] == 401
    assert served.get(authorization="Bearer wrong")[0] == 401
    assert served.get(authorization="Bearer s3cret")[0] == 200
    basic = base64.b64encode(b"token:s3cret").decode()
    status, page = served.get(authorization=f"Basic {basic}")
    assert status == 200
    assert "s3cret" not in page


def test_a_user_and_a_password(serve: Callable[..., Served]) -> None:
    served = serve(
        *("--username", "ops", "--password", "env:REPORT_PASSWORD"),
        environment={"REPORT_PASSWORD": "s3cret"},
    )
    for pair, status in ((b"ops:s3cret", 200), (b"ops:", 401), (b"token:s3cret", 401)):
        assert served.get(authorization=f"Basic {base64.b64encode(pair).decode()}")[0] == status
    assert served.get(authorization="Bearer s3cret")[0] == 401


def test_over_tls(serve: Callable[..., Served], tmp_path: Path) -> None:
    """Only who has a certificate of the authorities connects; one that does not hold up the others."""
    pki = Pki(tmp_path)
    files = ("--certificate", pki.server, "--key", pki.server_key)
    served = serve(*map(str, files), "--client-authorities", str(pki.authorities))
    assert served.url.startswith("https://")
    host, port = "127.0.0.1", int(served.url.rsplit(":", 1)[1].strip("/"))
    trusting = ssl.create_default_context(cafile=str(pki.authorities))
    with socket.create_connection((host, port)):  # says nothing
        with pytest.raises(OSError):  # noqa: PT011 - of TLS, or of the connection that it closes
            urllib.request.urlopen(served.url, timeout=280, context=trusting).read()
        trusting.load_cert_chain(pki.client, pki.client_key)
        assert b"<title>" in urllib.request.urlopen(served.url, timeout=280, context=trusting).read()


def test_without_a_password(tmp_path: Path) -> None:
    """Beyond this machine, it is said that there is none."""
    write(tmp_path / "log", *fleet())
    process = subprocess.Popen(
        cli("serve", "log", "--listen", "0.0.0.0:0"),
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
    finally:
        process.kill()
        process.wait()
    assert "anyone who can reach this port can read the page: see --token" in said[0]
    assert "http://0.0.0.0:" in said[1]


def test_what_may_be_asked_for(serve: Callable[..., Served]) -> None:
    served = serve()
    assert served.get("?since=1h")[0] == 200
    assert served.get("?app=%3Cscript%3E")[1].count("<script") == 0
    assert served.get("?since=soon") == (
        400,
        "since: 'soon' is not valid; expected a duration such as 500ms, 60s or 5min",
    )
    assert served.get("?app=shop&from=2026-01-01") == (
        400,
        "from: is not known in an address; app, query, since are",
    )
    assert served.get("other") == (404, "the report is at /")


def test_files_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl").write_text('{"name": "Stat\n')
    with pytest.raises(NothingToReadError, match=r"no event that could be used; 1 skipped: .*torn\.jsonl"):
        live_page(tmp_path).html(View())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "here"), "--listen here: expected [HOST:]PORT"),
        (("--listen", "1" * 5_000), "expected [HOST:]PORT, with a port from 0 to 65535"),
        (
            ("--listen", "0", "--token", "env:NOT_THERE"),
            "--token: env:NOT_THERE: the variable NOT_THERE is not set or is empty",
        ),
        (
            ("--listen", "0", "--username", "ops"),
            "--password: missing; basic authentication needs",
        ),
        (("--listen", "0", "--token", ""), "--token: is empty; expected env:NAME"),
        (("--listen", "203.0.113.1:0"), "--listen 203.0.113.1:0: "),
        (("--listen", "ö..example:0"), "--listen ö..example:0: encoding of hostname failed"),
        (("--listen", "0", "--key", "key.pem"), "--certificate: missing; TLS needs a certificate"),
        (
            ("--listen", "0", "--certificate", "no.pem", "--key", "key.pem"),
            "no.pem, key.pem: cannot be used as PEM files of TLS: No such file",
        ),
    ],
)
def test_wrong(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    write(tmp_path / "log", *fleet())
    done = run_forked("serve", "log", *arguments, cwd=tmp_path, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == (3 if arguments[-1].endswith((".1:0", ".example:0")) else 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def live_page(folder: Path) -> LivePage:
    return LivePage(ReportOptions((str(folder),)), 0.0, lambda: state_of_files([str(folder)]))


def test_events_that_can_no_longer_be_read(tmp_path: Path) -> None:
    """The last page stays, and says so; where there never was one, there is an error."""
    page = live_page(write(tmp_path / "log", *fleet()))
    assert 'id="problem"' not in page.html(View())
    (log,) = (tmp_path / "log").iterdir()
    log.rename(tmp_path / "away")
    page._took_s = 0.0  # reading takes a moment, after which the next look waits for several
    kept = page.html(View())
    assert 'id="problem"' in kept
    assert "there are no stored events" in kept
    with pytest.raises(ConfigError, match="there are no stored events"):
        live_page(tmp_path / "log").html(View())
    (tmp_path / "away").rename(log)
    assert 'id="problem"' not in page.html(View())


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "log", *fleet())
    page, read = live_page(folder), []
    original = LivePage._make
    monkeypatch.setattr(
        LivePage, "_make", lambda self, span, *of: read.append(span) or original(self, span, *of)
    )
    for _ in range(3):
        page._took_s = 0.0
        page.html(View())
    assert read == [None]
    page.html(View(span_ms=HOUR))
    write(folder, *fleet(), name="more.jsonl")
    page._took_s = 0.0
    page.html(View())
    assert read == [None, HOUR, None]


def test_a_store_that_others_add_to(tmp_path: Path, duckdb: DuckDb) -> None:
    """Without paths of its own; and what it adds itself, it adds once."""
    folder = str(tmp_path / "store")
    HistoryStore(duckdb, folder).add([str(write(tmp_path / "log", *fleet()))])
    page = LivePage(ReportOptions((), store=folder), 0.0, list)
    assert "PricesGone" not in page.html(View())
    failed = Story().failure(29 * HOUR, error="PricesGone")
    HistoryStore(duckdb, folder).add([str(write(tmp_path / "new", failed))])
    page._took_s = 0.0
    assert "PricesGone" in page.html(View())

    added = write(tmp_path / "added", Story().failure(29 * HOUR + 5, error="RatesGone"))
    page = LivePage(ReportOptions((str(added),), store=folder), 0.0, lambda: state_of_files([str(added)]))
    before = len(list((tmp_path / "store").glob("store-*.json")))
    for span_ms in (None, 2 * DAY, None):
        page._took_s = 0.0
        assert "RatesGone" in page.html(View(span_ms=span_ms))
    assert len(list((tmp_path / "store").glob("store-*.json"))) == before + 1


def test_a_page_that_is_open_for_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens on the third day is not in the future."""
    now_ns = time.time_ns()
    page = live_page(write(tmp_path / "log", *fleet()))
    page.html(View())
    later_ms = now_ns // 1_000_000 + 3 * DAY - T0
    write(tmp_path / "log", Story().failure(later_ms, error="PricesGone"), name="more.jsonl")
    page._took_s = 0.0
    assert "PricesGone" not in page.html(View())
    monkeypatch.setattr(
        "spark_events.history.reading.plausible.time.time_ns", lambda: now_ns + 3 * DAY * 1_000_000
    )
    page._made.clear()
    assert "PricesGone" in page.html(View())


def test_silence_grows_without_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until now, a page is made again every while, though nothing has come; else silence would be health."""
    story = Story().application(0, "CREATED", "RUNNING").query(0, "RUNNING").heartbeats(0, HOUR)
    folder = write(tmp_path / "log", story)
    options = ReportOptions((str(folder),), selection=Selection(until_now=True))
    page = LivePage(options, 0.0, lambda: state_of_files([str(folder)]))
    for again_s, after_ms, said in (
        (0, 0, "nothing is down"),
        (3_600, 5 * MIN, "nothing is down"),
        (0, 5 * MIN, "2 not heard of: shop, shop / orders"),
        (0, 10 * MIN, "2 lost: shop, shop / orders"),
    ):
        now_ns = (T0 + HOUR + after_ms) * 1_000_000
        monkeypatch.setattr("spark_events.history.history.time.time_ns", lambda now_ns=now_ns: now_ns)
        monkeypatch.setattr("spark_events.history.page.live_page._NOW_AGAIN_S", again_s)
        page._took_s = 0.0
        assert f'id="now">{said}</span>' in page.html(View())


def test_a_view_has_its_rows_alone(tmp_path: Path) -> None:
    page = live_page(write(tmp_path / "log", *fleet()))
    report = page._report(None)
    of_query = filtered(report, View("shop", "orders"))
    assert {row["query_name"] for row in of_query.tables.uptime} == {"orders"}
    assert of_query.tables.executors == []
    assert {row["app_name"] for rows in of_query.tables.values() for row in rows} == {"shop"}
    of_nightly = filtered(report, View("nightly"))
    assert {row["app_name"] for row in of_nightly.tables.uptime} == {"nightly"}
    assert len(of_nightly.tables.executors) == 2
    assert of_nightly.tables.checkpoint_sla == []
    assert filtered(report, View()) is report


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (View("shop", "orders"), "nothing is down"),
        (View("shpo"), "no application &#39;shpo&#39; is known"),
        (View("shop", "odrers"), "no query &#39;odrers&#39; of application &#39;shop&#39; is known"),
        (View("", "<odd>"), "no query &#39;&lt;odd&gt;&#39; is known"),
    ],
)
def test_a_view_of_nothing_says_so(tmp_path: Path, view: View, said: str) -> None:
    page = live_page(write(tmp_path / "log", *fleet()))
    (now,) = re.findall(r'id="now">([^<]*)<', page._page(view, page._report(None), ""))
    assert now == said or said == "nothing is down"


def test_one_reading_serves_all_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each says what it would say if it were read for it alone; new events are read."""
    read: list[str] = []
    original = DuckDb.read_facts

    def counted(self: DuckDb, *arguments: Any) -> Any:
        read.append("again")
        return original(self, *arguments)

    monkeypatch.setattr(DuckDb, "read_facts", counted)
    write(tmp_path / "log", *fleet())
    options = ReportOptions((str(tmp_path / "log"),))
    state = ["first"]
    live = LivePage(options, 0.0, lambda: state[0])
    spans = [None, HOUR, DAY, 3 * HOUR]
    together = [live._report(span_ms) for span_ms in spans]
    assert len(read) == 1
    assert together == [LivePage(options, 0.0, lambda: 0)._report(span_ms) for span_ms in spans]
    state[0] = "second"
    before = len(read)
    live._took_s = 0.0
    live._report(HOUR)
    live._report(DAY)
    assert len(read) == before + 1


def test_a_page_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all who ask for it, until there are other events."""
    written: list[View] = []
    original = LivePage._page

    def counted(self: LivePage, view: View, report: Any, problem: str) -> str:
        written.append(view)
        return original(self, view, report, problem)

    monkeypatch.setattr(LivePage, "_page", counted)
    write(tmp_path / "log", *fleet())
    state = ["first"]
    live = LivePage(ReportOptions((str(tmp_path / "log"),)), 0.0, lambda: state[0])
    pages = {live.html(View(span_ms=HOUR)) for _ in range(20)}
    assert (len(pages), len(written)) == (1, 1)
    live.html(View("shop", span_ms=HOUR))
    live._took_s = 0.0
    state[0] = "second"
    live.html(View(span_ms=HOUR))
    assert len(written) == 3


@contextmanager
def listening(server: ReportServer) -> Iterator[None]:
    """Let a server answer until the end of the block."""
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("address", "token", "status"),
    [("127.0.0.1", None, 421), ("0.0.0.0", None, 200), ("127.0.0.1", "t0ken", 401)],
)
def test_names_under_which_it_is_asked(address: str, token: str | None, status: int) -> None:
    """Any name may have the loopback address, so a page of the web could ask under its own."""
    authentication = ServerAuthentication("report", None if token is None else Secret(token), {})
    server = ReportServer(address, 0, lambda *_: "page", authentication)
    with listening(server):
        own = 200 if token is None else 401
        assert {status_under((host,), server.port, "/") for host in OWN_HOSTS} == {own}
        assert status_under((), server.port, "/") == own
        assert {status_under((host,), server.port, "/") for host in OTHER_HOSTS} == {status}


def test_a_thousand_clients_at_once() -> None:
    """Each is answered, also those without a token."""
    server = ReportServer(
        "127.0.0.1", 0, lambda *_: "page", ServerAuthentication("report", Secret("right"), {})
    )
    assert server.request_queue_size >= 1_000
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    with ExitStack() as opened:
        # They are all connected before the first is taken.
        clients = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=280))
            for _ in range(1_000 if resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 3_000 else 400)
        ]
        thread.start()
        for number, client in enumerate(clients):
            token = b"Authorization: Bearer right\r\n" if number % 2 else b""
            client.sendall(b"GET / HTTP/1.0\r\n" + token + b"\r\n")
        answers = [client.makefile("rb").readline() for client in clients]
    server.shutdown()
    server.server_close()
    assert len(answers) == len(clients)
    assert {line.split()[1] for line in answers} == {b"200", b"401"}


def test_slow_clients_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sends a byte now and then, and never a whole request."""
    monkeypatch.setattr("spark_events.history.page.report_server._MOST_CONNECTIONS", 20)
    server = ReportServer("127.0.0.1", 0, lambda *_: "page", ServerAuthentication("report", None, {}))
    with listening(server), ExitStack() as opened:

        def connected() -> socket.socket:
            address = ("127.0.0.1", server.port)
            return opened.enter_context(socket.create_connection(address, timeout=30))

        slow = [connected() for _ in range(60)]
        for client in slow:
            with suppress(OSError):
                client.sendall(b"GET / HTTP/1.0\r\nX")
        last = connected()
        last.sendall(b"GET http://[::1 HTTP/1.0\r\n\r\n")
        assert b"404" in last.makefile("rb").readline()
        wait_until(lambda: len(server._waiting) <= 20, "the oldest are closed")
        assert slow[0].recv(1) == b""


def test_views_that_nobody_offers_displace_no_other(tmp_path: Path) -> None:
    """Links to them can be made up without end."""
    page = live_page(write(tmp_path / "log", *fleet()))
    page.html(View())
    for minutes in range(1, 12):
        page.html(View(span_ms=minutes * MIN))
    assert None in page._made
    assert len(page._made) == 8


def test_a_page_that_others_are_waiting_for(tmp_path: Path) -> None:
    """What is there is read without waiting."""
    page = LivePage(ReportOptions((str(write(tmp_path / "log", *fleet())),)), 60.0, lambda: 0)
    known = page.html(View())
    with page._turns.taken("another", lambda: True):
        assert page.html(View()) == known


@pytest.mark.parametrize(
    ("site", "into", "status"),
    [
        ("cross-site", "image", 403),
        ("cross-site", "iframe", 403),
        ("cross-site", "document", 200),
        ("same-origin", "image", 200),
        ("none", "document", 200),
    ],
)
def test_pages_of_other_sites_may_link_to_it(site: str, into: str, status: int) -> None:
    """To load it costs a report."""
    server = ReportServer("127.0.0.1", 0, lambda *_: "page", ServerAuthentication("report", None, {}))
    with listening(server):
        asked_by = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": into}
        assert code_of(f"http://127.0.0.1:{server.port}/", **asked_by) == status


def test_whether_a_reader_still_waits() -> None:
    asked: list[Callable[[], bool]] = []
    go = threading.Event()

    def html(_: View, is_wanted: Callable[[], bool]) -> str:
        asked.append(is_wanted)
        assert go.wait(30)
        return "page"

    server = ReportServer("127.0.0.1", 0, html, ServerAuthentication("report", None, {}))
    with listening(server):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            wait_until(lambda: asked, "it has asked")
            assert asked[0]()
        wait_until(lambda: not asked[0](), "it has left")
        go.set()


def test_ctrl_c_while_a_page_is_made(serve: Callable[..., Served]) -> None:
    """DuckDB aborts where the interpreter ends before it."""
    served = serve("--earliest", "2000-01-01")
    address = urlsplit(served.url)
    with ExitStack() as opened:
        for minutes in range(1, 15):
            connection = (address.hostname or "", address.port or 0)
            client = opened.enter_context(socket.create_connection(connection, timeout=30))
            client.sendall(f"GET /?since={minutes}min HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        code, said = served.end()
    assert code == 0
    assert "terminate" not in said


def test_too_many_open_files_keep_no_core_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has asked nothing makes room."""
    server = ReportServer("127.0.0.1", 0, lambda *_: "page", ServerAuthentication("report", None, {}))
    paused: list[float] = []
    monkeypatch.setattr("spark_events.api.toolkit.page_server.time.sleep", paused.append)
    closed, _client = socket.socketpair()
    server._waiting["client"] = closed

    def no_room() -> tuple[socket.socket, object]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("socketserver.TCPServer.get_request", lambda _: no_room())
    with pytest.raises(OSError, match="Too many"):
        server.get_request()
    assert len(paused) == 1
    assert not server._waiting
    server.server_close()
