"""What the driver makes of tasks' reports: which count, whose they are, and how many are too many."""

from __future__ import annotations

from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_events.runtime.registry import Registry
from tests.support import spark_records as r
from tests.support.spark_records import Feed, seen


def report(stage: int, partition: int, attempt: int = 7, run: str = "", **more: Any) -> dict[str, Any]:
    """Return the record of a task's report; ``attempt`` is the id of its task attempt."""
    return {
        "Event": "SparkEventsTaskReport",
        "stage": stage,
        "partition": partition,
        "attempt": 0,
        "task": attempt,
        "properties": {"spark.jobGroup.id": run or None},
        "metrics": [("counter", "rows", (("shop", "a"),), 10)],
        "events": [],
        "spans": [],
        "dropped": {},
        **more,
    }


def test_a_partition_counts_once() -> None:
    """By its first attempt, which may have several workers; in another stage it is another one."""
    feed = Feed()(r.application_start(), r.job_start(1, 0, (0,)))
    feed(report(0, 0, 7), report(0, 0, 7), report(0, 0, 8), report(0, 1, 9), report(1, 0, 10))
    assert feed.gauge("app.task.shop.a.rows") == 40


def test_after_its_job_a_stage_is_forgotten() -> None:
    """A list of all partitions would grow without end."""
    feed = Feed()(
        r.application_start(), r.job_start(1, 0, (0,)), report(0, 0, 7), r.job_end(2), report(0, 0, 8)
    )
    assert feed.gauge("app.task.shop.a.rows") == 20


def test_parts_of_one_count() -> None:
    """In metrics; an event has the nearest whole number."""
    hours = [("counter", "hours", (), 1.4), ("counter", "days", (), 0.1)]
    feed = Feed()(r.application_start(), report(0, 0, metrics=hours), report(0, 1, metrics=hours))
    assert feed.gauge("app.task.hours") == pytest.approx(2.8)
    (told,) = seen(feed(r.application_end(9)).end(), "TaskCounterEvent")
    assert told.attributes["count"] == 3


def test_of_a_query() -> None:
    feed = Feed()(r.application_start(), r.query_started(0), report(0, 0, run="run-1"))
    assert feed.gauge("app.task.orders.shop.a.rows") == 10


def test_a_label_that_is_taken() -> None:
    """It gets the prefix that Prometheus gives it, too."""
    labels = (("app_name", "mine"), ("shop", "a"))
    feed = Feed()(r.application_start(), report(0, 0, metrics=[("counter", "rows", labels, 1)]))
    assert feed.gauge("app.task.exported_app_name.mine.shop.a.rows") == 1


def test_secrets_in_names_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are replaced, as in all texts."""
    monkeypatch.setattr(Registry, "redact_name", lambda _, name: name.replace("s3cr3t", "******"))
    counted = [("counter", "s3cr3t rows", (("endpoint", "https://s3cr3t@api"),), 3)]
    feed = Feed()(r.application_start(), report(0, 0, metrics=counted), report(0, 1, metrics=counted))
    assert feed.gauge("app.task.endpoint.https://******@api.****** rows") == 6


def test_the_same_events_of_two_workers_are_two() -> None:
    event = {"name": "E", "body": "", "severity": "WARN", "attributes": {"n": 1}, "time_ns": r.T0 * 1_000_000}
    events = Feed()(r.application_start(), report(2, 3, events=[event]), report(2, 3, events=[event])).end()
    first, second = seen(events, "E")
    assert first.id != second.id
    assert first.body == "task 3 of stage 2: E"
    assert first.class_scope == "spark_events.task"


def test_an_event_of_a_task_is_never_taken_for_one_of_the_framework() -> None:
    event = {**_event("JobFailureEvent"), "attributes": {"app_name": "billing", "job_kind": "query"}}
    events = Feed()(r.application_start(), report(2, 3, events=[event])).end()
    (told,) = seen(events, "exported_JobFailureEvent")
    assert told.all_attributes["app_name"] != "billing"
    assert told.attributes == {"exported_app_name": "billing", "job_kind": "task"}


def _event(name: str) -> dict[str, Any]:
    return {"name": name, "body": "b", "severity": "INFO", "attributes": {}, "time_ns": r.T0 * 1_000_000}


def test_too_many_names_of_events_are_counted() -> None:
    feed = Feed()(r.application_start(), report(0, 0, events=[_event(f"E{n}") for n in range(103)]))
    assert feed.gauge("app.task.dropped.events.dropped") == 3


def test_what_a_task_dropped_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """And said: of wrong values it is not that there are too many."""
    feed = Feed()(r.application_start(), report(0, 0, dropped={"spans": 4, "values": 2}))
    assert feed.gauge("app.task.dropped.spans.dropped") == 4
    assert feed.gauge("app.task.dropped.values.dropped") == 2
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in said] == [
        "tasks report too many spans; what is beyond the limits is dropped and counted",
        "tasks report values that are dropped and counted",
    ]


def failed(stage: int, partition: int, attempt: int, **more: Any) -> dict[str, Any]:
    """Return the record of a task that fails at its second second."""
    failure = {
        "time_ns": (r.T0 + 2_000) * 1_000_000,
        "begun_ns": (r.T0 + 1_000) * 1_000_000,
        "type": "ValueError",
        "message": "no",
        "file": "/app/shop.py",
        "line": 7,
        "function": "price",
        "locals": {"row": "7"},
    }
    return orjson.loads(orjson.dumps(report(stage, partition, attempt, failed=failure, **more)))  # type: ignore[no-any-return]


def test_a_failed_attempt_counts_apart() -> None:
    """And does not keep the next from counting."""
    feed = Feed()(r.application_start(), failed(0, 0, 7), failed(0, 0, 8), report(0, 0, 9))
    assert feed.gauge("app.task.shop.a.rows") == 10
    assert feed.gauge("app.task.shop.a.rows_failed_attempts") == 20


@pytest.mark.parametrize("reported", ["before its stage begins", "while it runs", "after it has ended"])
def test_spans_are_below_their_stage_whenever_they_are_reported(reported: str) -> None:
    """Spark tells of stages on another way than tasks report."""
    span = {"name": "lookup", "attributes": {}, "id": "a" * 16, "parent": None, "start_ns": 1, "end_ns": 2}
    begins, ends = r.stage("Submitted", 1_000, 0), r.stage("Completed", 3_000, 0)
    told = report(0, 3, spans=[span])
    records = {
        "before its stage begins": (told, begins, ends),
        "while it runs": (begins, told, ends),
        "after it has ended": (begins, ends, told),
    }
    feed = Feed()(r.application_start(), r.job_start(1, 0, (0,)), *records[reported])
    spans = {span.name: span for span in feed.spans()}
    assert spans["lookup"].parent_span_id == spans["Stage"].span_id


def test_the_span_of_a_failed_task() -> None:
    span = {
        "name": "inner",
        "id": "00f067aa0ba902b7",
        "parent": None,
        "attributes": {},
        "start_ns": (r.T0 + 1_000) * 1_000_000,
        "end_ns": (r.T0 + 2_000) * 1_000_000,
        "error": ["ValueError", "no"],
    }
    begun = (r.application_start(), r.job_start(1, 0, (0,)), r.stage("Submitted", 1, 0))
    feed = Feed()(*begun, failed(0, 3, 7, spans=[span]), r.stage("Completed", 3_000, 0))
    spans = {span.name: span for span in feed.spans()}
    of_task = spans["Task"]
    assert (of_task.start_ms, of_task.end_ms) == (r.T0 + 1_000, r.T0 + 2_000)
    assert (of_task.error, of_task.parent_span_id) == ("no", spans["Stage"].span_id)
    assert of_task.attributes["code.file.path"] == "/app/shop.py"
    assert of_task.attributes["local.row"] == "7"
    assert spans["inner"].parent_span_id == of_task.span_id
    assert spans["inner"].trace_id == of_task.trace_id


_ATTEMPT = st.tuples(st.booleans(), st.integers(1, 2), st.integers(0, 50))


@settings(max_examples=40)
@given(st.lists(st.lists(_ATTEMPT, min_size=1, max_size=5), min_size=1, max_size=6))
def test_whatever_is_tried_again_a_plain_loop_counts_the_same(
    partitions: list[list[tuple[bool, int, int]]],
) -> None:
    """Attempts that fail, speculative copies, and stages that run again; each with one worker or two."""
    records, succeeded, in_vain, number = [], 0, 0, 0
    for partition, attempts in enumerate(partitions):
        counts = False
        for succeeds, workers, rows in attempts:
            number += 1
            metrics = [("counter", "rows", (), rows)]
            if not succeeds:
                records.append(failed(0, partition, number, metrics=metrics))
                in_vain += rows
                continue
            records += [report(0, partition, number, metrics=metrics)] * workers
            succeeded += 0 if counts else rows * workers
            counts = True
    feed = Feed()(r.application_start(), r.job_start(1, 0, (0,)), *records)
    names = feed.names()
    for name, rows in (("app.task.rows", succeeded), ("app.task.rows_failed_attempts", in_vain)):
        assert (feed.gauge(name) if name in names else 0) == rows


def test_one_name_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A label that differs in each row, names that do: later metrics and events of others are there."""
    feed = Feed()(r.application_start())
    for stage in range(30):
        labels = [["counter", "rows", [["id", f"{stage}-{number}"]], 1] for number in range(500)]
        names = [["counter", f"row_{stage}_{number}", [], 1] for number in range(500)]
        events = [_event(f"Row{stage}-{number}") for number in range(100)]
        feed(report(stage % 3, stage, metrics=labels, events=events))
        feed(report(stage % 3, 100 + stage, metrics=names))
    feed(report(77, 0, metrics=[["counter", "still", [], 1]], events=[_event("Still")]))

    assert feed.gauge("app.task.still") == 1
    assert seen(feed.end(), "Still")
    said = [line for line in caplog.messages if line.startswith("tasks report too many")]
    assert any("series named 'rows'" in line for line in said)
    assert any("events with other names, such as 'Row" in line for line in said)
    assert len(said) <= 20


@pytest.mark.parametrize("made", ["{0}_{1}", "{2}_{3}"], ids=["numbers", "words"])
def test_the_same_bad_job_again_and_again(caplog: pytest.LogCaptureFixture, made: str) -> None:
    """Each run of it is other stages: together, they leave something for others, and their lines in the log."""
    feed = Feed()(r.application_start())
    words = ["".join(letters) for letters in product("abcdefgh", repeat=3)]
    for stage in range(105):
        names = [made.format(stage, number, words[stage], words[number]) for number in range(100)]
        metrics, events = [["counter", name, [], 1] for name in names], [_event(name) for name in names]
        feed(report(stage, stage, metrics=metrics, events=events))
    feed(report(777, 0, metrics=[["counter", "still", [], 1]], events=[_event("Still")]))

    assert feed.gauge("app.task.still") == 1
    assert seen(feed.end(), "Still")


def test_a_job_whose_names_differ_in_words_has_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed()(r.application_start())
    words = ["".join(letters) for letters in product("abcdefgh", repeat=3)]
    feed(report(0, 0, metrics=[["counter", word, [], 1] for word in words], events=[*map(_event, words)]))
    assert feed.gauge("app.task.dropped.series.dropped") == len(words) - 100
    said = [line for line in caplog.messages if line.startswith("tasks report too many")]
    assert len(said) == 2


def test_nothing_is_said_of_what_was_not_dropped(caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed()(r.application_start())
    feed(report(0, 0, dropped={"series": 3, "spans": 0}))
    assert "too many series" in caplog.text
    assert "too many spans" not in caplog.text


def test_the_name_is_told_that_most_is_of(caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed()(r.application_start())
    for partition in range(3):
        feed(report(partition, 0, dropped={"series": 3, "events": 1}, crowding={"series": "seen"}))
    own = [record for record in caplog.records if record.name.startswith("spark_events")]
    assert [record.getMessage().partition(";")[0] for record in own] == [
        "tasks report too many series named 'seen'",
        "tasks report too many events",
    ]
