"""Streaming queries and their checkpoints: records in, events out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from spark_events.listeners.queries.query import QueryListener
from spark_events.listeners.queries.restart_counts import RestartCounts
from spark_events.listeners.spark_records import (
    FOUND_RUNNING,
    QUERY_NOT_STARTED,
    QUERY_PROGRESS,
    RESUMED_AFTER,
)
from tests.support import spark_records as r
from tests.support.rights import folder_of_all, without_rights
from tests.support.spark_records import T0, Feed, new_statuses, seen

BOOM = "org.apache.spark.SparkRuntimeException: [X] boom SQLSTATE: P0001\n\tat a.B.c(B.scala:1)"


def test_life_of_a_query() -> None:
    """CREATED with its start, RUNNING with the first commit, CANCELED when it is stopped."""
    feed = Feed()(r.application_start(), r.query_started(100), r.progress(200, 0), r.terminated())
    events = feed.end()

    assert new_statuses(events, "query") == ["CREATED", "RUNNING", "CANCELED"]
    running = seen(events, "JobStatusChangeEvent", "query")[1]
    assert running.time_ms == T0 + 300
    assert running.attributes["oldJobStatusMs"] == 200


def test_bounded_query_finishes() -> None:
    """A query that ends by itself is FINISHED."""
    feed = Feed()(r.application_start(), r.query_started(1, bounded=True), r.progress(2, 0), r.terminated())

    assert new_statuses(feed.end(), "query")[-1] == "FINISHED"


def test_a_thread_that_foreach_batch_leaves_behind() -> None:
    """What it begins of a batch that has committed is no batch: the query has finished, and owes nothing."""
    records = r.progress(2, 0), r.idle(200), r.batch_begins(300, 0)
    feed = Feed(checkpoint__sla="1s")(r.application_start(), r.query_started(1, bounded=True), *records)
    feed.tick(60_000)
    events = feed(r.terminated()).end()

    assert new_statuses(events, "query")[-1] == "FINISHED"
    assert not seen(events, "CheckpointOverdueEvent")


@pytest.mark.parametrize(
    "records",
    [
        (
            r.progress(2, 0),
            r.terminated(SparkEventsStopped=True),
        ),  # the program stopped it between two batches
        (r.progress(2, 0), r.batch_begins(3, 1), r.terminated()),  # whoever did, this batch never committed
        (r.batch_begins(3, 0), r.terminated()),
    ],
)
def test_bounded_query_that_is_stopped(records: tuple[dict[str, Any], ...]) -> None:
    """Before its end, by the program or from the JVM, it is CANCELED."""
    feed = Feed()(r.application_start(), r.query_started(1, bounded=True), *records)

    assert new_statuses(feed.end(), "query")[-1] == "CANCELED"


def test_two_queries_of_one_name_at_once() -> None:
    """In sessions of their own: what is shown is the one that goes on."""
    first, second = {"run": "run-1", "query": "query-1"}, {"run": "run-2", "query": "query-2"}
    feed = Feed()(r.application_start(), r.query_started(0, **first), r.query_started(1, **second))
    feed(r.progress(10, 0, run="run-1"), r.progress(20, 0, run="run-2"))
    feed(r.terminated("run-2", exception="org.apache.spark.SparkException: boom"))
    assert feed.gauge("app.query.orders.RUNNING.status") == 1
    feed(r.terminated("run-1"))
    assert feed.gauge("app.query.orders.CANCELED.status") == 1


def test_a_continuous_trigger() -> None:
    """Spark reports no progress of it: it is RUNNING, and nothing is overdue while it is up."""
    feed = Feed(checkpoint__sla="1s")(r.application_start(), r.query_started(0, continuous=True))
    feed.tick(60_000)
    events = feed(r.terminated()).end()
    assert new_statuses(events, "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert not seen(events, "CheckpointOverdueEvent")


def test_the_end_has_one_id_however_much_is_known_of_it() -> None:
    """A source that cannot tell FINISHED from CANCELED repeats the id of one that can."""
    ends = []
    for bounded in (True, False):
        feed = Feed()(r.application_start(), r.query_started(1, bounded=bounded), r.terminated())
        ends.append(seen(feed.end(), "JobStatusChangeEvent", "query")[-1])

    assert ends[0].attributes["newJobStatus"] != ends[1].attributes["newJobStatus"]
    assert ends[0].id == ends[1].id


def test_restart_in_one_driver() -> None:
    """The same id with a new run is RESTARTING out of FAILED, and counted."""
    feed = Feed()(
        r.application_start(),
        r.query_started(0),
        r.progress(100, 0),
        r.batch_begins(300, 1),
        r.terminated(exception=BOOM),
        r.query_started(5_000, run="run-2"),
        r.progress(5_100, 1, run="run-2"),
    )
    events = feed.end()
    restarting = seen(events, "JobStatusChangeEvent", "query")[3]

    assert new_statuses(events, "query") == ["CREATED", "RUNNING", "FAILED", "RESTARTING", "RUNNING"]
    assert restarting.attributes["oldJobStatus"] == "FAILED"
    assert restarting.attributes["oldJobStatusMs"] == 4_700
    assert feed.gauge("app.query.orders.numRestarts") == 1


def test_resumed_from_another_drivers_checkpoint() -> None:
    """A first run that goes on with batch 7 is a restart, though this driver never saw the one before."""
    feed = Feed()(r.application_start(), r.query_started(0), r.batch_begins(50, 7), r.progress(40, 7))

    assert new_statuses(feed.end(), "query") == ["CREATED", "RESTARTING", "RUNNING"]
    assert feed.gauge("app.query.orders.numRestarts") == 1


def test_resumed_without_new_data() -> None:
    """A query that the driver knows to continue from a checkpoint is a restart, though it does nothing."""
    feed = Feed()(r.application_start(), r.query_started(0, **{RESUMED_AFTER: 7}), r.idle(900))
    assert feed.gauge("app.query.orders.numRestarts") == 1
    assert new_statuses(feed.end(), "query") == ["RESTARTING", "RUNNING"]

    for known in ({RESUMED_AFTER: None}, {RESUMED_AFTER: 7, FOUND_RUNNING: True}):
        feed = Feed()(r.application_start(), r.query_started(0, **known), r.idle(900))
        assert new_statuses(feed.end(), "query") == ["CREATED", "RUNNING"]


def test_resumed_counts_once() -> None:
    """Its first batch, which says the same, is no other restart."""
    started = r.query_started(0, **{RESUMED_AFTER: 6})
    feed = Feed()(r.application_start(), started, r.batch_begins(50, 7), r.progress(40, 7))
    assert feed.gauge("app.query.orders.numRestarts") == 1
    assert new_statuses(feed.end(), "query") == ["RESTARTING", "RUNNING"]


def test_found_running() -> None:
    """A query that ran already at attach is at some batch: that is not a restart."""
    started = r.query_started(0, **{FOUND_RUNNING: True})
    feed = Feed()(r.application_start(), started, r.batch_begins(50, 7), r.progress(40, 7))

    assert new_statuses(feed.end(), "query") == ["CREATED", "RUNNING"]
    assert feed.gauge("app.query.orders.numRestarts") == 0


def test_restarts_are_counted_across_drivers(tmp_path: Path) -> None:
    """With a folder to remember, a third driver knows of the two before."""
    for run, expected in enumerate(([], ["RESTARTING"], ["RESTARTING"])):
        feed = Feed(state__dir=str(tmp_path))
        feed(r.application_start(**{"App ID": f"app-{run}"}), r.query_started(0, run=f"run-{run}"))
        feed(r.progress(10, 0, run=f"run-{run}"))
        assert [s for s in new_statuses(feed.end(), "query") if s == "RESTARTING"] == expected
    assert feed.gauge("app.query.orders.numRestarts") == 2


def test_a_page_that_is_read_while_a_query_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no status yet, and no restarts: a 0 would be a reset of the counter, and no outage any more."""
    known, pages = RestartCounts.known, []

    def looking(counts: RestartCounts, query_id: str) -> bool:
        of_query = [name for name in feed.names() if name.startswith("app.query.orders.")]
        looked_at = [
            name for name in of_query if name.endswith((".status", ".numRestarts", ".uptime", ".downtime"))
        ]
        pages.append({name: feed.gauge(name) for name in looked_at})
        return known(counts, query_id)

    monkeypatch.setattr(RestartCounts, "known", looking)
    for run in range(2):
        feed = Feed(state__dir=str(tmp_path))
        feed(r.application_start(**{"App ID": f"app-{run}"}), r.query_started(0, run=f"run-{run}")).end()
    assert len(pages) >= 2
    assert all(len(page) >= 9 and set(page.values()) == {None} for page in pages)
    assert feed.gauge("app.query.orders.numRestarts") == 1


def test_two_drivers_of_one_name_remember_in_one_file(tmp_path: Path) -> None:
    """Neither loses what the other counts, and a query that moves to the other is known there."""
    one, other = (
        Feed(state__dir=str(tmp_path))(r.application_start(**{"App ID": app_id})) for app_id in ("a", "b")
    )
    one(r.query_started(0, "run-1", "moves"), r.query_started(1, "run-2", "moves"))
    other(r.query_started(2, "run-3", "stays"))
    other(r.query_started(3, "run-4", "moves"))
    one.end()

    assert new_statuses(other.end(), "query") == ["CREATED", "RESTARTING"]
    assert orjson.loads((tmp_path / "app.json").read_bytes()) == {
        "moves": {"orders": 2},
        "stays": {"orders": 0},
    }


def test_a_query_that_moves_between_two_drivers_loses_no_restart(tmp_path: Path) -> None:
    """The other driver knew it already when it was restarted here: it counts on from what is in the file."""
    one = Feed(state__dir=str(tmp_path))(r.application_start(), r.query_started(0, "run-1"))
    other = Feed(state__dir=str(tmp_path))(r.application_start(**{"App ID": "other"}))
    one(r.query_started(1, "run-2"), r.query_started(2, "run-3"))
    other(r.query_started(3, "run-4"))

    assert orjson.loads((tmp_path / "app.json").read_bytes()) == {"query-1": {"orders": 3}}
    assert other.gauge("app.query.orders.numRestarts") == 3


def test_two_drivers_that_save_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In containers that share the folder, their process ids may be equal, too."""
    one, other = (RestartCounts(tmp_path, "app") for _ in range(2))
    write = Path.write_bytes

    def write_and_let_the_other_save(path: Path, data: bytes) -> int:
        size = write(path, data)
        monkeypatch.undo()
        other.started("theirs", "b")
        return size

    monkeypatch.setattr(Path, "write_bytes", write_and_let_the_other_save)
    one.started("ours", "a")
    one.restarted("ours", "a")

    assert caplog.text == ""
    assert orjson.loads((tmp_path / "app.json").read_bytes())["ours"] == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["app.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"query-1": null}', '{"query-1": 1e30}', '{"query-1": -1}'])
def test_state_that_cannot_be_read_or_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A broken state file is said, and counting begins anew."""
    (tmp_path / "app.json").write_text(text)
    feed = Feed(state__dir=str(tmp_path))(r.application_start(), r.query_started(0))

    assert new_statuses(feed.end(), "query") == ["CREATED"]
    assert "app.json, so restarts are counted from 0" in caplog.text


def test_a_state_file_that_is_too_large(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may write there does not fill the driver's memory; what is written here is never that large."""
    (tmp_path / "app.json").touch()
    os.truncate(tmp_path / "app.json", 1 << 43)
    counts = RestartCounts(tmp_path, "app")
    assert "app.json, so restarts are counted from 0: it is larger than 8 MiB" in caplog.text
    for number in range(10):
        counts.restarted(f"query-{number}", f"{number}" * 1_000_000)
    assert RestartCounts(tmp_path, "app").count("9" * 1_000_000) == 1
    assert (tmp_path / "app.json").stat().st_size <= 8 << 20


def test_a_file_of_somebody_else_in_the_place_of_the_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is kept, and the log says where."""
    (tmp_path / "app.json").write_text('{"name": "mine"}')
    counts = RestartCounts(tmp_path, "app")
    counts.restarted("query-1", "orders")
    counts.restarted("query-1", "orders")
    (kept,) = tmp_path.glob("*.unreadable")
    assert kept.read_text() == '{"name": "mine"}'
    assert caplog.text.count(f"app.json was not written here; it is kept as {kept.name}") == 1
    assert RestartCounts(tmp_path, "app").count("orders") == 2


def test_checkpoint_attributes() -> None:
    """All of Flink's attributes, and Spark's own times and rows."""
    state = {
        "memoryUsedBytes": 900,
        "commitTimeMs": 12,
        "customMetrics": {"stateOnCurrentVersionSizeBytes": 400},
    }
    rocks = {"commitTimeMs": 3, "customMetrics": {"rocksdbSstFileSize": 100, "rocksdbBytesCopied": 60}}
    feed = Feed()(
        r.application_start(),
        r.query_started(0, checkpointLocation="/cp"),
        r.progress(100, 0, took=50),
        r.progress(1_000, 1, took=80, stateOperators=[state]),
        r.progress(2_000, 2, stateOperators=[rocks, rocks]),
    )
    first, second, third = (dict(e.attributes) for e in seen(feed.end(), "CheckpointEvent"))

    assert first == {
        "checkpointId": 0,
        "fullSize": 0,
        "checkpointedSize": 0,
        "metadataSize": -1,
        "checkpointStatus": "COMPLETED",
        "isUnaligned": "false",
        "checkpointType": "Checkpoint",
        "durationMs": 50,
        "walCommitMs": 7,
        "commitOffsetsMs": 3,
        "owedMs": 150,
        "inputRows": 7,
        "checkpointLocation": "/cp",
        "job_kind": "query",
    }
    assert (
        second.items()
        >= {"fullSize": 400, "checkpointedSize": -1, "stateCommitMs": 12, "sinceLastMs": 930}.items()
    )
    assert third.items() >= {"fullSize": 200, "checkpointedSize": 120, "stateCommitMs": 6}.items()


def test_owed() -> None:
    """A checkpoint is owed since the last one, or since there was work again; with and without an SLA."""
    for conf in ({}, {"checkpoint__sla": "1s"}):
        feed = Feed(**conf)(
            r.application_start(),
            r.query_started(0),
            r.progress(100, 0),
            r.progress(1_100, 1),
            r.idle(2_000),
            r.batch_begins(60_000, 2),
            r.progress(60_000, 2, took=300),
            r.idle(61_000),
            r.progress(99_000, 3),
        )
        events = seen(feed.end(), "CheckpointEvent")
        owed = [event.attributes.get("owedMs") for event in events]
        assert {event.attributes.get("slaMs") for event in events} == {1_000 if conf else None}
        assert owed == [200, 1_000, 300, 100]


def test_failed_batch() -> None:
    """A batch that began and did not commit is a FAILED checkpoint, before the failure itself."""
    feed = Feed()(r.application_start(), r.query_started(0), r.batch_begins(100, 0))
    feed.listeners.on_record(r.terminated(exception=BOOM), received_ms=T0 + 400)
    events = feed.end()
    (failed,) = seen(events, "CheckpointEvent")

    assert (
        failed.attributes.items()
        >= {"checkpointId": 0, "checkpointStatus": "FAILED", "durationMs": 300}.items()
    )
    assert [e.name for e in events[-3:]] == ["CheckpointEvent", "JobFailureEvent", "JobStatusChangeEvent"]


@pytest.mark.parametrize("runs_on", [False, True])
def test_a_batch_that_runs_when_the_program_fails(runs_on: bool) -> None:
    """As long as Spark itself runs on, it may commit: nothing is said of it but that it was in progress."""
    feed = Feed()(r.application_start(), r.query_started(0), r.batch_begins(100, 0))
    end = r.application_end(400, SparkEventsSparkRunsOn=runs_on, Exception="ValueError: boom")
    events = feed(end).end()

    assert new_statuses(events, "query") == ["CREATED", "FAILED"]
    assert len(seen(events, "CheckpointEvent")) == (0 if runs_on else 1)


@pytest.mark.parametrize(("operators", "size"), [([], 0), ([{"memoryUsedBytes": 400}], -1)])
def test_sizes_of_a_failed_batch(operators: list[dict[str, int]], size: int) -> None:
    """They are known only where there is no state, as the batch before tells."""
    feed = Feed()(
        r.application_start(),
        r.query_started(0),
        r.progress(100, 0, stateOperators=operators),
        r.batch_begins(200, 1),
        r.terminated(exception=BOOM),
    )
    failed = seen(feed.end(), "CheckpointEvent")[-1].attributes

    assert [failed[f"{name}Size"] for name in ("full", "metadata")] == [size, -1]
    assert failed["checkpointedSize"] == size


def test_query_that_fails_between_batches() -> None:
    """Without a batch in the works, no checkpoint failed."""
    feed = Feed()(r.application_start(), r.query_started(0), r.progress(1, 0), r.terminated(exception=BOOM))

    assert [e.attributes["checkpointStatus"] for e in seen(feed.end(), "CheckpointEvent")] == ["COMPLETED"]


def test_trigger_without_data_is_no_checkpoint() -> None:
    """Progress without a batch, as Spark before 3.4 reports it, and QueryIdle are none."""
    empty = r.progress(500, 0, durationMs={"triggerExecution": 3, "latestOffset": 2})
    feed = Feed()(r.application_start(), r.query_started(0), r.progress(1, 0), empty, r.idle(900))

    assert len(seen(feed.end(), "CheckpointEvent")) == 1


def not_started(ms: int, name: str, run: str) -> dict[str, object]:
    raised = (
        'Traceback (most recent call last):\n  File "shop.py", line 7, in main\n    start()\nValueError: no'
    )
    what = {"time": T0 + ms, "exception": raised, "place": ["shop.py", 3, "begin"]}
    return {"Event": QUERY_NOT_STARTED, "id": "", "runId": run, "name": name, **what}


def test_a_query_that_cannot_start() -> None:
    """Each try is a run that begins and fails at once; the query shows as failed until it starts."""
    feed = Feed()(r.application_start(), not_started(5, "orders", "a"), not_started(9, "orders", "b"))
    assert feed.gauge("app.query.orders.downtime") is not None
    feed(r.query_started(20), r.progress(30, 0))
    assert feed.gauge("app.query.orders.downtime") == 0
    assert feed.gauge("app.query.orders.numRestarts") == 0
    events = feed.end()

    assert new_statuses(events, "query") == ["CREATED", "FAILED"] * 2 + ["CREATED", "RUNNING"]
    failures = seen(events, "JobFailureEvent", "query")
    assert [event.time_ms for event in failures] == [T0 + 5, T0 + 9]
    assert {event.attributes["code.function.name"] for event in failures} == {"begin"}
    assert {event.attributes["failureLabel.type"] for event in failures} == {"USER"}
    assert len({event.id for event in events}) == len(events)


def test_a_second_query_of_a_name_that_runs() -> None:
    """It cannot start, which is a failure, but the one that runs goes on."""
    feed = Feed()(
        r.application_start(), r.query_started(0), r.progress(1, 0), not_started(500, "orders", "a")
    )
    assert feed.gauge("app.query.orders.downtime") == 0
    events = feed.end()
    assert len(seen(events, "JobFailureEvent", "query")) == 1
    assert new_statuses(events, "query") == ["CREATED", "RUNNING"]


def test_thousands_of_queries_of_one_name() -> None:
    """A service starts one after the other, each with a new checkpoint: those that ended are forgotten.

    That they have run is known for longer.
    """
    feed = Feed()(r.application_start())
    for number in range(300):
        feed(r.query_started(number, f"run-{number}", f"query-{number}"), r.terminated(f"run-{number}", BOOM))
        feed.tick(number)
    handlers = feed.listeners._dispatcher._handlers[QUERY_PROGRESS]
    bound = [getattr(handler, "__self__", None) for handler in handlers]
    (queries,) = [each for each in bound if isinstance(each, QueryListener)]
    assert len(queries._queries) == 100
    feed(r.query_started(300, "run-300", "query-299"), r.query_started(301, "run-301", "query-0"))
    events = feed.end()

    assert new_statuses(events, "query")[-3:] == ["FAILED", "RESTARTING", "RESTARTING"]


def test_restarts_with_another_checkpoint(tmp_path: Path) -> None:
    """The query has another id then, and the same name: the series that is called after it goes on."""
    conf = {"state__dir": str(tmp_path)}
    one = Feed(**conf)(r.application_start(), r.query_started(0), r.terminated(exception="boom"))
    one(r.query_started(1, "run-2"), r.terminated("run-2", exception="boom"))
    assert one.gauge("app.query.orders.numRestarts") == 1
    one(r.query_started(2, "run-3", query="query-2"))
    assert one.gauge("app.query.orders.numRestarts") == 1

    other = Feed(**conf)(r.application_start(), r.query_started(3, "run-4", query="query-2"))
    assert other.gauge("app.query.orders.numRestarts") == 2


def test_counts_of_a_version_before(tmp_path: Path) -> None:
    """They had no names."""
    (tmp_path / "app.json").write_text('{"query-1": 3}')
    RestartCounts(tmp_path, "app").restarted("query-1", "orders")
    assert RestartCounts(tmp_path, "app").count("orders") == 4


@pytest.mark.parametrize("name", ["nightly load of " + "orders, " * 36, "n" * 254, "наш отчёт"])
def test_restarts_of_an_application_with_any_name(tmp_path: Path, name: str) -> None:
    RestartCounts(tmp_path, name).restarted("query-1", "orders")
    assert RestartCounts(tmp_path, name).count("orders") == 1
    assert RestartCounts(tmp_path, f"{name}2").count("orders") == 0


@pytest.mark.parametrize("length", [200, 234])
def test_a_name_that_a_file_can_have_stays(tmp_path: Path, length: int) -> None:
    """Its counts may be there from before."""
    RestartCounts(tmp_path, "n" * length).restarted("query-1", "orders")
    assert [path.name for path in tmp_path.iterdir()] == [f"{'n' * length}.json"]


def test_a_pipe_in_the_place_of_the_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever reads it would wait for ever."""
    os.mkfifo(tmp_path / "app.json")
    counts = RestartCounts(tmp_path, "app")
    assert caplog.messages == [
        f"cannot read {tmp_path}/app.json, so restarts are counted from 0: it is no file"
    ]
    counts.restarted("query-1", "orders")
    assert RestartCounts(tmp_path, "app").count("orders") == 1


def test_a_folder_of_counts_that_may_not_be_read(caplog: pytest.LogCaptureFixture) -> None:
    with folder_of_all() as folder:
        (folder / "state").mkdir()
        with without_rights(folder / "state"):
            counts = RestartCounts(folder / "state", "app")
            counts.restarted("query-1", "orders")
            assert counts.count("orders") == 1
    assert all("Permission denied" in message for message in caplog.messages)
    assert len(caplog.messages) == 2
