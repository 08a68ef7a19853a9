"""Reporters of others that use what they are given, and answer, as nobody told them to: nothing goes unsaid."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from spark_events.api import ApplicationInfo, Event, PartlyRefused, RetryLater, SpanBuilder
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from spark_events.runtime.workers.answers import pause_ms_of, reason_of, refused_of, tries_of
from spark_events.runtime.workers.worker import Worker
from tests.support.odd_senders import BareLater, BarePartly, Sending


def reported(factory: str, mode: str, count: int = 5) -> Worker:
    """Let a reporter of events report so many, and end; return its worker."""
    prefix = "spark.events.reporter.odd."
    conf = {f"{prefix}factory.class": f"tests.support.odd_senders:{factory}", f"{prefix}mode": mode}
    conf[f"{prefix}filter.excludes"] = "*:RecordsDroppedEvent"  # told where it was lost, it would be one more
    setups, errors = read_all_setups(conf)
    assert not errors, errors
    Sending.instances.clear()
    made = Registry(setups)
    made.start()
    for number in range(count):
        made.root.add_event(Event.builder("test", "MyEvent").set_attribute("n", number))
    made.close(8_000)
    return made.workers[0]


def balance(worker: Worker) -> tuple[int, int, int, int]:
    stats = worker.stats
    return (
        stats.reported.count,
        stats.failed.count,
        stats.refused.count,
        stats.dropped_by_cause["close"].count,
    )


ALL = (5, 0, 0, 0)


@pytest.mark.parametrize(
    ("mode", "counts", "posts"),
    [
        ("takes-out", ALL, 5),
        ("text-pause", ALL, 5),
        ("endless-pause", ALL, 5),
        ("mute-pause", ALL, 5),
        ("no-record", (4, 1, 0, 0), 4),
        ("mute-refusal", (0, 0, 5, 0), 0),
        ("no-number", (0, 0, 5, 0), 0),
        ("bare-pause", ALL, 5),
        ("bare-count", (0, 0, 5, 0), 0),
        ("long-reason", ALL, 5),
    ],
)
def test_senders(mode: str, counts: tuple[int, ...], posts: int, caplog: pytest.LogCaptureFixture) -> None:
    worker = reported("SendingFactory", mode)

    assert balance(worker) == counts
    assert len(Sending.instances[0].sent) == posts
    assert worker.depth == 0
    assert "failed unexpectedly" not in caplog.text
    assert len(caplog.text) < 20_000


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("coroutine", "raised in flush: TypeError: it returned a coroutine"),
        ("generator", "raised in notify_of_added_event: TypeError: it returned a generator"),
        ("coroutine-of-another", "raised in flush: TypeError: it returned a coroutine"),
    ],
)
def test_calls_that_run_nothing(mode: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    worker = reported("RunsNothingFactory", mode)
    assert balance(worker) == (0, 5, 0, 0)
    assert f"{said}, which nobody runs; expected a plain function" in caplog.text


def test_a_coroutine_that_is_run() -> None:
    assert reported("RunsNothingFactory", "run").stats.reported.count == 5


def test_a_count_in_a_text() -> None:
    """The first request may have been of one record alone."""
    done, failed, refused, closed = balance(reported("SendingFactory", "text-count"))
    assert (done + refused, failed, closed) == (5, 0, 0)
    assert 1 <= refused <= 2


@pytest.mark.parametrize("mode", ["text-pause", "mute-pause", "bare-pause", "long-reason"])
def test_flushes(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    assert balance(reported("FlushingFactory", mode)) == ALL
    assert "failed unexpectedly" not in caplog.text
    assert len(caplog.text) < 20_000


def test_a_bug_of_ours_loses_nothing_unsaid(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(self: object, items: int) -> None:
        raise AssertionError("this cannot be")

    monkeypatch.setattr("spark_events.runtime.workers.reporter_calls.Flusher.flush", stumble)
    worker = reported("FlushingFactory", "text-pause")
    assert sum(balance(worker)) + worker.stats.dropped_by_cause["not_open"].count == 5
    assert "event reporter 'odd' failed unexpectedly, is over, and lost" in caplog.text


@pytest.mark.parametrize("wrong", [None, "soon", object(), float("nan"), float("inf"), "", b"x"])
def test_an_answer_without_a_number(wrong: Any) -> None:
    assert pause_ms_of(RetryLater("x", after_ms=wrong)) is None
    assert refused_of(PartlyRefused(wrong, "x"), 7) == 7


@pytest.mark.parametrize(("count", "refused"), [("3", 3), (-5, 0), (10**400, 7), (2.9, 2), (0, 0)])
def test_how_many_are_refused(count: Any, refused: int) -> None:
    assert refused_of(PartlyRefused(count, "x"), 7) == refused


def test_answers_of_other_classes() -> None:
    """They may do without ours."""
    assert (pause_ms_of(BareLater()), tries_of(BareLater())) == (None, None)
    assert (refused_of(BarePartly(), 7), refused_of(BarePartly(), unsaid=1)) == (7, 1)
    assert pause_ms_of(RetryLater("x", after_ms=10**400)) == 2**31
    assert len(reason_of(RetryLater("x" * 5_000_000))) == 1_000


def test_variables_cannot_be_changed() -> None:
    """Those of a group are those of all that is reported there from then on."""
    made = Registry((), application=ApplicationInfo("nightly", "app-1"), variables={"app_name": "nightly"})
    of_query = made.root.child("query", (), {"query_name": "orders"})
    for group in (made.root, of_query, of_query.child("batch")):
        for variables in (group.variables, group.all_variables):
            with pytest.raises(TypeError, match="change dict"):
                variables["app_name"] = "another"  # type: ignore[index]
    made.close(1_000)


def test_what_is_reported_cannot_be_changed() -> None:
    """All reporters are given the same; copies are the reporter's own."""
    event = Event.builder("test", "MyEvent").set_attribute("n", 1).build({})
    span = SpanBuilder("test", "work").add_event("exception", 1, {"n": 1}).set_attribute("n", 1).build({})

    for given in (event.attributes, span.attributes, span.events[0].attributes):
        for change in ("__setitem__", "pop", "update", "clear", "setdefault", "__delitem__", "popitem"):
            with pytest.raises(TypeError, match="change dict"):
                getattr(given, change)("n", 2)
        assert json.loads(json.dumps(given)) == pickle.loads(pickle.dumps(given)) == given == {"n": 1}
        for own in (dict(given), copy.copy(given), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
            own["n"] = 2
            assert type(own) is dict
        assert given == {"n": 1}


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("text-bound", "OddBound.max_request_records: '5' is no whole number from 1 on"),
        ("text-context", "OddContext.context: 'all' is not of bytes"),
    ],
)
def test_senders_that_say_odd_things_of_themselves(
    mode: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They are not used, and what is given to them is counted."""
    worker = reported("SendingFactory", mode)
    assert said in caplog.text
    assert worker.stats.dropped_by_cause["not_open"].count == 5


def test_an_error_in_close_is_no_item(caplog: pytest.LogCaptureFixture) -> None:
    assert balance(reported("FlushingFactory", "close")) == ALL
    assert "raised in close: ValueError" in caplog.text
