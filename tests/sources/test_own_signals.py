"""What an application's own code reports from its driver, whatever it hands over."""

from __future__ import annotations

import collections
import contextvars
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from spark_events.api import ApplicationInfo, Event, Span
from spark_events.api.wrong_values import counts
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime import event_names
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from spark_events.sources.attaching import own_signals
from spark_events.sources.attaching.own_signals import OwnSignals
from tests.support.hostile_values import Proxy, Raising, odd_values
from tests.support.plugins import CollectingSpansFactory, TextlessError


def signals(registry: Registry | None = None, app_id: str = "app-1") -> OwnSignals:
    return OwnSignals(registry or Registry(()), ApplicationInfo("shop", app_id), ListenerSettings())


def reported(value: Any, other: Any) -> list[Event]:
    taken: list[Event] = []
    own = signals(Registry((), tap=taken.append))
    own.counter(value, {"label": other}).inc(value)
    own.gauge(value, None, {"label": other})
    own.histogram(other, {"label": value}).update(other)
    own.event(value, other, value, {"key": other})
    with own.span(value, {"key": other}):
        pass
    return taken


@settings(deadline=None, max_examples=100)
@given(odd_values(), odd_values())
def test_nothing_raises(value: Any, other: Any) -> None:
    assert len(reported(value, other)) == 1


@pytest.mark.parametrize("kind", [Raising, Proxy])
def test_objects_that_raise(kind: type) -> None:
    assert len(reported(kind(), kind())) == 1


def test_a_span_hands_on_an_error_that_has_no_text() -> None:
    """What the block raises is what comes out of it, even if the error raises when it is asked what it says."""
    taken: list[Any] = []

    with pytest.raises(TextlessError), signals(Registry((), tap=taken.append)).span("block", {}):
        raise TextlessError


@pytest.fixture
def of_spans() -> Registry:
    conf = {"spark.traces.reporter.x.factory.class": "tests.support.plugins:CollectingSpansFactory"}
    made = Registry(read_all_setups(conf)[0])
    made.start()
    return made


def spans_of(registry: Registry) -> list[Span]:
    registry.close(5_000)
    assert CollectingSpansFactory.last is not None
    return CollectingSpansFactory.last.spans


def test_a_span_that_ends_in_another_context(of_spans: Registry) -> None:
    """A generator may be ended by another thread: what it raises comes out, and the span is reported."""
    own = signals(of_spans)

    def rows() -> Iterator[int]:
        with own.span("rows", {}):
            yield 1
            raise KeyError("of the user")

    reading = rows()
    next(reading)
    with pytest.raises(KeyError, match="of the user"):
        contextvars.Context().run(next, reading)
    with own.span("around", {}), own.span("within", {}):
        pass
    of_rows, within, around = spans_of(of_spans)
    assert [of_rows.name, within.name, around.name] == ["rows", "within", "around"]
    assert of_rows.error == "KeyError: 'of the user'"
    assert (around.parent_span_id, within.parent_span_id) == (of_rows.parent_span_id, around.span_id)


def test_a_span_of_a_generator_whose_rest_nobody_wants(of_spans: Registry) -> None:
    """It is closed; nothing has failed."""
    own = signals(of_spans)

    def rows() -> Iterator[int]:
        with own.span("rows", {}):
            yield 1

    reading = rows()
    next(reading)
    reading.close()
    (span,) = spans_of(of_spans)
    assert span.error is None


def test_a_span_within_one_of_an_application_that_has_ended(of_spans: Registry) -> None:
    """It is below its own application, and one within it below it."""
    with signals(of_spans, "app-0").span("ended", {}):
        own = signals(of_spans)
        with own.span("outer", {}), own.span("inner", {}):
            pass

    inner, outer, ended = spans_of(of_spans)
    assert outer.trace_id == inner.trace_id != ended.trace_id
    assert outer.parent_span_id not in (None, ended.span_id)
    assert inner.parent_span_id == outer.span_id


def test_an_event_is_never_taken_for_one_of_the_framework(caplog: pytest.LogCaptureFixture) -> None:
    """Reports and alerts go by the names of those, and by whose application they are."""
    event_names._exported.cache_clear()  # it is said once for each name
    taken: list[Event] = []
    own = signals(Registry((), tap=taken.append))

    own.event("JobFailureEvent", "", "warn", {"app_name": "billing", "job_kind": "query", "shop": "north"})

    (event,) = taken
    assert event.name == "exported_JobFailureEvent"
    assert event.all_attributes["app_name"] == "shop"
    assert event.attributes == {
        "exported_app_name": "billing",
        "job_kind": "application",
        "shop": "north",
    }
    assert "event 'JobFailureEvent' of your own is reported as 'exported_JobFailureEvent'" in caplog.text


def test_nor_is_what_a_span_says(of_spans: Registry) -> None:
    with signals(of_spans).span("load", {"app_id": "b-1"}) as span:
        span.set_attribute("app_name", "billing")

    (span,) = spans_of(of_spans)
    attributes = span.all_attributes
    assert (attributes["app_name"], attributes["exported_app_name"]) == ("shop", "billing")
    assert (attributes["app_id"], attributes["exported_app_id"]) == ("app-1", "b-1")


def test_long_names_are_cut(of_spans: Registry) -> None:
    taken: list[Event] = []
    signals(Registry((), tap=taken.append)).event("E" * 10**6, "body", "info", {})
    with signals(of_spans).span("S" * 10**6, {}):
        pass
    assert [len(each.name) for each in (*taken, *spans_of(of_spans))] == [1_024, 1_024]


def test_labels_in_a_mapping() -> None:
    """As other libraries have it, and as in tasks."""
    own = signals()
    assert own.counter("files", {"labels": {"shop": "b"}, "of": "ftp"}) is own.counter(
        "files", {"of": "ftp", "shop": "b"}
    )


@pytest.mark.parametrize("call", ["counter", "gauge", "histogram"])
def test_too_many_labels(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Each scrape has them all. The log names the call as the user wrote it."""
    monkeypatch.setattr("spark_events.api.wrong_values._counts", {"metric": 0})
    own = signals()
    labels = {f"l{number}": number for number in range(100)}
    given = (None, labels) if call == "gauge" else (labels,)
    assert getattr(own, call)("rows", *given) is not getattr(own, call)("rows", *given)
    assert counts()["metric"] == 2
    (record,) = caplog.records
    assert record.message.startswith(f"Attachment.{call}: what was given (dict) has more than 50 labels;")


def test_a_gauge_has_the_number_of_the_moment_when_it_was_set() -> None:
    """An object may compute it, and another one each time: whoever scrapes does not wait for that."""

    class Computed:
        computed = 0

        def __float__(self) -> float:
            self.computed += 1
            return float(self.computed)

    gauge = signals().gauge("depth", None, {})
    gauge.set(Computed())  # type: ignore[arg-type]
    assert [gauge.value, gauge.value] == [1.0, 1.0]


def test_a_gauge_that_is_set_and_read() -> None:
    """In whatever order and at whatever places: what was given last counts."""
    own = signals()
    read = own.gauge("depth", lambda: 3, {})
    assert read.value == 3
    own.gauge("depth", None, {}).set(4)
    assert read.value == 4
    assert own.gauge("depth", lambda: 5, {}) is read
    assert read.value == 5


@pytest.mark.parametrize("value", [17, "17", [1]])
def test_a_gauge_that_is_given_no_function(value: Any) -> None:
    """It has no value by that, which is counted; it can be set as ever."""
    own, before = signals(), counts()["metric"]
    gauge = own.gauge("depth", value, {})
    assert gauge.value is None
    assert counts()["metric"] - before == 1
    gauge.set(18)
    assert own.gauge("depth", None, {}).value == 18


def test_there_are_only_so_many_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that never repeats fills no memory; what is known already goes on, and the rest is counted."""
    monkeypatch.setattr(own_signals, "_MOST_SERIES", 12)
    own, before = signals(), counts()["series"]
    first = own.counter("orders", {"shop": 0})
    others = [own.counter("orders", {"shop": number}) for number in range(1, 20)]

    others[-1].inc()
    assert own.counter("orders", {"shop": 0}) is first
    assert len(own._made) == 12
    assert counts()["series"] - before == 8


def test_metrics_that_come_when_others_have_used_up_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of tasks: each name has some series, up to twice as many in all."""
    monkeypatch.setattr(own_signals, "_MOST_SERIES", 20)
    own = signals()
    for name in "abcd":
        for number in range(20):
            own.counter(name, {"file": number})

    made = collections.Counter(name for _, name, _ in own._made)
    assert made == {"a": 20, "b": 10, "c": 10}


def test_one_metric_with_many_labels_takes_nothing_from_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names it, once."""
    monkeypatch.setattr(own_signals, "_MOST_SERIES_OF_NAME", 3)
    own, before = signals(), counts()["series"]
    for number in range(10):
        own.counter("files_read", {"path": number}).inc()
        own.counter("rejected", {"number": number // 5}).inc()

    assert collections.Counter(name for _, name, _ in own._made) == {"files_read": 3, "rejected": 2}
    assert counts()["series"] - before == 7
    (record,) = caplog.records
    assert "'files_read'" in record.getMessage()


@pytest.mark.parametrize("name", ["rows_{}", "{}", "file-{}x.rows", "r{:x}7", "t.{:032x}9"])
def test_names_that_a_loop_makes_take_nothing_from_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The log names the first of them that is left out, once."""
    monkeypatch.setattr(own_signals, "_MOST_SERIES_OF_NAME", 3)
    monkeypatch.setattr(own_signals, "_MOST_SERIES", 8)
    own, before = signals(), counts()["series"]
    for number in range(20):
        own.counter(name.format(number), {}).inc()
    own.counter("orders", {}).inc()

    assert len(own._made) == 4
    assert counts()["series"] - before == 17
    (record,) = caplog.records
    assert f"{name.format(3)!r}: it is left out" in record.getMessage()


def test_names_and_labels_are_cut() -> None:
    """Each scrape has them; without a bound, one name of a megabyte made scrapes of many megabytes."""
    own = signals()
    own.counter("x" * 1_000_000, {"y" * 1_000_000: "z" * 1_000_000}).inc()
    ((_, name, pairs),) = own._made
    assert (len(name), *map(len, pairs[0])) == (1_024, 1_024, 1_024)
