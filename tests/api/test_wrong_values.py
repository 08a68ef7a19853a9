"""Whatever a driver's own code gives to its metrics, events and spans: nothing raises, and what is lost is counted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings

from spark_events.api import Counter, Event, Failure, Gauge, Histogram, Meter, Span
from spark_events.api.wrong_values import counts
from spark_events.runtime.registry import Registry
from spark_events.sources.assembly import watch_wrong_values
from tests.support.hostile_values import Raising, odd_values

NEGATIVE = -1


def of_kind(kind: str, before: dict[str, int]) -> int:
    return counts()[kind] - before[kind]


@settings(deadline=None, max_examples=200)
@given(odd_values(), odd_values())
def test_nothing_raises(value: Any, other: Any) -> None:
    """And what is handed to reporters is what they can send."""
    taken: list[Event] = []
    registry = Registry((), tap=taken.append)
    root = registry.root
    group = root.add_group(value, other).add_group("key", value).add_group(other)
    counter, histogram, meter = (
        Counter(value, other),
        Histogram(value, other, value),
        Meter(value, unit=value),
    )
    for metric in (counter, histogram, meter, Gauge(lambda: value, value), Histogram([1, value]), value):
        group.register(other, metric)
    for each in (value, other, 1):
        counter.inc(each)
        meter.mark(each)
        histogram.update(each)
    assert counter.count >= 1
    assert math.isfinite(histogram.snapshot().sum) or histogram.snapshot().count > 1
    event = Event.builder(value, other).set_id(value).set_time_ms(value).set_severity(other)
    event.set_body(value).set_attribute(value, other).set_attributes(value).set_attributes(
        {value_key(other): value}
    )
    for added in (event, value):
        group.add_event(added)
        group.add_span(added)
    span = Span.builder(value, other).set_times_ms(value, other).set_ids(value, other, value).set_error(other)
    span.set_failure(value, other).set_failure(Failure(value, other, value), 1)
    span.set_attribute(other, value).set_attributes(other).add_event(value, other, value).add_link(
        value, other
    )
    group.add_span(span.add_child(value).add_child(Span.builder("scope", "Child").set_times_ms(other, value)))
    (built,) = [event for event in taken if type(event) is Event]
    assert type(built.time_ms) is int
    json.dumps({"name": built.name, "body": built.body, "id": built.id, **built.all_attributes})
    for piece in span.build_tree({}):
        json.dumps({"name": piece.name, "times": (piece.start_ms, piece.end_ms), **piece.all_attributes})
    registry.close(0)


def value_key(value: Any) -> Any:
    """Return it as a key, if it can be one."""
    try:
        return {value: value} and value
    except Exception:
        return "key"


def test_what_contains_itself_is_reported_as_far_as_it_goes() -> None:
    itself: list[Any] = ["a"]
    itself.append(itself)
    event = Event.builder("scope", "E").set_attribute("key", itself).build({})
    assert event.attributes == {"key": ("a", ("a", "['a', [...]]"))}


@pytest.mark.parametrize("span_s", ["a minute", 0, -5, None])
def test_a_meter_without_a_time_has_a_rate(span_s: Any) -> None:
    seconds = [0.0]
    meter = Meter(span_s, clock=lambda: seconds[0])
    for seconds[0] in (0.0, 30.0):
        meter.mark(30)
    assert meter.rate == 2


@pytest.mark.parametrize(
    "wrong", [None, "n/a", NEGATIVE, 10**400, float("nan"), Raising(), [1]], ids=range(7)
)
def test_each_is_counted(wrong: Any) -> None:
    before, counter, meter = counts(), Counter(), Meter()
    counter.inc(wrong)
    meter.mark(wrong)
    assert (counter.count, meter.count, of_kind("metric", before)) == (0, 0, 2)
    Histogram([1]).update(wrong)
    assert of_kind("metric", before) == (2 if wrong is NEGATIVE else 3)


def test_the_first_is_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_events.api.wrong_values._counts", {"metric": 0, "event": 0, "span": 0})
    for _ in range(3):
        Counter().inc(-1)
    assert [record.message for record in caplog.records] == [
        "Counter.inc: what was given (int) is not a number from 0 to 2^63: for what also shrinks, use a gauge; it is "
        "dropped (repeats are counted, not logged)"
    ]


def test_it_is_reported() -> None:
    """As a metric, and with all else that was dropped."""
    taken: list[Event] = []
    registry = Registry((), tap=taken.append)
    watch_wrong_values(registry, "app")
    Counter().inc(-1)
    Event.builder("scope", "E").set_severity("bogus")  # type: ignore[arg-type]
    registry.tick()
    seen = {event.attributes["cause"]: event.attributes["count"] for event in taken}
    assert seen == {"metric": 1, "event": 1}
