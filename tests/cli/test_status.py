"""``spark-events status``: what is up now, from stored events and from what a driver serves.

A live driver's endpoint is asked in ``docs/get-started/streaming.md``, which a test follows.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server
from typer.testing import CliRunner

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.cli.main import app
from spark_events.history import current
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write


def status(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["status", *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def shop(silent_ms: int) -> Story:
    """A query that was restarted an hour ago, in an application that was last heard of so long ago."""
    now = time.time_ns() // 1_000_000 - T0
    story = Story().application(now - DAY, "RUNNING").query(now - DAY, "RUNNING")
    story.query(now - HOUR - MIN, "FAILED").run("run-2").query(now - HOUR, "RESTARTING", "RUNNING")
    return story.heartbeats(now - HOUR, now - silent_ms)


def test_all_is_well(tmp_path: Path) -> None:
    write(tmp_path / "log", shop(MIN))
    code, out = status(tmp_path / "log", "--json")
    rows = {row["query_name"]: row for row in json.loads(out)}

    assert code == 0
    assert {name: row["state"] for name, row in rows.items()} == {None: "up", "orders": "up"}
    assert rows["orders"]["restarts"] == 1
    assert abs(time.time() * 1_000 - HOUR - rows["orders"]["since_ms"]) < MIN


def test_a_driver_that_is_silent(tmp_path: Path) -> None:
    """Its end was reported by nobody; it is not up for that."""
    write(tmp_path / "log", shop(30 * MIN))
    code, out = status(tmp_path / "log")

    assert code == 1
    (line,) = [line for line in out.splitlines() if "orders" in line]
    assert "LOST" in line
    assert "30 min ago" in line


def test_a_nightly_job(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000 - T0
    ok = Story("nightly").application(now - HOUR, "RUNNING").application(now - MIN, "FINISHED")
    failed = Story("weekly", "app-2").application(now - HOUR, "RUNNING").application(now - MIN, "FAILED")
    write(tmp_path / "log", ok, failed)

    assert status(tmp_path / "log", "--app", "nightly")[0] == 0
    assert status(tmp_path / "log")[0] == 1
    with pytest.raises(NothingToReadError, match=r"--app hourly: no application.*nightly, weekly"):
        status(tmp_path / "log", "--app", "hourly")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """What a driver serves, by Prometheus' own client."""
    registry = CollectorRegistry()
    names = {"app_name": "shop", "query_name": "orders"}
    query = Gauge("spark_query_status", "", [*names, "status"], registry=registry)
    query.labels("shop", "orders", "RUNNING").set(1)
    query.labels("shop", "orders", "FAILED").set(0)
    query.labels("shop", "carts", "FAILED").set(1)
    Gauge("spark_query_status_age_seconds", "", names, registry=registry).labels("shop", "orders").set(90)
    Gauge("spark_query_num_restarts", "", names, registry=registry).labels("shop", "orders").set(3)
    Gauge("spark_application_status", "", ["app_name", "status"], registry=registry).labels(
        "shop", "RUNNING"
    ).set(1)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_endpoint(endpoint: str) -> None:
    code, out = status(endpoint, "--json")
    carts, application, orders = json.loads(out)

    assert code == 1
    assert (carts["query_name"], carts["state"], carts["restarts"]) == ("carts", "down", None)
    assert (application["kind"], application["state"]) == ("application", "up")
    assert (orders["status"], orders["restarts"]) == ("RUNNING", 3)
    assert abs(time.time() * 1_000 - 90_000 - orders["since_ms"]) < MIN
    assert status(f"{endpoint}/metrics", "--query", "orders")[0] == 0


def test_a_collector_that_serves_two_drivers_of_one_name() -> None:
    """Only ``instance`` tells them apart: that one runs does not hide that the other has failed."""
    registry = CollectorRegistry()
    states = Gauge("spark_application_status", "", ["app_name", "instance", "status"], registry=registry)
    ages = Gauge("spark_application_status_age_seconds", "", ["app_name", "instance"], registry=registry)
    for instance, failed in (("a", 1), ("b", 0)):
        states.labels("shop", instance, "FAILED").set(failed)
        states.labels("shop", instance, "RUNNING").set(1 - failed)
        ages.labels("shop", instance).set(60 if failed else 600)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        code, out = status(f"http://127.0.0.1:{server.server_port}", "--json")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    failed, running = json.loads(out)
    assert code == 1
    assert (failed["status"], running["status"]) == ("FAILED", "RUNNING")
    assert failed["since_ms"] - running["since_ms"] == pytest.approx(540_000, abs=5_000)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://127.0.0.1:port", "http://[::1", "http://"])
def test_what_is_no_url(url: str) -> None:
    """Least of all is 99999 the port 34463, which another program may have."""
    with pytest.raises(UsageError, match=f"^{re.escape(url)}: expected a URL such as"):
        status(url, "--token", "t0ken")


def test_what_is_no_endpoint(endpoint: str) -> None:
    with pytest.raises(UsageError, match="give one URL, or paths"):
        status(endpoint, "events")
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1: connection refused; is it running"):
        status("http://127.0.0.1:1")
    with pytest.raises(NothingToReadError, match="matches --app and --query"):
        status(endpoint, "--query", "nothing")
    with pytest.raises(
        UsageError, match="--token: env:NO_SUCH_VARIABLE: the variable NO_SUCH_VARIABLE is not set"
    ):
        status(endpoint, "--token", "env:NO_SUCH_VARIABLE")


STATUS = b'spark_application_status{app_name="a",status="RUNNING"} 1\n'
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def raw_endpoint() -> Iterator[Callable[[bytes, bool], str]]:
    """Give the URL of a server that answers one connection with some bytes, and ends it or not."""
    with contextlib.ExitStack() as stack:

        def serve(answer: bytes, ends: bool) -> str:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def answer_once() -> None:
                connection = stack.enter_context(server.accept()[0])
                connection.recv(1 << 16)
                connection.sendall(answer)
                if ends:
                    connection.close()

            threading.Thread(target=answer_once, daemon=True).start()
            return f"http://127.0.0.1:{server.getsockname()[1]}"

        yield serve


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e300", "-1e300"])
def test_figures_that_are_none(raw_endpoint: Callable[[bytes, bool], str], value: str) -> None:
    """They are not known; what is up is up."""
    figures = "".join(
        f'spark_application_{name}{{app_name="a"}} {value}\n'
        for name in ("status_age_seconds", "num_restarts")
    )
    code, out = status(raw_endpoint(OK + b"\r\n" + STATUS + figures.encode(), True), "--json")
    (application,) = json.loads(out)

    assert code == 0
    assert (application["state"], application["since_ms"], application["restarts"]) == ("up", None, None)


SERVED = """\
spark_application_status{{app_name="shop",instance="",job="push",status="RUNNING"}} 1
spark_application_status_age_seconds{{app_name="shop",instance="",job="push"}} 500
spark_application_last_heartbeat_timestamp_seconds{{app_name="shop",instance="",job="push"}} {heartbeat}
spark_query_status{{app_name="shop",query_name="orders",instance="",job="push",status="{status}"}} 1
spark_query_status_age_seconds{{app_name="shop",query_name="orders",instance="",job="push"}} 400
spark_application_last_heartbeat_timestamp_seconds{{app_name="other",instance="",job="other"}} {now}
"""
INTERVAL = (
    'spark_application_heartbeat_interval_seconds{{app_name="shop",instance="",job="push"}} {interval}\n'
)
PUSHED = 'push_time_seconds{{instance="",job="{job}"}} {at}\n'


@pytest.mark.parametrize(
    ("heartbeat_ago_s", "interval_s", "pushed_ago_s", "expected"),
    [
        (100, None, None, ("RUNNING", "up", 400)),
        (200, None, None, ("UNKNOWN", "unknown", 200)),
        (700, None, None, ("LOST", "down", 700)),
        (700, 300, None, ("RUNNING", "up", 400)),
        (20, 2, None, ("LOST", "down", 20)),
        (700, None, 650, ("LOST", "down", 650)),
        (150, None, 130, ("RUNNING", "up", 530)),
        (700, None, 20, ("RUNNING", "up", 420)),
    ],
)
def test_a_driver_whose_page_outlives_it(
    raw_endpoint: Callable[[bytes, bool], str],
    heartbeat_ago_s: int,
    interval_s: int | None,
    pushed_ago_s: int | None,
    expected: tuple[str, str, int],
) -> None:
    """A Pushgateway serves it for ever: that it was RUNNING when it was pushed last is no word about now."""
    now = time.time()
    page = SERVED.format(heartbeat=now - heartbeat_ago_s, now=now, status="RUNNING")
    if interval_s:
        page += INTERVAL.format(interval=interval_s)
    if pushed_ago_s:
        page += PUSHED.format(job="push", at=now - pushed_ago_s) + PUSHED.format(job="other", at=now)
    code, out = status(raw_endpoint(OK + b"\r\n" + page.encode(), True), "--json")
    rows = {row["query_name"]: row for row in json.loads(out)}
    query = rows["orders"]

    said, state, since_ago_s = expected
    assert (query["status"], query["state"], rows[None]["status"]) == (said, state, said)
    assert code == (state != "up")
    heard_ago_s = min(heartbeat_ago_s, pushed_ago_s or heartbeat_ago_s)
    for ms, ago_s in ((query["since_ms"], since_ago_s), (query["last_heard_ms"], heard_ago_s)):
        assert ms == pytest.approx((now - ago_s) * 1_000, abs=30_000)


@pytest.mark.parametrize(("of_page_s", "said"), [(0, "RUNNING"), (3_600, "LOST")], ids=["live", "gone"])
def test_a_clock_that_differs_from_ours(
    raw_endpoint: Callable[[bytes, bool], str], of_page_s: int, said: str
) -> None:
    """A heartbeat is as old as it is by the clock of whoever serves it, here an hour behind ours."""
    heartbeat = time.time() - 3_600
    page = SERVED.format(heartbeat=heartbeat, now=heartbeat, status="RUNNING")
    head = OK + f"Date: {formatdate(heartbeat + of_page_s, usegmt=True)}\r\n\r\n".encode()
    _, out = status(raw_endpoint(head + page.encode(), True), "--query", "orders", "--json")

    assert [row["status"] for row in json.loads(out)] == [said]


@pytest.mark.parametrize("is_driver", [True, False])
def test_a_driver_that_answers_is_heard_now(
    raw_endpoint: Callable[[bytes, bool], str], is_driver: bool
) -> None:
    """Its last heartbeat may be older; a collector may have had it from one that is gone."""
    now = time.time()
    page = SERVED.format(heartbeat=now - 45, now=now, status="RUNNING")
    header = b"Spark-Events-Answered-By: driver\r\n" if is_driver else b""
    code, out = status(raw_endpoint(OK + header + b"\r\n" + page.encode(), True))

    assert code == 0
    (line,) = [line for line in out.splitlines() if "orders" in line]
    assert line.rstrip().endswith("now") is is_driver


@pytest.mark.parametrize("date", ["garbage", "Thu, 26 Nov 99999999999999999999 16:40:00 GMT"])
def test_a_page_whose_date_is_none(raw_endpoint: Callable[[bytes, bool], str], date: str) -> None:
    page = SERVED.format(heartbeat=time.time() - 3_600, now=time.time(), status="RUNNING")
    answer = OK + f"Date: {date}\r\n\r\n{page}".encode()
    _, out = status(raw_endpoint(answer, True), "--query", "orders", "--json")

    assert [row["status"] for row in json.loads(out)] == ["LOST"]


def test_a_page_of_what_has_ended(raw_endpoint: Callable[[bytes, bool], str]) -> None:
    """Its silence is none: it has said that it ended."""
    now = time.time()
    page = SERVED.format(heartbeat=now - 90_000, now=now, status="FINISHED")
    _, out = status(raw_endpoint(OK + b"\r\n" + page.encode(), True), "--query", "orders", "--json")

    assert [row["status"] for row in json.loads(out)] == ["FINISHED"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"garbage\r\n\r\n", "answers no HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "answers no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\nabc", "answers no HTTP"),
        (OK + b"a: b\r\n" * 500 + b"\r\n", "answers no HTTP"),
        (OK + b"Content-Length: 9\r\n\r\nabc", "answers no HTTP"),
        (
            b"HTTP/1.1 302 x\r\nLocation: ftp://127.0.0.1/x\r\n\r\n",
            "cannot be reached: unknown url type: ftp",
        ),
        (OK + b'\r\nspark_up{app_id="a", =_app_name="b"} 1\n', "no metrics in Prometheus' format"),
    ],
    ids=["garbage", "ssh", "chunk", "headers", "incomplete", "ftp", "page"],
)
def test_answers_that_are_none(raw_endpoint: Callable[[bytes, bool], str], answer: bytes, said: str) -> None:
    """They are no word about what is up."""
    with pytest.raises(ConfigError, match=said):
        status(raw_endpoint(answer, True))


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200", OK + b"Content-Length: 9\r\n\r\nabc"])
def test_an_answer_without_an_end(
    raw_endpoint: Callable[[bytes, bool], str], monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(current, "_WHOLE_ANSWER_S", 0.5)
    with pytest.raises(ConfigError, match="no answer within"):
        status(raw_endpoint(begun, False))


@pytest.mark.parametrize("head", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_a_page_of_others_with_ours_among_them(
    raw_endpoint: Callable[[bytes, bool], str], monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    """Of its lines, only those are parsed that matter, wherever they are cut in two on their way."""
    monkeypatch.setattr(current, "_BLOCK", 100)
    others = b"".join(b'up{job="%d"} 1\n' % number for number in range(500))
    body = others + b"# HELP up It is up.\n" + STATUS + others + b"without a value\n"
    if head:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    code, out = status(raw_endpoint(OK + head + b"\r\n" + body, True), "--json")
    assert (code, [row["status"] for row in json.loads(out)]) == (0, ["RUNNING"])


@pytest.mark.parametrize("line", [b"up 1\n", b"up"], ids=["lines", "one line"])
def test_a_page_that_is_too_large(
    raw_endpoint: Callable[[bytes, bool], str], monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """A server may send for as long as it likes."""
    monkeypatch.setattr(current, "_LARGEST", 4 << 20)
    body = line * ((5 << 20) // len(line))
    with pytest.raises(ConfigError, match="serves more than 4 MiB; give the URL of one driver"):
        status(raw_endpoint(OK + b"\r\n" + body, True))
