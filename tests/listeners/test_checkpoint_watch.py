"""Checkpoints that are overdue, and idle queries, which owe none: records in, events out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from spark_events.api import Event
from tests.support import spark_records as r
from tests.support.spark_records import T0, Feed, seen

BOOM = "org.apache.spark.SparkRuntimeException: [X] boom SQLSTATE: P0001\n\tat a.B.c(B.scala:1)"
RATHER_LATE = 1_000_000
Record = dict[str, Any]
Overdue = list[tuple[str | None, int, dict[str, Any]]]


def told(records: Iterable[Record], sla: str = "1s", until_ms: int | None = None, **extra: str) -> Overdue:
    """Return what is told of overdue checkpoints: the ids, when, and the attributes."""
    feed = Feed(
        checkpoint__sla=sla,
        extra={key.replace("__", ".").replace("_", "-"): text for key, text in extra.items()},
    )
    feed(r.application_start(), *records)
    if until_ms is not None:
        feed.tick(until_ms)
    return of(feed.end())


def of(events: list[Event]) -> Overdue:
    overdue = seen(events, "CheckpointOverdueEvent")
    return [(event.id, (event.time_ms or 0) - T0, dict(event.attributes)) for event in overdue]


def times(overdue: Overdue) -> list[int]:
    return [time_ms for _, time_ms, _ in overdue]


def test_late_batch() -> None:
    """One event for each gap, at the time at which it was due: a batch began at once, and was slow."""
    records = [r.query_started(0), r.progress(100, 0), r.batch_begins(300, 1), r.progress(210, 1, took=3_000)]
    ((_, time_ms, attributes),) = told(records)

    assert time_ms == 200 + 1_000
    assert attributes == {
        "slaMs": 1_000,
        "owedMs": 1_000,
        "sinceLastMs": 1_000,
        "lastCheckpointId": 0,
        "job_kind": "query",
    }


def test_in_time() -> None:
    """A checkpoint on time is none."""
    assert told([r.query_started(0), r.progress(100, 0), r.progress(1_100, 1)]) == []


@pytest.mark.parametrize(("interval_ms", "warns"), [(2_000, True), (500, False)])
def test_triggers_further_apart_than_the_sla(
    interval_ms: int, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody knows of data between two of them: whoever has set both is told, once for all runs."""
    feed = Feed(checkpoint__sla="1s")(r.application_start())
    for run in ("run-1", "run-2"):
        feed(r.query_started(0, run, triggerIntervalMs=interval_ms), r.terminated(run=run))
    said = "query 'orders' has a trigger each 2.0 s and an SLA of 1.0 s"
    assert sum(said in record.getMessage() for record in caplog.records) == warns


def test_late_after_a_pause() -> None:
    """After a pause, it is owed since the batch began; how long before that its trigger began is known only at its end."""
    paused = [r.query_started(0), r.progress(100, 0), r.batch_begins(5_500, 1)]
    ((_, time_ms, attributes),) = told([*paused, r.progress(5_000, 1, took=9_000)])
    assert (time_ms, attributes["sinceLastMs"]) == (6_500, 6_300)
    assert times(told(paused, until_ms=7_501)) == [6_500]
    assert times(told(paused, until_ms=7_500)) == []

    assert times(told([*paused, r.progress(5_000, 1, took=1_200)])) == [6_000]
    assert times(told([*paused, r.progress(5_000, 1, took=1_000)])) == []


def test_looking_for_data_is_a_part_of_the_batch() -> None:
    """A trigger that began right after a checkpoint found its data there, though its batch began late."""
    feed = Feed(checkpoint__sla="4s")(r.application_start(), r.query_started(0), r.progress(100, 0))
    feed(r.batch_begins(3_300, 1), r.progress(300, 1, took=4_500))
    events = feed.end()

    assert times(of(events)) == [4_200]
    assert seen(events, "CheckpointEvent")[-1].attributes["owedMs"] == 4_600


def test_live_and_replay_give_one_event() -> None:
    """The clock sees it first, a second late for late records; the record then repeats nothing."""
    feed = Feed(checkpoint__sla="1s")(r.application_start(), r.query_started(0), r.progress(100, 0))
    feed(r.batch_begins(250, 1))
    for ms, events in ((1_201, 4), (2_200, 4), (2_201, 5), (2_500, 5)):
        feed.listeners.tick(T0 + ms)
        assert feed.reported() == events + 1
    ticked = feed(r.progress(200, 1, took=2_900)).end()
    replayed = told(
        [r.query_started(0), r.progress(100, 0), r.batch_begins(250, 1), r.progress(200, 1, took=2_900)]
    )

    assert of(ticked) == replayed != []


def test_a_clock_that_is_set_back() -> None:
    """A query that hangs is told of after the usual time, and not an hour later; a follower's may lag."""
    hour = 3_600_000
    feed = Feed(checkpoint__sla="60s")(
        r.application_start(), r.query_started(hour), r.progress(hour + 100, 0)
    )
    feed(r.batch_begins(hour + 250, 1))
    for ms, events in ((5_000, 4), (64_999, 4), (66_001, 5), (80_000, 5)):
        feed.listeners.tick(T0 + ms)
        assert feed.reported() == events + 1
    ((_, time_ms, attributes),) = of(feed.end())

    assert (time_ms, attributes["owedMs"], attributes["sinceLastMs"]) == (65_000, 60_000, 60_000)


def test_a_clock_that_was_set_back_is_right_again_with_the_next_checkpoint() -> None:
    hour = 3_600_000
    feed = Feed(checkpoint__sla="60s")(
        r.application_start(), r.query_started(hour), r.progress(hour + 100, 0)
    )
    feed.tick(5_000)
    feed(r.batch_begins(6_000, 1), r.progress(6_000, 1), r.batch_begins(6_500, 2)).tick(60_000)

    assert of(feed.end()) == []


def test_down_is_overdue_and_stopped_is_not() -> None:
    """A query that failed owes a checkpoint, also if it was idle before; one that somebody stopped owes nothing."""
    for exception, count in ((BOOM, 1), (None, 0)):
        for before in ([], [r.idle(300)]):
            ran = [r.query_started(0), r.progress(100, 0), *before, r.terminated(exception=exception)]
            assert len(told(ran, until_ms=60_000)) == count


def test_what_was_overdue_belongs_to_the_run_that_was() -> None:
    """A replay, without a clock between the records, gives the run that failed, not the next one."""
    ran = [r.query_started(0), r.progress(100, 0), r.batch_begins(150, 1), r.terminated(exception=BOOM)]
    restarted = [r.query_started(60_000, run="run-2"), r.progress(60_100, 1, run="run-2")]
    live = Feed(checkpoint__sla="1s")(r.application_start(), *ran).tick(3_000)

    assert of(live(*restarted).end()) == told([*ran, *restarted]) != []


@pytest.mark.parametrize("sla_s", [1, 5, 9, 11, 20])
@pytest.mark.parametrize("interval_s", [0, 2, 5, 9])
def test_idle_query_owes_nothing(sla_s: int, interval_s: int) -> None:
    """Spark says that a query is idle 10 s after its checkpoint, at the next trigger; until then nothing is told."""
    if interval_s > sla_s:
        return
    idle_ms = 200 + 10_000 + 1_000 * interval_s + 900
    feed = Feed(checkpoint__sla=f"{sla_s}s")(r.application_start(), r.query_started(0), r.progress(100, 0))
    for ms in range(0, idle_ms + 1_000, 100):
        feed.tick(ms)
    feed(r.idle(idle_ms)).tick(RATHER_LATE)
    feed(r.batch_begins(RATHER_LATE, 1), r.progress(RATHER_LATE, 1, took=900))
    feed(r.idle(RATHER_LATE + 10_900))

    assert feed.gauge("app.query.orders.checkpointSlaMet") == 2
    assert feed.gauge("app.query.orders.checkpointSlaMissed") == 0
    assert of(feed.end()) == []


def test_nothing_to_do_at_the_start() -> None:
    """A query that has no data when it starts owes nothing, however long the start took."""
    assert told([r.query_started(0), r.idle(9_000)], until_ms=RATHER_LATE) == []


def test_first_batch_that_is_late() -> None:
    """The first checkpoint is owed since the start, as soon as it is known that there is one to do."""
    started = [r.query_started(0), r.batch_begins(3_000, 0)]
    assert times(told(started, until_ms=3_000)) == [1_000]
    assert times(told([r.query_started(0), r.progress(2_900, 0)])) == [1_000]


@pytest.mark.parametrize(("sla_s", "known_s"), [(1, 12), (5, 16), (20, 21), (21, 21), (60, 60)])
def test_stuck(sla_s: int, known_s: int) -> None:
    """If neither a batch nor Spark's word that the query is idle comes, then a checkpoint is overdue."""
    committed = [r.query_started(0), r.progress(-100, 0)]
    sla = f"{sla_s}s"
    assert told(committed, sla, until_ms=known_s * 1_000 + 1_000) == []
    stuck = told(committed, sla, until_ms=known_s * 1_000 + 1_001)
    assert times(stuck) == [sla_s * 1_000]

    late = known_s * 1_000 + 1
    assert told([*committed, r.idle(late)], sla) == stuck
    assert told([*committed, r.batch_begins(late, 1)], sla) == stuck
    assert told([*committed, r.idle(late - 1)], sla, until_ms=RATHER_LATE) == []


@pytest.mark.parametrize("written", ["2000", "2s"])
def test_another_idle_interval(written: str) -> None:
    """Spark's setting says when a query is idle."""
    environment = {
        "Event": "SparkListenerEnvironmentUpdate",
        "Spark Properties": {"spark.sql.streaming.noDataProgressEventInterval": written},
    }
    committed = [environment, r.query_started(0), r.progress(-100, 0)]
    assert times(told(committed, until_ms=5_001)) == [1_000]
    assert times(told(committed, until_ms=5_000)) == []


def test_sla_of_one_query() -> None:
    """A query may have an SLA of its own, and only that."""
    for key, count in (("checkpoint__query_sla__orders", 1), ("checkpoint__query_sla__others", 0)):
        feed = Feed(**{key: "1s"})
        feed(r.application_start(), r.query_started(0), r.progress(100, 0), r.progress(300, 1, took=3_000))
        assert len(of(feed.end())) == count


def test_slow_triggers() -> None:
    """After a pause in which Spark would have said that the query is idle, data may have waited all the time."""
    for began_ms, owed_ms in ((21_200, 5_000), (21_300, 26_100)):
        feed = Feed()(r.application_start(), r.query_started(0), r.progress(100, 0))
        feed(r.batch_begins(began_ms, 1), r.progress(began_ms, 1, took=5_000))
        assert seen(feed.end(), "CheckpointEvent")[-1].attributes["owedMs"] == owed_ms


@pytest.mark.parametrize(
    ("records", "stopped_ms", "owed"),
    [
        ([r.progress(100, 0), r.batch_begins(250, 1)], 41_200, (41_000, 1_000)),  # that hangs
        ([r.progress(100, 0), r.batch_begins(250, 1)], 700, (500, 1_000)),
        ([r.progress(100, 0)], 5_000, (None, None)),  # nobody knows whether there was data
        ([r.progress(100, 0), r.idle(12_000)], 60_000, (None, None)),
    ],
)
def test_how_long_a_commit_was_owed_when_its_query_was_stopped(
    records: list[Record], stopped_ms: int, owed: tuple[int | None, int | None]
) -> None:
    """It never comes, so no other event says so."""
    feed = Feed(checkpoint__sla="1s")(r.application_start(), r.query_started(0), *records)
    # Spark does not say when a query was terminated: at the time of the record before that.
    events = feed(r.executor("Added", stopped_ms), r.terminated()).end()
    end = next(e for e in seen(events, "JobStatusChangeEvent") if e.attributes["newJobStatus"] == "CANCELED")
    assert (end.attributes.get("owedMs"), end.attributes.get("slaMs")) == owed


@pytest.mark.parametrize(
    ("sla", "owed_ms"),
    [({}, None), ({"checkpoint__sla": "2h"}, None), ({"checkpoint__sla": "1s"}, 1_799_900)],
)
def test_a_query_that_is_stopped_between_two_triggers(sla: dict[str, str], owed_ms: int | None) -> None:
    """Its trigger comes once an hour: no commit is owed for half of it, unless the SLA is shorter."""
    feed = Feed(**sla)(r.application_start(), r.query_started(0), r.progress(0, 0))
    events = feed(r.executor("Added", 1_800_000), r.terminated()).end()
    end = next(e for e in seen(events, "JobStatusChangeEvent") if e.attributes["newJobStatus"] == "CANCELED")
    assert end.attributes.get("owedMs") == owed_ms
    assert len(of(events)) == (owed_ms is not None)


def test_a_query_that_starts_again_with_another_checkpoint() -> None:
    """Its id is another one then; by its name, it is the same query, and owes what the one before owed."""
    failed = [r.query_started(0), r.progress(100, 0), r.terminated(exception=BOOM)]
    again = [r.query_started(500, "run-2", query="query-2"), r.progress(600, 0, run="run-2")]
    feed = Feed(checkpoint__sla="1s")(r.application_start(), *failed, *again)
    feed(r.progress(1_500, 1, run="run-2"), r.idle(1_900, run="run-2"))
    feed.tick(60_000)
    assert feed.gauge("app.query.orders.checkpointOwed") == 0
    assert times(of(feed.end())) == []

    late = [r.query_started(5_000, "run-2", query="query-2"), r.progress(5_500, 0, run="run-2")]
    assert times(told([*failed, *late])) == [1_200]


def test_queries_of_one_name_in_two_sessions() -> None:
    """They count as one: it owes nothing for one that failed while the other runs, or was stopped after it."""
    both = [r.query_started(0), r.progress(100, 0), r.query_started(200, "run-2", query="query-2")]
    feed = Feed(checkpoint__sla="1s")(r.application_start(), *both)
    feed(r.terminated("run-2", exception=BOOM), r.progress(300, 1))
    feed(r.progress(1_200, 2), r.idle(1_500), r.terminated())
    feed.tick(60_000)
    assert feed.gauge("app.query.orders.checkpointOwed") == 0
    assert times(of(feed.end())) == []

    feed = Feed(checkpoint__sla="1s")(r.application_start(), *both, r.progress(300, 1))
    feed(r.terminated(), r.terminated("run-2", exception=BOOM))
    feed.tick(60_000)
    assert times(of(feed.end())) == [1_200]


def test_a_query_that_starts_again_with_another_name() -> None:
    """The one before is no more, and owes nothing; the new name has an SLA of its own."""
    failed = [r.query_started(0), r.progress(100, 0), r.terminated(exception=BOOM)]
    renamed = r.query_started(500, "run-2", name="exports")
    feed = Feed(checkpoint__sla="1s", extra={"spark.events.checkpoint.query-sla.exports": "1h"})
    feed(r.application_start(), *failed, renamed, r.progress(600, 1, run="run-2"))
    feed.tick(60_000)
    assert feed.gauge("app.query.orders.checkpointOwed") == 0
    assert feed.gauge("app.query.exports.checkpointSlaMet") == 1
    assert times(of(feed.end())) == []


def test_a_run_that_ends_after_the_next_has_begun() -> None:
    """The query runs on, and owes its commits."""
    begun = [r.query_started(0), r.progress(100, 0), r.query_started(300, "run-2")]
    feed = Feed(checkpoint__sla="1s")(r.application_start(), *begun, r.terminated())
    feed(r.batch_begins(400, 1, "run-2"))
    feed.tick(60_000)
    assert len(of(feed.end())) == 1


def test_what_was_overdue_before_the_query_got_another_name() -> None:
    """A replay tells of it, too, which has no clock."""
    failed = [r.query_started(0), r.progress(100, 0), r.terminated(exception=BOOM)]
    assert times(told([*failed, r.query_started(5_000, "run-2", name="exports")])) == [1_200]
