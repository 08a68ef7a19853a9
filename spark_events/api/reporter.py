"""What a plugin implements: a factory and a reporter for each kind it supports."""

from __future__ import annotations

import abc
import base64
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from spark_events.api import option_types as types
from spark_events.api.config import Option, ReporterConfig
from spark_events.api.event import Event
from spark_events.api.metric_group import MetricGroup
from spark_events.api.metrics import Metric
from spark_events.api.span import Span


class Reporter(abc.ABC):
    """Base class of all reporters: their life cycle.

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
    hold up Spark or another reporter, and a call that blocks forever affects only this reporter. Only if
    its factory says that it ``shares_threads``, each call may come from another thread, one at a time still.
    Whatever is raised is logged once for each kind of error, counted, and not propagated.
    """

    @property
    def destination(self) -> str:
        """URL or path of the destination once the reporter is open; may be empty."""
        return ""

    def open(self) -> None:
        """Called once before anything is reported: open files and connections here.

        Raises:
            ConfigError: a configured thing cannot be used, such as a path that cannot be written.
        """

    def flush(self) -> None:
        """Called after each batch: store or send everything that was handed over so far.

        Raises:
            RetryLater: the destination is away, or the disk is full; the worker calls ``flush`` again.
        """

    def rest(self) -> None:
        """Called where reporters share threads: after each batch, or, if it sends, once nothing is left.

        It gives back files and connections, which the next call opens again.
        """

    def close(self) -> None:
        """Called at the end: release what ``open`` acquired."""


class EventReporter(Reporter):
    """A reporter of events."""

    @abc.abstractmethod
    def notify_of_added_event(self, event: Event) -> None:
        """Called for each event."""


class SpanReporter(Reporter):
    """A reporter of spans."""

    @abc.abstractmethod
    def notify_of_added_span(self, span: Span) -> None:
        """Called for each finished span."""


class MetricReporter(Reporter):
    """A reporter of metrics. It learns which exist, and reads their values when it reports."""

    @abc.abstractmethod
    def notify_of_added_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Called when a metric is added; the group has the variables that this reporter should see."""

    @abc.abstractmethod
    def notify_of_removed_metric(self, metric: Metric, name: str, group: MetricGroup) -> None:
        """Called when a metric is removed, with the metric and name that were added."""


class Scheduled(abc.ABC):
    """A metric reporter that pushes: ``report`` is called each ``interval`` (Flink's ``Scheduled``)."""

    @abc.abstractmethod
    def report(self) -> None:
        """Called each interval, and once more before ``close``: report all metrics as they are now.

        Raises:
            RetryLater: the destination is away; the next call comes with the next interval.
        """


class ReporterFactory(abc.ABC):
    """Creates a reporter. An entry point or ``module:Class`` names the factory, which takes no arguments.

    Attributes:
        options: the reporter's own options. They are what ``spark-events plugins`` lists and what
            ``spark-events check`` checks a configuration against; None allows any key.
        shares_threads: whether its reporters may be called from several threads, one call at a time.
            ``spark-events follow`` then needs a few threads for those of all applications, and not one each.
    """

    options: ClassVar[Sequence[Option[Any]] | None] = None
    shares_threads: ClassVar[bool] = False

    @abc.abstractmethod
    def create(self, config: ReporterConfig) -> Reporter:
        """Create a reporter, without opening anything.

        Raises:
            ConfigError: a value cannot be used.
        """

    def probe(self, config: ReporterConfig) -> str:
        """Try to reach the destination, and return a few words about it.

        Called by ``spark-events check --connect``, never in a running application. The default
        implementation creates, opens and closes a reporter.

        Raises:
            Exception: whatever says why it cannot be reached.
        """
        reporter = self.create(config)
        try:
            reporter.open()
        finally:
            reporter.close()
        return f"opened and closed {reporter.destination or 'the reporter'}"


class EventReporterFactory(ReporterFactory):
    """Creates event reporters; entry-point group ``spark_events.event_reporters``.

    Attributes:
        keeps_history: whether what it reports is kept and read later, as by ``spark-events report``. Only
            such reporters get events that only say that an application lives, such as HeartbeatEvent.
    """

    keeps_history: ClassVar[bool] = False

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


JOURNAL_DIR = Option.optional(
    "journal.dir",
    types.LOCAL_PATH,
    "local folder for records that are not delivered yet; without it they wait in memory",
)
JOURNAL_MAX_BYTES = Option(
    "journal.max-bytes", types.at_least(65_536, types.SIZE), 256 << 20, "maximum size of the journal"
)
JOURNAL_MAX_AGE = Option.optional(
    "journal.max-age",
    types.at_least(1_000, types.DURATION),
    "older records are dropped and counted; no limit by default",
)
JOURNAL_FSYNC = Option(
    "journal.fsync",
    types.FSYNC,
    "interval",
    "when to sync to disk, in case the machine crashes: never, interval (every second) or always",
)
JOURNAL_OPTIONS: tuple[Option[Any], ...] = (JOURNAL_DIR, JOURNAL_MAX_BYTES, JOURNAL_MAX_AGE, JOURNAL_FSYNC)
"""What the factory of a ``SendingReporter`` adds to its ``options``; the runtime reads them."""


class Outbox(Protocol):
    """Accepts records to send, in order."""

    def put(self, record: bytes) -> None:
        """Add one record."""


class SendingReporter(Reporter):
    """A reporter that turns each item into bytes once, and sends batches of them until they are acknowledged.

    Its ``notify_of_added_…`` puts one record into ``outbox``. The runtime stores it, in the journal if
    ``journal.dir`` is set, and calls ``send`` with stored records, oldest first, until they are delivered,
    including those that an earlier run of the same application left behind.

    ``send`` and ``rest`` are called from one thread and the other methods from another, each thread one call
    at a time. ``close`` comes after the last ``send`` has returned; if that never does, it is not called.

    Attributes:
        outbox: set by the runtime before ``open``.
        max_request_records: the most records that ``send`` is given.
        max_request_bytes: the most bytes that they have in total; a single record may have more.
    """

    outbox: Outbox
    max_request_records: ClassVar[int] = 2_048
    max_request_bytes: ClassVar[int] = (4 << 20) - (64 << 10)

    @property
    def context(self) -> bytes:
        """Common data of all records of this run, such as OTLP's resource; stored beside them."""
        return b""

    @abc.abstractmethod
    def send(self, records: Sequence[bytes], context: bytes) -> None:
        """Send records in order. Returning means that the destination has them.

        Args:
            records: as they were put into the outbox.
            context: of the run that put them there.

        Raises:
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
            PartlyRefused: it took the request, but for some records.
        """

    def readable(self, record: bytes) -> Any:
        """Return a record in a form that JSON can hold, for the file of refused records."""
        return {"base64": base64.b64encode(record).decode()}
