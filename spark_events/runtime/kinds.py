"""The kinds of plugin as data, so that loading, filtering and dispatch are written once."""

from __future__ import annotations

from dataclasses import dataclass

from spark_events.api import (
    EventReporter,
    EventReporterFactory,
    JobStatusChangedListener,
    JobStatusChangedListenerFactory,
    MetricReporter,
    MetricReporterFactory,
    Reporter,
    ReporterFactory,
    SpanReporter,
    SpanReporterFactory,
)


# Each kind exists once, so identity is enough: a hash over all fields would slow down every event.
@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of reporter, or the listeners of jobs.

    Attributes:
        name: its name in ``spark-events plugins`` and in metrics.
        title: its name in sentences.
        prefix: the prefix of its plugins' keys.
        names_key: the key of the list of plugins to start.
        entry_points: the entry-point group of its factories.
        factory: the base class of its factories.
        reporter: the base class of what these factories make.
        typed: whether its filters have a type part.
        scoped: whether it has filters, variables and names in the scope tree at all.
        flinks_names_key: Flink's own name for that key; empty if it is the same as ``names_key``.
    """

    name: str
    title: str
    prefix: str
    names_key: str
    entry_points: str
    factory: type[ReporterFactory]
    reporter: type[Reporter]
    typed: bool = False
    scoped: bool = True
    flinks_names_key: str = ""


def _reporters(
    name: str, singular: str, factory: type[ReporterFactory], reporter: type[Reporter], typed: bool = False
) -> Kind:
    return Kind(
        name,
        f"{singular} reporter",
        f"spark.{name}.reporter.",
        f"spark.{name}.reporters",
        f"spark_events.{singular}_reporters",
        factory,
        reporter,
        typed,
    )


EVENTS = _reporters("events", "event", EventReporterFactory, EventReporter)
SPANS = _reporters("traces", "span", SpanReporterFactory, SpanReporter)
METRICS = _reporters("metrics", "metric", MetricReporterFactory, MetricReporter, typed=True)
JOB_LISTENERS = Kind(
    "job-status-changed",
    "job status listener",
    "spark.job-status-changed.listener.",
    "spark.job-status-changed.listeners",
    "spark_events.job_listeners",
    JobStatusChangedListenerFactory,
    JobStatusChangedListener,
    scoped=False,
    flinks_names_key="spark.execution.job-status-changed-listeners",
)
KINDS = (EVENTS, SPANS, METRICS, JOB_LISTENERS)
