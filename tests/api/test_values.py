"""Events, spans and metrics as values."""

from __future__ import annotations

import inspect

import spark_events.api as api
from spark_events.api import Counter, Event, Failure, Gauge, Histogram, Meter, Severity, Span, SpanBuilder


def test_event_takes_variables_and_attributes() -> None:
    """An attribute stands beside a variable of its name; an unknown value is left out."""
    builder = Event.builder("scope", "MyEvent").set_attribute("a", 1).set_attribute("unknown", None)
    event = builder.set_severity(Severity.WARN).set_time_ms(5).build({"a": "x", "b": "y"})

    assert event.all_attributes == {"a": "x", "exported_a": 1, "b": "y"}
    assert (event.severity, event.time_ms) == (Severity.WARN, 5)


def test_event_without_id_gets_one_of_its_own() -> None:
    """Two events of a plugin's own making have two ids."""
    ids = {Event.builder("scope", "MyEvent").build({}).id for _ in range(3)}

    assert len(ids) == 3
    assert Event.builder("scope", "MyEvent").set_id("mine").build({}).id == "mine"


def test_span_cannot_end_before_it_begins() -> None:
    """It has no length, and no job fails of that."""
    assert Span.builder("scope", "Checkpoint").set_times_ms(2, 1).times_ms == (2, 2)


def tree() -> SpanBuilder:
    leaf = Span.builder("scope", "Leaf").set_times_ms(5, 500)
    child = Span.builder("scope", "Child").set_times_ms(50, 90).add_child(leaf)
    root = Span.builder("scope", "Root").set_times_ms(10, 100).set_ids("ab" * 16, "cd" * 8, "ef" * 8)
    return root.add_child(child).add_child(Span.builder("scope", "Child").set_times_ms(1, 2))


def test_children_are_part_of_their_parent() -> None:
    """They have its trace, its variables, and times within its own."""
    root, first, leaf, second = tree().build_tree({"app_name": "a"})

    assert [span.parent_span_id for span in (root, first, leaf, second)] == [
        "ef" * 8,
        root.span_id,
        first.span_id,
        root.span_id,
    ]
    assert {span.trace_id for span in (root, first, leaf, second)} == {"ab" * 16}
    assert [(s.start_ms, s.end_ms) for s in (first, leaf, second)] == [(50, 90), (50, 90), (10, 10)]
    assert all(span.variables == {"app_name": "a"} for span in (root, first, leaf, second))


def test_ids_of_children_are_made_of_their_parents() -> None:
    """Again the same ones, and no two alike though they have one name."""
    ids = [[span.span_id for span in tree().build_tree({})] for _ in range(2)]

    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4


def test_a_failure_is_an_exception() -> None:
    """Status and event; what is not known is left out; no failure changes nothing."""
    failure = Failure("no customer", "ValueError")
    span = Span.builder("scope", "Root").set_failure(failure, 7).set_failure(None, 8).build({})

    assert span.error == "no customer"
    (event,) = span.events
    assert (event.name, event.time_ms) == ("exception", 7)
    assert event.attributes == {"exception.type": "ValueError", "exception.message": "no customer"}


def test_counter_only_grows() -> None:
    """What is taken away from one is dropped."""
    counter = Counter()
    counter.inc()
    counter.inc(2)

    counter.inc(-1)

    assert counter.count == 3


def test_histogram_counts_by_bucket() -> None:
    """A value on a bound is in the bound's bucket, as in Prometheus."""
    histogram = Histogram([10, 1])
    for value in (0.5, 1, 2, 100):
        histogram.update(value)

    seen = histogram.snapshot()
    assert (seen.counts, seen.sum, seen.count) == ((2, 1, 1), 103.5, 4)


def test_gauge_asks_each_time() -> None:
    """A gauge's value is that of the moment."""
    values = iter([1, None])
    gauge = Gauge(lambda: next(values))

    assert gauge.value == 1
    assert gauge.value is None


def test_public_names() -> None:
    """``spark_events.api`` lists all that it has for a plugin author, and nothing that it has not."""
    public = {
        name for name, value in vars(api).items() if not name.startswith("_") and inspect.isclass(value)
    }

    assert public - set(api.__all__) == set()
    assert all(hasattr(api, name) for name in api.__all__)


def test_meter() -> None:
    """A count, and its growth a second over the last minute, or since it was made."""
    now = [1_000.0]
    meter = Meter(60, "{row}", clock=lambda: now[0])
    assert (meter.count, meter.rate) == (0, 0.0)
    for _ in range(30):
        meter.mark(4)
        now[0] += 1
    assert (meter.count, meter.rate) == (120, 4.0)
    now[0] += 30
    assert meter.rate == 120 / 60 - 4 / 60  # the first of its seconds has left the minute
    now[0] += 60
    assert (meter.count, meter.rate) == (120, 0.0)
    meter.mark(-1)
    assert meter.count == 120
