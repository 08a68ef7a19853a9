"""From the scope tree to the reporters: filters, variables, isolation, counters."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

import pytest

from spark_events.api import (
    ApplicationInfo,
    Counter,
    Event,
    EventBuilder,
    Gauge,
    PartlyRefused,
    Refused,
    RetryLater,
    Span,
)
from spark_events.api.wrong_values import counts
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from spark_events.runtime.workers.losses import Losses
from spark_events.runtime.workers.stats import LOSS_CAUSES, ReporterStats
from tests.support.plugins import Collecting, CollectingMetricsFactory, CollectingSpansFactory, Pushing
from tests.support.waiting import wait_until


def registry(**reporters: str) -> Registry:
    """Start a registry of event reporters: name to class, and ``name__option`` to value."""
    conf = {}
    for key, value in reporters.items():
        name, _, option = key.partition("__")
        conf[
            f"spark.events.reporter.{name}.{option.replace('__', '.').replace('_', '-') or 'factory.class'}"
        ] = value
    setups, errors = read_all_setups(conf)
    assert not errors, errors
    made = Registry(setups)
    made.start()
    return made


@pytest.fixture(autouse=True)
def _forget() -> None:
    Collecting.instances.clear()


def emit(made: Registry, count: int = 1) -> None:
    for number in range(count):
        made.root.add_event(Event.builder("test", "MyEvent").set_attribute("n", number))


def test_metric_reporters_wait_before_they_open() -> None:
    """For what leaves their port; others begin at once."""
    conf = {
        "spark.events.reporter.e.factory.class": "tests.support.plugins:CollectingFactory",
        "spark.metrics.reporter.m.factory.class": "tests.support.plugins:CollectingMetricsFactory",
    }
    setups, _ = read_all_setups(conf)
    may_open = threading.Event()
    made = Registry(setups, before_metrics=lambda: (may_open.wait(20), None)[1])
    made.start()
    try:
        (metrics,) = (worker for worker in made.workers if worker.setup.name == "m")
        (events,) = (worker for worker in made.workers if worker.setup.name == "e")
        wait_until(events._opened.is_set, "the reporter of events is open")
        assert not metrics._opened.is_set()
        may_open.set()
        assert made.wait_opened(20_000) == []
    finally:
        made.close(5_000)


def test_life_of_a_reporter() -> None:
    """Open comes first, flush after each batch, close last and once."""
    made = registry(good="tests.support.plugins:CollectingFactory")
    emit(made, 3)
    made.close(5_000)
    (reporter,) = Collecting.instances

    assert reporter.calls[0] == "open"
    assert reporter.calls[-1] == "close"
    assert reporter.calls.count("close") == 1
    assert reporter.calls[-2] == "flush"
    assert [event.attributes["n"] for event in reporter.events] == [0, 1, 2]
    assert made.workers[0].stats.reported.count == 3


def test_events_of_the_root_name_the_application() -> None:
    """Those of your own code, too; metrics, which are the same in each run, have no id."""
    conf = {"spark.events.reporter.good.factory.class": "tests.support.plugins:CollectingFactory"}
    setups, _ = read_all_setups(conf)
    made = Registry(setups, application=ApplicationInfo("nightly", "app-1"))
    made.start()
    made.root.add_event(Event.builder("test", "MyEvent"))
    made.root.child("query", (), {"query_name": "orders"}).add_event(Event.builder("test", "MyEvent"))
    made.close(5_000)
    (reporter,) = Collecting.instances

    named = {"app_name": "nightly", "app_id": "app-1"}
    assert [dict(event.variables) for event in reporter.events] == [named, {**named, "query_name": "orders"}]
    assert made.root.variables == {}


def test_filters_and_variables() -> None:
    """Each reporter sees what its filter lets through, with the variables that it shall see."""
    factory = "tests.support.plugins:CollectingFactory"
    made = registry(
        all=factory,
        some=factory,
        some__filter__includes="*.query:My*",
        some__scope__variables__additional="team:payments",
        some__scope__variables__excludes="app_id",
    )
    query = made.root.child("query", (), {"query_name": "orders"}, {"app_id": "1"})
    query.add_event(Event.builder("test", "MyEvent"))
    query.add_event(Event.builder("test", "OtherEvent"))
    made.root.add_event(Event.builder("test", "MyEvent"))
    made.close(5_000)
    seen = {len(reporter.events): reporter.events for reporter in Collecting.instances}

    assert sorted(seen) == [1, 3]
    assert seen[3][0].variables == {"query_name": "orders", "app_id": "1"}
    assert seen[1][0].variables == {"query_name": "orders", "team": "payments"}


@pytest.mark.parametrize("raises", ["error", "exit", "textless"])
@pytest.mark.parametrize("method", ["create", "open", "event", "flush", "close", "all"])
def test_a_reporter_that_raises_costs_itself_alone(
    method: str, raises: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever raises is logged once, all is counted, and the other reporter has everything."""
    made = registry(
        bad="tests.support.plugins:Raising",
        bad__in=method,
        bad__raises=raises,
        good="tests.support.plugins:CollectingFactory",
    )
    made.wait_opened(5_000)
    emit(made, 20)
    made.close(5_000)
    bad, good = made.workers

    assert good.stats.reported.count == 20
    assert bad.stats.reported.count + bad.stats.dropped + bad.stats.failed.count in (20, 21)
    assert bad.stats.reported.count == (20 if method == "close" else 0)
    errors = [record for record in caplog.records if "'bad'" in record.getMessage()]
    assert len(errors) == (2 if method == "all" else 1)


@pytest.mark.parametrize("method", ["create", "open", "event", "flush", "close"])
def test_a_reporter_that_blocks_for_ever(method: str) -> None:
    """The other reporter has everything, and closing takes its time and no more."""
    made = registry(
        bad="tests.support.plugins:Blocking", bad__in=method, good="tests.support.plugins:CollectingFactory"
    )
    emit(made, 20)
    good = made.workers[1]
    wait_until(lambda: good.stats.reported.count == 20, "the good one has all")
    started = time.monotonic()
    made.close(300)
    took = time.monotonic() - started
    bad = made.workers[0]

    assert took >= 0.25
    assert bad.stats.reported.count + bad.stats.dropped + bad.stats.failed.count == 20


def test_a_full_queue_drops_the_oldest_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """What a bound drops is counted, logged once a minute at the most, and reported as an event."""
    factory = "tests.support.plugins:CollectingFactory"
    made = registry(
        bad="tests.support.plugins:Blocking", bad__in="open", bad__queue__max_items="5", good=factory
    )
    emit(made, 12)
    worker = made.workers[0]

    assert worker.stats.dropped_by_cause["queue_full"].count == 7
    assert worker.depth == 5
    for _ in range(3):
        made.tick()
        emit(made, 2)
    made.close(1_000)
    events = [event for event in Collecting.instances[-1].events if event.name == "RecordsDroppedEvent"]
    said = [r.getMessage() for r in caplog.records if "the queue in memory was full" in r.getMessage()]

    # At the end, nothing waits for a minute to pass: six events, and the one about events.
    assert [event.attributes for event in events] == [
        {"cause": "queue_full", "count": 7, "total": 7},
        {"cause": "queue_full", "count": 7, "total": 14},
    ]
    assert events[0].variables == {"reporter": "bad", "reporter_kind": "events"}
    # What is dropped while reporters close is only in the log.
    assert said == [
        "event reporter 'bad' dropped 7 items, 7 in total, because the queue in memory was full "
        "(queue.max-items, queue.max-bytes)",
        "event reporter 'bad' dropped 7 items, 14 in total, because the queue in memory was full "
        "(queue.max-items, queue.max-bytes)",
        "event reporter 'bad' dropped 1 item, 15 in total, because the queue in memory was full "
        "(queue.max-items, queue.max-bytes)",
    ]


def test_losses_are_told_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place and cause at most once a minute, with what came in between."""
    now = [1_000.0]
    monkeypatch.setattr("spark_events.runtime.workers.losses.time.monotonic", lambda: now[0])
    told: list[tuple[object, object]] = []

    def add(group: object, event: EventBuilder) -> None:
        attributes = event.build({}).attributes
        told.append((attributes["cause"], attributes["count"]))

    losses, dropped = Losses(add), {"a": 0, "b": 0}
    losses.watch("it", Registry(()).root, lambda: dropped, {"a": "of a"})
    for a, b, seconds in ((1, 0, 0), (2, 0, 30), (2, 5, 10), (3, 5, 19), (3, 5, 1), (3, 5, 60)):
        dropped.update(a=a, b=b)
        now[0] += seconds
        losses.report()

    assert told == [("a", 1), ("b", 5), ("a", 2)]


def test_losses_that_a_killed_process_did_not_tell(caplog: pytest.LogCaptureFixture) -> None:
    """The next one knows them by the journal's cursor, and tells them, once."""
    killed = ReporterStats()
    events: list[EventBuilder] = []

    def told_by(stats: ReporterStats) -> list[object]:
        losses = Losses(lambda group, event: events.append(event))
        losses.watch("it", Registry(()).root, stats.losses, LOSS_CAUSES, stats.note_told)
        events.clear()
        losses.report()
        losses.report(lately=True)
        return [event.build({}).attributes["count"] for event in events]

    killed.drop("journal_full", 200)
    assert told_by(killed) == [200]
    killed.drop("journal_full", 4_800)
    after = ReporterStats()
    after.restore(killed.totals())
    after.drop("journal_full", 1)
    caplog.clear()
    assert told_by(after) == [4_801]
    assert "; 4,800 of them in an earlier process" in caplog.text
    assert after.totals()["dropped.journal_full"] == 5_001
    last = ReporterStats()
    last.restore(after.totals())
    assert told_by(last) == []
    late = ReporterStats()  # it has told some of its own before it gets at the journal
    late.drop("journal_full", 9)
    told_late = Losses(lambda group, event: events.append(event))
    told_late.watch("it", Registry(()).root, late.losses, LOSS_CAUSES, late.note_told)
    told_late.report()
    late.restore({"dropped.journal_full": 3, "told.journal_full": 1})
    told_late.report(lately=True)
    assert [event.build({}).attributes["count"] for event in events][-2:] == [9, 2]
    assert "; 2 of them in an earlier process" in caplog.text
    of_old = ReporterStats()
    of_old.restore({"dropped.journal_full": 5})  # nothing says what of it was told
    assert told_by(of_old) == []


@pytest.mark.extended
def test_a_hundred_thousand_events_behind_a_reporter_that_blocks() -> None:
    """Memory is bounded, nobody waits, the other reporter has everything, and closing is bounded."""
    factory = "tests.support.plugins:CollectingFactory"
    bounds = {"bad__queue__max_items": "1000000", "bad__queue__max_bytes": "1m"}
    made = registry(bad="tests.support.plugins:Blocking", bad__in="event", good=factory, **bounds)
    bad, good = made.workers
    good.wait_opened(5_000)
    for number in range(100_000):
        made.root.add_event(Event.builder("test", "MyEvent").set_body("x" * 100))
        if number % 5_000 == 0:
            wait_until(lambda: not good.depth, "the good one keeps up")
            assert bad.queue_bytes <= 1 << 20
    wait_until(lambda: good.stats.reported.count == 100_000, "the good one has all")
    assert bad.depth < 3_000
    made.close(300)

    # All of them, and the event that said so.
    assert bad.stats.dropped == 100_000 + 1


def test_a_forked_child_reports_nothing() -> None:
    """It has none of the threads, and must not hang on their locks."""
    made = registry(good="tests.support.plugins:CollectingFactory")
    made.wait_opened(5_000)
    child = os.fork()
    if child == 0:
        emit(made, 3)
        os._exit(made.workers[0].depth)
    _, status = os.waitpid(child, 0)
    emit(made, 1)
    made.close(5_000)

    assert os.waitstatus_to_exitcode(status) == 0
    assert made.workers[0].stats.reported.count == 1


def test_retry_later_keeps_everything() -> None:
    """A destination that is away for some flushes costs nothing and changes no order."""
    made = registry(away="tests.support.plugins:Away", away__flushes="3")
    emit(made, 5)
    wait_until(lambda: made.workers[0].stats.reported.count == 5, "all are reported")
    made.close(5_000)
    (reporter,) = Collecting.instances

    assert [event.attributes["n"] for event in reporter.events] == [0, 1, 2, 3, 4]
    assert reporter.calls.count("flush") >= 4


def test_retrying_ends_with_the_close(caplog: pytest.LogCaptureFixture) -> None:
    """A destination that stays away: what is left is counted and said, within the time."""
    made = registry(away="tests.support.plugins:Away", away__flushes="1000000")
    emit(made, 5)
    made.close(600)

    assert made.workers[0].stats.dropped_by_cause["close"].count == 5
    assert "lost 5 items: the destination did not take them before the application ended" in caplog.text
    assert "dropped" not in caplog.text  # which would say it twice


def test_wrong_kind_of_reporter(caplog: pytest.LogCaptureFixture) -> None:
    """A factory that makes something else is told so."""
    made = registry(odd="tests.support.plugins:WrongKind")
    made.wait_opened(5_000)
    made.close(1_000)

    assert (
        "its factory tests.support.plugins:WrongKind created CollectingSpans; expected EventReporter"
        in caplog.text
    )
    assert "raised in close" not in caplog.text


def test_spans_go_the_same_way() -> None:
    """Spans are loaded, filtered and dispatched as events are."""
    conf = {"factory.class": "tests.support.plugins:CollectingSpansFactory", "filter.excludes": "*:Secret*"}
    setups, _ = read_all_setups({f"spark.traces.reporter.x.{k}": v for k, v in conf.items()})
    made = Registry(setups)
    made.start()
    for name in ("Checkpoint", "SecretSpan"):
        made.root.add_span(Span.builder("test", name).set_times_ms(1, 2))
    made.close(5_000)
    reporter = CollectingSpansFactory.last

    assert reporter is not None
    assert [span.name for span in reporter.spans] == ["Checkpoint"]


def test_metrics_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    """Metrics are announced by full name and withdrawn; of two with one name the first stays."""
    conf = {
        "factory.class": "tests.support.plugins:CollectingMetricsFactory",
        "scope.delimiter": "/",
        "filter.includes": "spark.query:*:counter",
    }
    setups, errors = read_all_setups({f"spark.metrics.reporter.x.{k}": v for k, v in conf.items()})
    assert not errors
    made = Registry(setups)
    made.start()
    group = made.root.child("query", ("app", "query", "orders"), {"query_name": "orders"})
    first = group.register("restarts", Counter())
    group.register("restarts", Counter())
    group.register("age", Gauge(lambda: 1))
    keyed = group.add_group("source", "kafka")
    keyed.register("rows", Counter())
    wait_until(lambda: made.workers[0].stats.reported.count == 1, "announced")
    reporter = CollectingMetricsFactory.last
    assert reporter is not None
    seen = dict(reporter.metrics)
    group.close()
    group.register("late", Counter())
    made.close(5_000)

    assert seen == {"app/query/orders/restarts": (first, {"query_name": "orders"})}
    assert reporter.metrics == {}
    assert keyed.logical_scope == ("spark", "query", "source")
    assert keyed.variables == {"query_name": "orders", "source": "kafka"}
    assert "metric 'restarts' is not reported" in caplog.text


def test_a_pushing_reporter_reports_each_interval_and_at_the_end() -> None:
    """Also while nothing comes; a report that raises is counted, and the next one is made."""
    conf = {"factory.class": "tests.support.plugins:PushingFactory", "interval": "20ms", "raise.in": "2"}
    conf["filter.includes"] = "spark.mine"
    setups, errors = read_all_setups({f"spark.metrics.reporter.x.{k}": v for k, v in conf.items()})
    assert not errors
    made = Registry(setups)
    made.start()
    counter = made.root.add_group("mine").register("rows", Counter())
    wait_until(lambda: Pushing.last and len(Pushing.last.reports) >= 4, "it reports again and again")
    reporter = Pushing.last
    assert reporter is not None
    counter.inc(7)
    made.close(5_000)

    assert reporter.reports[-1] == [7]
    assert made.workers[0].stats.failed.count == 1


@pytest.mark.parametrize(
    ("error", "counted", "said"),
    [
        (
            RetryLater("nobody there"),
            ("retries", 2),
            ["cannot report; it retries", "reports again, after 2 missed"],
        ),
        (Refused("never"), ("refused", 2), ["metric reporter 'x': never"]),
        (PartlyRefused(30, "some"), ("refused", 60), ["metric reporter 'x': some"]),
    ],
)
def test_reports_that_do_not_get_through(
    error: Exception,
    counted: tuple[str, int],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are counted by what became of them, and said once, however often it happens."""
    monkeypatch.setattr(Pushing, "error", error)
    conf = {"factory.class": "tests.support.plugins:PushingFactory", "interval": "10ms", "raise.in": "2,3"}
    setups, _ = read_all_setups({f"spark.metrics.reporter.x.{k}": v for k, v in conf.items()})
    made = Registry(setups)
    made.start()
    made.wait_opened(5_000)
    reporter = Pushing.last
    wait_until(lambda: reporter and len(reporter.reports) >= 5, "it reports again and again")
    made.close(5_000)
    name, number = counted
    stats = made.workers[0].stats

    assert getattr(stats, name).count == number
    assert stats.failed.count == 0
    assert stats.last_success_ms
    assert [caplog.text.count(sentence) for sentence in said] == [1] * len(said)


def test_a_pushing_reporter_with_a_long_interval_reports_at_the_end() -> None:
    """A batch job that is shorter than the interval has its last values reported."""
    conf = {"factory.class": "tests.support.plugins:PushingFactory", "interval": "1h"}
    setups, _ = read_all_setups({f"spark.metrics.reporter.x.{k}": v for k, v in conf.items()})
    made = Registry(setups)
    made.start()
    made.wait_opened(5_000)
    made.close(5_000)

    assert Pushing.last is not None
    assert len(Pushing.last.reports) == 1


def test_nothing_is_logged_for_a_good_run(caplog: pytest.LogCaptureFixture) -> None:
    """A reporter that works is silent."""
    caplog.set_level(logging.WARNING)
    made = registry(good="tests.support.plugins:CollectingFactory")
    emit(made, 3)
    made.close(5_000)

    assert caplog.records == []


def test_a_clash_of_names_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The first metric of a name stays, and the second is warned of once, as in Flink, and counted."""
    made, before = registry(), counts()["metric"]
    first = made.root.register("rows", Counter())
    for _ in range(3):
        made.root.register("rows", Counter())
    made.close(5_000)

    assert made.root._metrics["rows"] is first
    assert caplog.text.count("metric 'rows' is not reported: spark already has a metric of that name") == 1
    assert counts()["metric"] - before == 1


def test_a_closed_group_takes_nothing_and_is_forgotten() -> None:
    """What comes and goes leaves no group behind; one of the same name may come after it."""
    made = registry()
    for _ in range(3):
        group = made.root.child("query", ("q",), {"query_name": "q"})
        group.register("rows", Counter())
        group.close()
        group.register("more", Counter())
        assert group._metrics == {}
    made.close(5_000)

    assert made.root._children == {}


def test_what_is_below_a_closed_group_takes_nothing_either() -> None:
    """As where a plugin holds the group of a query that has ended: nothing is kept, nothing is reported."""
    made = registry(a="tests.support.plugins:CollectingFactory")
    group = made.root.add_group("query", "q")
    before = group.add_group("before")
    group.close()
    for number in range(3):
        below = group.add_group("after", str(number))
        for each in (below, below.add_group("deeper"), before.add_group("after")):
            each.register("rows", Counter())
            each.add_event(Event.builder("test", "Below"))
            assert each._metrics == {}
    assert group._children == before._children == {}
    emit(made)
    made.close(5_000)

    assert [event.name for event in Collecting.instances[0].events] == ["MyEvent"]


def test_a_group_that_is_closed_again_is_not_its_successor() -> None:
    """As where a plugin closes the group of a query's run once more, when the next run has begun."""
    made = registry()
    first = made.root.add_group("query", "q")
    first.close()
    second = made.root.add_group("query", "q")
    second.register("rows", Counter())
    first.close()
    assert made.root.add_group("query", "q") is second
    made.root.close()
    assert second._metrics == {}
    made.close(5_000)


def test_a_group_that_is_closed_while_another_thread_registers_in_it() -> None:
    """The reporter is told of its metric first, and then that it is gone."""
    setups, _ = read_all_setups(
        {"spark.metrics.reporter.x.factory.class": "tests.support.plugins:CollectingMetricsFactory"}
    )
    made = Registry(setups)
    made.start()
    wait_until(lambda: made.workers[0].depth == 0, "its own are announced")
    group = made.root.add_group("mine")
    add, raised = made.add_metric, []

    def close() -> None:
        try:
            group.close()
        except Exception as error:
            raised.append(error)

    def add_late(*given: Any) -> None:
        closing.start()
        closing.join(0.2)  # for as long as it may take where it does not wait
        add(*given)

    closing = threading.Thread(target=close)
    made.add_metric = add_late  # type: ignore[method-assign]
    group.register("rows", Counter())
    closing.join()
    wait_until(lambda: made.workers[0].depth == 0, "all are told")
    assert CollectingMetricsFactory.last is not None
    kept = [name for name in CollectingMetricsFactory.last.metrics if name.endswith("mine.rows")]
    made.close(5_000)
    assert (raised, kept) == ([], [])


def test_the_frameworks_own_metrics_have_a_scope() -> None:
    """Their dotted names begin as ``spark.metrics.scope.driver`` says; their labels do not change by it."""
    key = "spark.metrics.reporter.x.factory.class"
    setups, _ = read_all_setups({key: "tests.support.plugins:CollectingMetricsFactory"})
    made = Registry(setups, driver_scope=("app", "driver"))
    made.start()
    wait_until(lambda: made.workers[0].depth == 0, "all are announced")
    assert CollectingMetricsFactory.last is not None
    found = dict(CollectingMetricsFactory.last.metrics)
    made.close(5_000)

    assert found["app.driver.reporter.metrics.x.reported"][1] == {"reporter": "x", "reporter_kind": "metrics"}
    assert all(name.startswith("app.driver.reporter.") for name in found)
