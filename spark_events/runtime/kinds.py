"""The three kinds of reporter as data, so that loading, filtering and dispatch are written once."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api import (
    EventReporter,
    EventReporterFactory,
    MetricReporter,
    MetricReporterFactory,
    Reporter,
    ReporterFactory,
    SpanReporter,
    SpanReporterFactory,
)


# There is one of each; a hash over all its fields would cost each event.
@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of reporter.

    Attributes:
        name: as in the configuration's keys, ``spark.<name>.reporter.…``.
        singular: as in sentences.
        entry_points: the entry-point group of its factories.
        factory: the base class of its factories.
        reporter: the base class of its reporters.
        typed: whether its filters have a type part.
    """

    name: str
    singular: str
    entry_points: str
    factory: type[ReporterFactory]
    reporter: type[Reporter]
    typed: bool = False

    @property
    def prefix(self) -> str:
        """What its reporters' keys begin with."""
        return f"spark.{self.name}.reporter."

    @property
    def names_key(self) -> str:
        """The key of the list of reporters to start."""
        return f"spark.{self.name}.reporters"


EVENTS = Kind("events", "event", "spark_events.event_reporters", EventReporterFactory, EventReporter)
SPANS = Kind("traces", "span", "spark_events.span_reporters", SpanReporterFactory, SpanReporter)
METRICS = Kind(
    "metrics", "metric", "spark_events.metric_reporters", MetricReporterFactory, MetricReporter, typed=True
)
KINDS = (EVENTS, SPANS, METRICS)
