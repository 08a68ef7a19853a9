"""Conformance kits: tests that every reporter should pass, for plugin authors to inherit.

    from spark_events.api.testing import EventReporterConformance

    class TestMine(EventReporterConformance):
        factory = MyReporterFactory
        options = {"path": "/tmp/mine"}

pytest finds the inherited tests by the name ``TestMine``; the kit itself does not need pytest.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from spark_events.api.config import ApplicationInfo, Option, ReporterConfig
from spark_events.api.errors import PartlyRefused, Refused, RetryLater
from spark_events.api.event import Event, Severity
from spark_events.api.metric_group import MetricGroup, ReadOnlyGroup
from spark_events.api.metrics import Counter, Gauge, Histogram, Meter, Metric
from spark_events.api.reporter import (
    EventReporter,
    EventReporterFactory,
    MetricReporter,
    MetricReporterFactory,
    Reporter,
    ReporterFactory,
    Scheduled,
    SendingReporter,
    SpanReporter,
    SpanReporterFactory,
)
from spark_events.api.span import Span, SpanBuilder
from spark_events.api.toolkit.daemon_executor import call_within

_PATIENCE_S = 60.0
_SOON_S = 5.0
_COMMON = frozenset(("interval",))
_MEGABYTE = "x" * 1_000_000
_T0 = 1_700_000_000_000
ODD_VALUES: Mapping[str, Any] = {
    "empty": "",
    "unicode": "Grüße, 世界 🚀",
    "not UTF-8": "\ud800",
    "control": "a\0b\nc",
    "too long": _MEGABYTE,
    "huge number": 2**70,
    "negative": -(2**63),
    "not a number": float("nan"),
    "infinite": float("inf"),
    "yes": True,
    "nothing": None,
    "bytes": b"\xff",
    "list": ("a", 1, None),
    "nested": {"a": {"b": object()}},
    "object": object(),
}
"""Values of attributes; all but texts, numbers, booleans and tuples of them are of types that none has."""
ODD_NAMES = ("", " ", "with space", "ünïcode 🚀", "\ud800", 'quote"\\\n', "x" * 10_000)
"""Names of events, spans, metrics, attributes and variables."""


class SampleScope(ReadOnlyGroup):
    """A group of metrics, as the runtime gives it to a reporter."""

    def __init__(self, variables: Mapping[str, str] | None = None, *scope: str) -> None:
        self._variables = dict(variables or {})
        self._scope = scope or ("spark", "query")

    @property
    def logical_scope(self) -> tuple[str, ...]:
        """The scope that was given."""
        return self._scope

    @property
    def scope_components(self) -> tuple[str, ...]:
        """The same, with the values of the variables."""
        return (*self._scope, *self._variables.values())

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that were given."""
        return self._variables


class RecordingOutbox:
    """Keeps the records of a sending reporter."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def put(self, record: bytes) -> None:
        """Add one record."""
        assert isinstance(record, bytes), f"a record must be bytes, not {type(record).__name__}"
        self.records.append(record)


class ReporterConformance:
    """Tests for reporters of all kinds; inherit from one of the subclasses.

    Attributes:
        factory: of the reporter.
        options: its options, as they stand in a configuration without their prefix.
    """

    factory: ClassVar[type[ReporterFactory]]
    options: ClassVar[Mapping[str, str]] = {}
    kind: ClassVar[type[Reporter]]

    def make_options(self) -> Mapping[str, str]:
        """Return the options of one reporter; override it where each needs its own, a folder say."""
        return self.options

    def make(self) -> Any:
        """Create a reporter, as the runtime does."""
        application = ApplicationInfo("conformance", "app-1")
        config = ReporterConfig("spark.kind.reporter.mine.", dict(self.make_options()), application)
        reporter = self.factory().create(config)
        assert isinstance(reporter, self.kind), f"the factory created {type(reporter)}; expected {self.kind}"
        if isinstance(reporter, SendingReporter):
            reporter.outbox = RecordingOutbox()
        return reporter

    # -- of the factory --------------------------------------------------------------------------------

    def test_its_options_are_declared(self) -> None:
        """Each has a name of its own and a sentence, and each that is given is one of them."""
        declared = self.factory().options
        if declared is None:
            return
        assert all(isinstance(option, Option) for option in declared), (
            "options must contain only Option objects"
        )
        names = [option.name for option in declared]
        assert len(set(names)) == len(names), f"an option is declared twice: {sorted(names)}"
        silent = [option.name for option in declared if not option.doc]
        assert not silent, f"options without a doc for spark-events plugins: {silent}"
        unknown = set(self.make_options()) - set(names) - _COMMON
        assert not unknown, f"options that are given but not declared: {sorted(unknown)}"

    # -- of its life -----------------------------------------------------------------------------------

    def test_closing_what_was_never_opened(self) -> None:
        """``close`` is called also where ``open`` never was, and may come twice."""
        reporter = self.make()
        reporter.close()
        reporter.close()

    def test_a_life(self) -> None:
        """Open, take items, flush, close, and close again, on a thread that did not create it."""
        self.live(self.good_items(3))

    def test_a_life_without_anything_to_report(self) -> None:
        """Some applications end before anything has happened."""
        self.live([])

    def test_it_works_again_after_a_rest(self) -> None:
        """Reporters that share threads rest between batches: what they have given back, they open again."""
        reporter = self.make()

        def life() -> None:
            try:
                reporter.open()
                reporter.rest()
                for _ in range(2):
                    self.give(reporter, self.good_items(2))
                    reporter.rest()
                    reporter.rest()
            finally:
                reporter.close()

        on_its_thread(life)

    def test_it_ends_its_threads(self) -> None:
        """What it started is gone after ``close``: the user's process must be able to end."""
        before = set(threading.enumerate())
        self.live(self.good_items(3))
        deadline = time.monotonic() + _SOON_S
        while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
            next(iter(left)).join(_SOON_S / 100)
        assert not left, f"threads still alive after close: {left}"

    def test_two_at_once(self) -> None:
        """Two reporters of one type, with two names in the configuration, live side by side."""
        first, second = self.make(), self.make()
        for reporter in (first, second):
            reporter.open()
        for reporter in (first, second):
            self.give(reporter, self.good_items(2))
        for reporter in (first, second):
            reporter.close()

    # -- of what it is given ---------------------------------------------------------------------------

    def test_odd_items(self) -> None:
        """Odd names, texts and values cost at most themselves: what comes after them is taken."""
        self.live([*self.odd_items(), *self.good_items(3)])

    def test_many_items(self) -> None:
        """A thousand at once, and then some."""
        self.live(self.good_items(1_000), self.good_items(5))

    # -- for the kinds ---------------------------------------------------------------------------------

    def good_items(self, count: int) -> Sequence[Any]:
        """Return normal items."""
        raise NotImplementedError

    def odd_items(self) -> Sequence[Any]:
        """Return odd items."""
        raise NotImplementedError

    def take(self, reporter: Any, item: Any) -> None:
        """Hand one item over."""
        raise NotImplementedError

    def give(self, reporter: Any, items: Sequence[Any]) -> None:
        """Hand items over, and let the reporter do with them what it does."""
        for item in items:
            self.take(reporter, item)
        patiently(reporter.flush, RetryLater)
        if isinstance(reporter, SendingReporter):
            self.send(reporter)

    def send(self, reporter: SendingReporter) -> None:
        """Let a sending reporter send what it has put into its outbox."""
        outbox = reporter.outbox
        assert isinstance(outbox, RecordingOutbox)
        for record in outbox.records[:100]:
            json.dumps(reporter.readable(record))
        batch = outbox.records[: reporter.max_request_records]
        if not batch:  # the runtime sends no empty request either
            return
        patiently(lambda: reporter.send(batch, reporter.context), RetryLater, Refused, PartlyRefused)
        outbox.records.clear()

    def live(self, *batches: Sequence[Any]) -> None:
        """Let a reporter live on a thread of its own."""
        reporter = self.make()

        def life() -> None:
            try:
                reporter.open()
                for batch in batches:
                    self.give(reporter, batch)
            finally:
                reporter.close()
                reporter.close()

        on_its_thread(life)


class EventReporterConformance(ReporterConformance):
    """Tests for event reporters."""

    factory: ClassVar[type[EventReporterFactory]]
    kind = EventReporter

    def good_items(self, count: int) -> Sequence[Event]:
        """Return events."""
        return [self.event(f"event-{number}", "MyEvent", {"number": number}) for number in range(count)]

    def odd_items(self) -> Sequence[Event]:
        """Return events with odd names, bodies, attributes, variables, times and severities."""
        odd = [self.event("odd", "MyEvent", {key: value}) for key, value in ODD_VALUES.items()]
        odd += [self.event(name, name, {name: name}, {name: name}) for name in ODD_NAMES]
        bodies = (_MEGABYTE, "\ud800", "\0")
        odd += [Event("odd", "MyEvent", "scope", _T0, Severity.FATAL, body) for body in bodies]
        return [*odd, Event("odd", "MyEvent", "", 0), Event("odd", "MyEvent", "\ud800", -1)]

    def take(self, reporter: Any, item: Event) -> None:
        """Hand one event over."""
        reporter.notify_of_added_event(item)

    def event(
        self,
        event_id: str,
        name: str,
        attributes: Mapping[str, Any],
        variables: Mapping[str, str] | None = None,
    ) -> Event:
        """Return an event."""
        whose = {"app_name": "conformance"} if variables is None else variables
        return Event(event_id, name, "conformance", _T0, attributes=attributes, variables=whose)


class SpanReporterConformance(ReporterConformance):
    """Tests for span reporters."""

    factory: ClassVar[type[SpanReporterFactory]]
    kind = SpanReporter

    def good_items(self, count: int) -> Sequence[Span]:
        """Return spans with children, events and links."""
        spans: list[Span] = []
        for number in range(count):
            child = Span.builder("conformance", "Child").set_times_ms(_T0 + 1, _T0 + 2)
            root = Span.builder("conformance", "Root").set_times_ms(_T0, _T0 + 10).add_child(child)
            root.set_attribute("number", number).add_link("1" * 32, "2" * 16).set_error("boom")
            spans += root.add_event("exception", _T0 + 5, {"exception.message": "boom"}).build_tree({})
        return spans

    def odd_items(self) -> Sequence[Span]:
        """Return spans with odd names, errors, attributes, variables and events."""
        builders = [self.span("Odd").set_attribute(key, value) for key, value in ODD_VALUES.items()]
        builders += [self.span(n).set_error(n).set_attribute(n, n).add_event(n, _T0) for n in ODD_NAMES]
        odd = [builder.build({name: name for name in ODD_NAMES}) for builder in builders]
        return [*odd, self.span("Odd").set_times_ms(0, 0).set_error(_MEGABYTE).build({})]

    def take(self, reporter: Any, item: Span) -> None:
        """Hand one span over."""
        reporter.notify_of_added_span(item)

    def span(self, name: str) -> SpanBuilder:
        """Begin a span."""
        return Span.builder("conformance", name).set_times_ms(_T0, _T0 + 1)


class MetricReporterConformance(ReporterConformance):
    """Tests for metric reporters."""

    factory: ClassVar[type[MetricReporterFactory]]
    kind = MetricReporter

    def good_items(self, count: int) -> Sequence[tuple[Metric, str, MetricGroup]]:
        """Return metrics of all types."""
        items: list[tuple[Metric, str, MetricGroup]] = []
        for number in range(count):
            scope = SampleScope({"query_name": f"query-{number}"})
            histogram = Histogram([1, 10], "ms")
            histogram.update(5)
            items += [
                (Counter("{row}", "Rows."), "rows", scope),
                (Gauge(lambda: 1.5, "ms", "An age."), "age", scope),
                (histogram, "took", scope),
                (Meter(unit="By"), "speed", scope),
            ]
        return items

    def odd_items(self) -> Sequence[tuple[Metric, str, MetricGroup]]:
        """Return metrics with odd names, units, variables and values, and two of one name."""
        values = [*ODD_VALUES.values()]
        items: list[tuple[Metric, str, MetricGroup]] = [
            (Gauge(lambda value=value: value), f"odd{number}", SampleScope())  # type: ignore[misc]
            for number, value in enumerate(values)
        ]
        items += [(Gauge(lambda: 1, name, name), name, SampleScope({name: name})) for name in ODD_NAMES]
        items += [(Gauge(_raise), "raising", SampleScope()), (Histogram([]), "no bounds", SampleScope())]
        return [
            *items,
            (Counter(), "twice", SampleScope()),
            (Counter(), "twice", SampleScope()),
            (Gauge(int), "twice", SampleScope()),
        ]

    def take(self, reporter: Any, item: tuple[Metric, str, MetricGroup]) -> None:
        """Tell it of a metric."""
        reporter.notify_of_added_metric(*item)

    def give(self, reporter: Any, items: Sequence[Any]) -> None:
        """Tell it of metrics, let it report, take half of them away, and let it report again."""
        super().give(reporter, items)
        self.report(reporter)
        for item in items[::2]:
            reporter.notify_of_removed_metric(*item)
        self.report(reporter)

    def report(self, reporter: Any) -> None:
        """Let a pushing reporter push."""
        if isinstance(reporter, Scheduled):
            patiently(reporter.report, RetryLater, Refused, PartlyRefused)

    def test_what_is_removed_and_never_was(self) -> None:
        """A second metric of one name was never taken, and may be removed like the first."""
        reporter = self.make()
        reporter.open()
        reporter.notify_of_removed_metric(Counter(), "never", SampleScope())
        reporter.close()


def patiently(call: Callable[[], object], *allowed: type[Exception]) -> None:
    """Call what may say that the destination is away; any other exception is a fault."""
    with contextlib.suppress(*allowed):
        call()


def on_its_thread(call: Callable[[], None]) -> None:
    """Run a function on a thread of its own, and raise what it raised.

    Raises:
        AssertionError: it has not come to an end within a minute.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # a TimeoutError of the reporter's own is not a hang
            raised.append(error)

    try:
        call_within(_PATIENCE_S, run)
    except TimeoutError:
        message = f"the reporter hangs: it has not finished within {_PATIENCE_S:g} s"
        raise AssertionError(message) from None
    if raised:
        raise raised[0]


def _raise() -> float:
    raise RuntimeError("no value today")
