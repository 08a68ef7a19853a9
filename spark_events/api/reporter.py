"""What a plugin implements: one factory, and one reporter for each kind it supports."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from spark_events.api.config import Option, ReporterConfig
from spark_events.api.event import Event
from spark_events.api.metric_group import MetricGroup
from spark_events.api.metrics import Metric
from spark_events.api.span import Span


class Reporter(abc.ABC):
    """The life of a reporter, of whatever kind.

    1. The factory creates it from its configuration. Nothing is opened yet.
    2. ``open`` is called once, before anything else. It takes what is needed: files, sockets, connections.
       It may be slow; nothing waits for it but this reporter's own queue. If it raises, the reporter is
       not used, one error is logged, and ``close`` is still called.
    3. The kind's own methods are called, and ``flush`` after each batch of them, and once more when nothing
       came for a second.
    4. ``close`` is called at the end, once, also after an ``open`` that failed. It must be safe to call
       twice, and on a reporter that was never opened. It releases what ``open`` took, ends the threads
       that the reporter started, and returns soon: what has not ended within ``spark.events.close.timeout``
       is left behind.

    All calls come from one thread, the reporter's own, so that nothing here needs a lock, nothing here can
    hold up Spark or another reporter, and a call that blocks for ever costs this reporter alone. Whatever
    is raised is logged once for each kind of error, counted, and goes no further.
    """

    @property
    def destination(self) -> str:
        """A URL or a path where what is reported can be found, once it is open; empty where there is none."""
        return ""

    def open(self) -> None:
        """Take what is needed to report.

        Raises:
            ConfigError: a configured thing cannot be used, such as a path that cannot be written.
        """

    def flush(self) -> None:
        """Make durable, or send, all that was handed over so far.

        Raises:
            RetryLater: the destination is away, or the disk is full; the worker calls ``flush`` again.
        """

    def close(self) -> None:
        """Release what ``open`` took."""


class EventReporter(Reporter):
    """A reporter of events."""

    @abc.abstractmethod
    def notify_of_added_event(self, event: Event) -> None:
        """Take one event."""


class SpanReporter(Reporter):
    """A reporter of spans."""

    @abc.abstractmethod
    def notify_of_added_span(self, span: Span) -> None:
        """Take one finished span."""


class MetricReporter(Reporter):
    """A reporter of metrics, told which exist; it reads their values when it reports them."""

    @abc.abstractmethod
    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Learn of a metric; the group's variables are already those that this reporter shall see."""

    @abc.abstractmethod
    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Learn that a metric is gone; metric and name are those that were added."""


class Scheduled(abc.ABC):
    """A metric reporter that pushes: ``report`` is called each ``interval`` (Flink's ``Scheduled``)."""

    @abc.abstractmethod
    def report(self) -> None:
        """Report all metrics, as they are now; called once more before ``close``.

        Raises:
            RetryLater: the destination is away; the next call comes with the next interval.
        """


class ReporterFactory(abc.ABC):
    """Creates a reporter; made without arguments, from an entry point or from ``module:Class``.

    Attributes:
        options: the reporter's own options. They are what ``spark-events plugins`` lists and what
            ``spark-events check`` holds a configuration against; None takes any key.
    """

    options: ClassVar[Sequence[Option[Any]] | None] = None

    @abc.abstractmethod
    def create(self, config: ReporterConfig) -> Reporter:
        """Create a reporter, without opening anything.

        Raises:
            ConfigError: a value cannot be used.
        """

    def probe(self, config: ReporterConfig) -> str:
        """Try what ``open`` would reach, and say in a few words what was reached.

        Called by ``spark-events check --connect``, never in a running application. Where a factory has no
        probe of its own, a reporter is created, opened and closed.

        Raises:
            Exception: whatever says why it cannot be reached.
        """
        reporter = self.create(config)
        try:
            reporter.open()
        finally:
            reporter.close()
        return f"{reporter.destination or 'it'} was opened and closed"


class EventReporterFactory(ReporterFactory):
    """Creates event reporters; entry-point group ``spark_events.event_reporters``."""

    @abc.abstractmethod
    def create(self, config: ReporterConfig) -> EventReporter:
        """Create an event reporter, without opening anything."""


class SpanReporterFactory(ReporterFactory):
    """Creates span reporters; entry-point group ``spark_events.span_reporters``."""

    @abc.abstractmethod
    def create(self, config: ReporterConfig) -> SpanReporter:
        """Create a span reporter, without opening anything."""


class MetricReporterFactory(ReporterFactory):
    """Creates metric reporters; entry-point group ``spark_events.metric_reporters``."""

    @abc.abstractmethod
    def create(self, config: ReporterConfig) -> MetricReporter:
        """Create a metric reporter, without opening anything."""
