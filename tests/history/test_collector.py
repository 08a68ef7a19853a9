"""The shipped configuration of the collector: what it writes is a history, and what it cannot hand on it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_events.history.history import read_history
from spark_events.history.reading.on_duckdb import DuckDb
from tests.support.collector import Collector
from tests.support.file_log import file_events, of_name
from tests.support.forked_commands import run_forked
from tests.support.history_story import Story, write
from tests.support.story_told import read, told
from tests.support.waiting import wait_until

pytestmark = pytest.mark.collector


def test_file_log_by_the_collector(
    duckdb: DuckDb, facts: list[str], own_collector: Callable[..., Collector]
) -> None:
    """The filelog receiver takes a file log, and gives log records with the same ids, names and times."""
    collector = own_collector()
    write(collector.folder / "events", told())
    collector.start()
    wait_until(lambda: len(collector.log_records()) == len(told().events), "it has read all")
    (record,) = [r for r in collector.log_records() if r["attributes"]["event.name"] == "JobFailureEvent"]
    (event,) = of_name(told().events, "JobFailureEvent")

    assert record["timeUnixNano"] == event["timeUnixNano"]
    assert record["severityText"] == "INFO"
    assert record["scope"] == "tests"
    assert record["attributes"] == {
        **event["attributes"],
        "event.id": event["eventId"],
        "event.name": "JobFailureEvent",
        "log.file.name": "shop__app-1.events.000001.jsonl",
    }
    assert read(duckdb, collector.folder / "logs.jsonl") == (facts, 0, {})


def test_otlp_by_the_collector(
    duckdb: DuckDb, own_collector: Callable[..., Collector], event_logs: Path, tmp_path: Path
) -> None:
    """What the OTLP reporter sent and the collector wrote is the history that the file log has."""
    collector = own_collector()
    collector.start()
    conf = {
        "spark.events.reporter.otel.factory.class": "otlp",
        "spark.events.reporter.otel.exporter.endpoint": collector.grpc,
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(tmp_path / "events"),
    }
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    log = str(event_logs / "local-1596020211915")
    run_forked("replay", log, *options, check=True)
    written = len(file_events(tmp_path / "events"))
    wait_until(lambda: len(collector.log_records()) == written, "the collector has written all")
    by_otlp, by_file = (read(duckdb, path) for path in (collector.folder / "logs.jsonl", tmp_path / "events"))
    assert by_otlp == by_file
    (sla,) = read_history(duckdb, [str(tmp_path / "events")])[0].tables().checkpoint_sla
    assert sla["completed"] == 8


def test_queue_on_disk(own_collector: Callable[..., Collector]) -> None:
    """With nobody to hand on to, and killed, the collector hands all on when both are there again."""
    loki = own_collector()  # which takes logs by OTLP over HTTP, as Loki does
    gateway = own_collector(environment={"EVENTS_TO": loki.http})
    write(gateway.folder / "events", told())
    gateway.start()
    wait_until(lambda: len(gateway.log_records()) == len(told().events), "it has read all")
    gateway.kill()
    gateway.start()
    loki.start()
    ids = {event["eventId"] for event in told().events}
    wait_until(lambda: set(loki.ids()) == ids, "all are handed on")
    # What was read is known after the restart, too: the file is not read again.
    write(gateway.folder / "events", Story("other").application(0, "CREATED"), name="b.events.000001.jsonl")
    wait_until(lambda: len(set(loki.ids())) == len(ids) + 1, "the next one is handed on")
    wait_until(lambda: len(gateway.log_records()) == len(ids) + 1, "it has one more, and no more")
