"""What becomes of OpenLineage's events on the way to a catalogue that is away, refuses, or comes back."""

from __future__ import annotations

import gzip
import json
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from uuid import UUID

import pytest
from spark_events_openlineage.factory import transport_config
from spark_events_openlineage.listener import OpenLineageListener, Settings
from spark_events_openlineage.transport import Destination

from spark_events.api import (
    ApplicationInfo,
    JobCreatedEvent,
    LineageGraph,
    LineageVertex,
    Refused,
    ReporterConfig,
    RetryLater,
)
from spark_events.api.testing import RecordingOutbox
from spark_events.runtime.workers.worker import Worker
from tests.support.catalogue import Catalogue
from tests.support.forked_commands import run_forked
from tests.support.raw_http import DRIPS, dripping, raw_http, serving
from tests.support.told_jobs import Told, statement
from tests.support.waiting import free_port, wait_until


@pytest.fixture
def catalogue() -> Iterator[Catalogue]:
    made = Catalogue()
    yield made
    made.stop()


def told(catalogue: Catalogue, **options: str) -> Told:
    given = {f"__ol__{key}": value for key, value in options.items()}
    return Told(
        __ol__factory__class="openlineage",
        __ol__transport__type="http",
        __ol__transport__url=catalogue.url,
        **given,
    )


def worker(of: Told) -> Worker:
    return of.registry.workers[0]


def types(catalogue: Catalogue) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in catalogue.events]


EVENT = json.dumps(
    {
        "run": {"runId": "01936f7c-7a4e-7b8a-9c5d-000000000000"},
        "job": {"namespace": "n", "name": "j"},
        "eventTime": "2026-11-20T00:00:00Z",
        "producer": "https://p",
        "eventType": "START",
    }
).encode()
EXPECTED = [
    ("shop", "START"),
    ("shop", "RUNNING"),
    ("shop.insert.data.out", "START"),
    ("shop.insert.data.out", "RUNNING"),
    ("shop.insert.data.out", "COMPLETE"),
]


def test_events_wait_in_order_for_a_catalogue_that_is_away(catalogue: Catalogue) -> None:
    application = told(catalogue, transport__api_key="s3cret")
    statement(application, 1)
    wait_until(lambda: worker(application).stats.retries.count > 0, "it has tried")
    catalogue.start()
    wait_until(lambda: len(catalogue.events) == 5, "all events have come")
    application.close()
    assert types(catalogue) == EXPECTED
    assert set(catalogue.keys) == {"Bearer s3cret"}


def test_a_catalogue_that_is_away_holds_up_no_other(catalogue: Catalogue) -> None:
    """Each listener has a thread and a queue of its own; the client's composite transport has one for all."""
    catalogue.start()
    http = {"factory__class": "openlineage", "transport__type": "http"}
    urls = {"away": f"http://127.0.0.1:{free_port()}", "here": catalogue.url}
    application = Told(
        **{
            f"__{name}__{key}": value
            for name, url in urls.items()
            for key, value in {**http, "transport__url": url}.items()
        }
    )
    statement(application, 1)
    wait_until(lambda: len(catalogue.events) == 5, "all events have come to the one that is there")
    workers = application.registry.workers
    wait_until(lambda: any(one.stats.retries.count for one in workers), "the other one is still tried")
    application.close(timeout_ms=500)
    assert types(catalogue) == EXPECTED


@pytest.mark.parametrize("code", [503, 429])
def test_a_catalogue_in_trouble_is_tried_again(catalogue: Catalogue, code: int) -> None:
    catalogue.code = code
    catalogue.start()
    application = told(catalogue)
    statement(application, 1)
    wait_until(lambda: catalogue.asked > 1, "it has tried twice")
    catalogue.code = 200
    wait_until(lambda: len(catalogue.events) == 5, "all events have come")
    application.close()
    assert types(catalogue) == EXPECTED


def test_what_is_refused_is_counted_and_does_not_hold_up_the_rest(
    catalogue: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue.code = 422
    catalogue.start()
    application = told(catalogue)
    statement(application, 1)
    wait_until(lambda: worker(application).stats.refused.count == 5, "all are refused")
    catalogue.code = 200
    statement(application, 2)
    wait_until(lambda: len(catalogue.events) == 3, "the second statement's have come")
    application.close()
    assert any("422" in record.getMessage() for record in caplog.records)


def test_a_journal_keeps_them_for_the_next_run(catalogue: Catalogue, tmp_path: Path) -> None:
    first = told(catalogue, journal__dir=str(tmp_path))
    statement(first, 1)
    wait_until(lambda: worker(first).journaled == 5, "all are on disk")
    first.close(500)
    catalogue.start()
    second = told(catalogue, journal__dir=str(tmp_path))
    wait_until(lambda: len(catalogue.events) == 7, "the first run's events, and the second's")
    second.close()
    assert types(catalogue)[:5] == EXPECTED


def test_reads_are_told_where_they_are_wanted(catalogue: Catalogue) -> None:
    catalogue.start()
    application = told(catalogue, include_reads="true", include_applications="false", namespace="prod")
    application.record(
        "SparkEventsStatementCreated", executionId=1, description="count at a.py:1", lineage=None
    )
    application.record("SparkEventsStatementEnded", executionId=1)
    application.close()
    assert [event["eventType"] for event in catalogue.events] == ["START", "RUNNING", "COMPLETE"]
    assert {event["job"]["namespace"] for event in catalogue.events} == {"prod"}
    assert "parent" not in catalogue.events[0]["run"]["facets"]


def test_the_clients_own_settings_hold(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag of the environment is in each event, and the client may be switched off."""
    catalogue.start()
    monkeypatch.setenv("OPENLINEAGE__TAGS__JOB__TEAM", "payments")
    application = told(catalogue)
    application.close()
    tags = catalogue.events[0]["job"]["facets"]["tags"]["tags"]
    assert [(tag["key"], tag["value"]) for tag in tags] == [("team", "payments")]
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    before = len(catalogue.events)
    silent = told(catalogue)
    statement(silent, 1)
    silent.close()
    assert len(catalogue.events) == before


def test_too_many_inputs_are_left_out_and_said(catalogue: Catalogue) -> None:
    catalogue.start()
    application = told(catalogue, column_lineage__max_inputs="0")
    statement(application, 1)
    application.close()
    start = next(event for event in catalogue.events if event["job"]["name"] != "shop")
    assert "columnLineage" not in start["outputs"][0]["facets"]
    assert "more than 0 inputs" in start["run"]["facets"]["extractionError"]["errors"][0]["errorMessage"]


def test_a_check_says_whether_a_catalogue_answers(catalogue: Catalogue) -> None:
    prefix = "spark.job-status-changed.listener.ol."
    options = [
        part
        for key, value in {
            "factory.class": "openlineage",
            "transport.type": "http",
            "transport.url": catalogue.url,
        }.items()
        for part in ("--conf", f"{prefix}{key}={value}")
    ]

    def check() -> subprocess.CompletedProcess[str]:
        return run_forked("check", "--connect", *options)

    away = check()
    assert away.returncode == 3
    assert "refused" in away.stderr
    catalogue.start()
    there = check()
    assert there.returncode == 0, there.stderr
    assert "accepts" in there.stdout


def test_a_password_in_the_url_is_in_no_message() -> None:
    from spark_events_openlineage.transport import Destination

    destination = Destination(lambda: {"type": "http", "url": "http://me:s3cr3t@localhost:9/api"}, "key")
    assert destination.name == "http://******@localhost:9/api"


def test_a_query_is_not_shown(catalogue: Catalogue) -> None:
    """Of a catalogue that is away, a token in its path is in no error."""
    to = {"type": "http", "url": f"{catalogue.url}/?token=s3cr3t", "endpoint": "api?token=s3cr3t"}
    with pytest.raises(RetryLater, match="cannot be reached") as caught:
        Destination(lambda: to, "key").send(EVENT)

    assert "s3cr3t" not in str(caught.value)


def to(url: str, **options: object) -> Destination:
    """Return a destination as the environment or openlineage.yml makes it, with the client's own defaults."""
    return Destination(lambda: {"type": "http", "url": url, "timeout": 20, **options}, "key")


@pytest.mark.parametrize("path", ["", "/path"])
def test_a_catalogue_that_asks_for_a_pause_is_asked_once(path: str) -> None:
    """The client would sleep for as long as it asks, five times; the pause is the runtime's."""
    with (
        raw_http([b"HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"]) as (url, asked),
        pytest.raises(RetryLater, match="answers 503") as caught,
    ):
        to(url + path).send(EVENT)

    assert len(asked) == 1
    assert caught.value.after_ms == 1_000


def test_a_catalogue_that_is_away_is_asked_once() -> None:
    """The client's tries come on top of the runtime's; with them, it would say "Max retries exceeded"."""
    asked_again = []
    destination = to(f"http://127.0.0.1:{free_port()}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: asked_again.append(1))
        with pytest.raises(RetryLater, match="cannot be reached"):
            destination.send(EVENT)

    assert not asked_again


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", [b"Location: /elsewhere?token=s3cr3t\r\n", b""])
def test_a_redirect_is_not_followed(code: int, location: bytes) -> None:
    """It would become a GET, or go on and on; without a place to go to, it passed for a success."""
    with (
        raw_http([b"HTTP/1.1 %d There\r\n%sContent-Length: 0\r\n\r\n" % (code, location)]) as (url, asked),
        pytest.raises(RetryLater, match=rf"answers {code}, a redirect.*transport\.url") as caught,
    ):
        to(url).send(EVENT)

    assert len(asked) == 1
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("code", [200, 400, 503])
@pytest.mark.parametrize("packed", [True, False])
def test_a_catalogue_that_answers_with_very_much(code: int, packed: bool) -> None:
    """Only the beginning is read, packed or not."""
    body = bytes(40_000_000)
    pieces = [gzip.compress(body)] if packed else [body[:1_000_000]] * 40
    encoding = b"Content-Encoding: gzip\r\n" if packed else b""
    head = b"HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n" % (code, encoding, sum(map(len, pieces)))
    tracemalloc.start()
    try:
        with raw_http([head, *pieces]) as (url, _), suppress(RetryLater, Refused):
            to(url).send(EVENT)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 10_000_000


@pytest.mark.parametrize("what", DRIPS)
def test_an_answer_that_drips(what: str) -> None:
    with dripping(what) as url, pytest.raises(RetryLater, match=r"was not there within 0\.3 s"):
        to(url, timeout=0.3).send(EVENT)


def test_the_transports_of_a_composite_one_are_asked_once() -> None:
    with raw_http([b"HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"]) as (url, asked):
        one = {"type": "http", "url": url, "timeout": 20}
        composite = {"type": "composite", "transports": [one, one], "continue_on_failure": False}
        with pytest.raises(RetryLater, match="answers 503"):
            Destination(lambda: composite, "key").send(EVENT)

    assert len(asked) == 1


def test_a_token_that_is_renewed(tmp_path: Path) -> None:
    """Its file has another one: the next event is sent with that; while it is gone, with the last one."""
    file = tmp_path / "token"
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            sent.append(self.headers["Authorization"])
            self.send_response(201)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with serving(Handler) as url:
        file.write_text("first")
        values = {"transport.type": "http", "transport.url": url, "transport.api-key": f"file:{file}"}
        destination = Destination(partial(transport_config, ReporterConfig("p.", values)), "key")
        destination.send(EVENT)
        file.write_text("second")
        destination.send(EVENT)
        file.unlink()
        destination.send(EVENT)
        file.write_text("third")
        destination.send(EVENT)
        destination.close()

    assert sent == ["Bearer first", "Bearer second", "Bearer second", "Bearer third"]


def test_statements_whose_end_was_dropped_are_forgotten() -> None:
    """The oldest ones; the application and its queries, which last, are not."""
    settings = Settings(namespace="n", reads=False, applications=True, most_inputs=10, parent=None, root=None)
    listener = OpenLineageListener(settings, to(f"http://127.0.0.1:{free_port()}"))
    listener.outbox = RecordingOutbox()
    reads, writes = LineageGraph(), LineageGraph(sinks=(LineageVertex(()),))
    jobs = [("application", reads), ("query", writes)]
    jobs += [("statement", writes if number % 2 else reads) for number in range(20_200)]
    for number, (kind, lineage) in enumerate(jobs):
        application = ApplicationInfo("shop", "app-1")
        job_id = str(UUID(int=number)) if kind == "query" else f"{kind}-{number}"
        listener.on_event(JobCreatedEvent(job_id, "n", kind, 1, application, {}, lineage=lineage))

    assert len(listener._runs) == len(listener._only_reading) == 10_000
    assert list(listener._runs)[:2] == ["application-0", str(UUID(int=1))]
    assert list(listener._runs)[-1] == "statement-20201"
