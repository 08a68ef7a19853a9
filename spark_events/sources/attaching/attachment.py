"""An attachment to a running Spark application: how it begins, what the program tells by it, and its end."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import Counter as Counts
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_events.api import ApplicationInfo, ConfigError, Counter, Histogram, Severity, SpanBuilder
from spark_events.api.errors import NothingToAttachToError
from spark_events.listeners.settings import ListenerSettings, turned_off
from spark_events.process.held_signals import held_signals
from spark_events.runtime.log_once import logger
from spark_events.runtime.registry import Registry
from spark_events.runtime.workers.worker import Worker
from spark_events.sources.assembly import StartUp, assemble, read_checked, watch_wrong_values
from spark_events.sources.attaching import driver_log
from spark_events.sources.attaching.attach_targets import AttachTarget, Source, target_of
from spark_events.sources.attaching.own_signals import DriverGauge, OwnSignals
from spark_events.sources.attaching.unknown_keys import unknown_keys_of_ours
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT, failure_of, raised_here
from spark_events.spark.conf import as_texts
from spark_events.task.values import NOT_GIVEN, taken

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_OPEN_WAIT_MS = 10_000
_ENDS_WAIT_S, _ENDS_LOOK_S = 5.0, 0.05
_NO_REPORTER = (
    "no reporter is configured: set spark.events.reporter.<name>.factory.class (to file_log, for example) in "
    "spark-defaults.conf or with attach(spark, conf=…); spark-events init writes that file, "
    "and says where Spark looks for it"
)
_NESTED = (
    "attach was called in the middle of attach, in the same thread, as a signal handler may: this call "
    "attaches nothing, and the other one goes on"
)
_FORKED = (
    "this process was forked from a driver that is attached to this application: the driver reports on it, "
    "and this process reports nothing"
)
_lock = threading.RLock()  # see _NESTED
_attaching = False
_attachments: dict[str, Attachment] = {}
_times_attached: Counts[str] = Counts()


def _place_of(worker: Worker) -> str:
    """Return where a worker's reporter reports to; its name if it does not say."""
    return f"to {worker.destination}" if worker.destination else f"by {worker.setup.name}"


class Attachment:
    """The framework attached to one Spark application.

    As a context manager, it closes itself at the end of the block; if that raises, it has failed.

    Attributes:
        registry: the reporters and the scope tree.

    Example::

        reporting = spark_events.attach(spark)
        reporting.counter("files_read", source="ftp").inc()
        reporting.event("RatesStale", "using yesterday's rates", "warn", currency="EUR")
        with reporting.span("load rates"):
            rates = load_rates()
    """

    def __init__(
        self,
        registry: Registry,
        source: Source | None,
        name: str = "",
        conf: Mapping[str, str] | None = None,
        problems: Sequence[str] = (),
        off: str = "",
        own: OwnSignals | None = None,
    ) -> None:
        self.registry = registry
        self._source = source
        self._name = name
        self._conf = dict(conf or {})
        self._problems = list(problems)
        self._off = off
        self._own = own or OwnSignals(registry, ApplicationInfo(), ListenerSettings())
        self._process = os.getpid()
        # Whoever attaches in an ``except`` handles what was raised before. By its id, not to keep its frames.
        self._handled = id(raised_here())

    def __repr__(self) -> str:
        workers = self.registry.workers
        reporters = ", ".join(worker.where for worker in workers) if workers else "no reporter"
        state = "active" if self.active else "not active"
        if self._off:
            state = f"turned off by {self._off}"
        shown = f"<Attachment to {self._name or 'no application'}: {reporters}; {state}>"
        return self.registry.redact(shown)

    @property
    def summary(self) -> str:
        """One sentence about where the application is reported, for whoever has started it.

        What kept a reporter from opening has a message of its own.
        """
        opened = [worker for worker in self.registry.workers if worker.error is None]
        if not opened:
            return "nothing is reported: no reporter could be opened"
        places = ", ".join(f"{worker.setup.kind.name} {_place_of(worker)}" for worker in opened)
        return self.registry.redact(f"reporting on {self._name}: {places}")

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        self._close(raised=failure_of(raised))

    @property
    def ending(self) -> bool:
        """Whether Spark has stopped, and what was reported is still being delivered."""
        return self._source is not None and self._source.running and self._source.spark_stopped

    @property
    def active(self) -> bool:
        """Whether the application is still being followed; never without a reporter."""
        return self._source is not None and self._source.running

    def counter(self, name: str, /, **labels: Any) -> Counter:
        """Return a counter of your own, ``spark_driver_<name>_total``: the same for the same labels.

        Example::

            reporting.counter("files_read", source="ftp").inc()
        """
        return self._own.counter(name, labels)

    def gauge(
        self, name: str, read: Callable[[], float | int | None] | None = None, /, **labels: Any
    ) -> DriverGauge:
        """Return a gauge of your own, ``spark_driver_<name>``.

        Args:
            name: of the metric.
            read: returns the value, on the reporter's thread; without it, the gauge's method ``set`` does.
            labels: of the series.

        Example::

            reporting.gauge("queue_depth", queue.qsize)
        """
        return self._own.gauge(name, read, labels)

    def histogram(self, name: str, /, **labels: Any) -> Histogram:
        """Return a histogram of your own, ``spark_driver_<name>``.

        Example::

            reporting.histogram("download_seconds").update(1.7)
        """
        return self._own.histogram(name, labels)

    def event(
        self, name: str, body: str = NOT_GIVEN, severity: Severity | str = NOT_GIVEN, /, **attributes: Any
    ) -> None:
        """Report an event of your own; it also has the application's name and id.

        Args:
            name: such as ``RatesStale``.
            body: a sentence for people; it may also be given by name, and so may the severity.
            severity: DEBUG, INFO, WARN, ERROR or FATAL, in any case; INFO by default.
            attributes: numbers, booleans and texts; all else becomes text.

        Example::

            reporting.event("RatesStale", "using yesterday's rates", "warn", currency="EUR")
        """
        of_body = taken(body, "body", attributes)
        of_severity = taken(severity, "severity", attributes, Severity.INFO)
        self._own.event(name, of_body, of_severity, attributes)

    def span(self, name: str, /, **attributes: Any) -> AbstractContextManager[SpanBuilder]:
        """Measure a block as a span of your own, below the application's or the span around it.

        Example::

            with reporting.span("load rates", source="ftp") as span:
                span.set_attribute("files", len(load_rates()))
        """
        return self._own.span(name, attributes)

    def wait_closed(self) -> None:
        """Wait, after ``spark.stop()``, until everything is delivered or the configured time is over."""
        if self._source is not None:
            self._source.join()

    def close(self) -> None:
        """Deliver what is pending and end; the application counts as ended.

        It counts as failed if the main thread raises or handles an exception meanwhile, as in ``finally``. A
        later ``attach`` to the same application starts afresh, with whatever configuration it is given.
        """
        raised = raised_here()
        self._close(raised=raised if id(raised) != self._handled else None)

    def _close(self, *, at_exit: bool = False, raised: BaseException | None = None) -> None:
        if self._source is not None:
            self._source.stop(at_exit=at_exit, raised=raised)

    def _check_asked_for(self, conf: Mapping[str, str], strict: bool) -> None:
        """Warn, or raise, if another ``attach`` to the same application asks for something else.

        Raises:
            ConfigError: only with ``strict``; the configurations differ.
        """
        different = sorted(key for key, value in conf.items() if self._conf.get(key) != value)
        problems = []
        if different:
            problems.append(
                f"{', '.join(different)}: this application is already attached with another configuration; "
                "call attach(spark).close() and attach again"
            )
        if strict:
            problems += self._problems or self.registry.wait_opened(_OPEN_WAIT_MS)
            if problems:
                raise ConfigError.of_all(problems)
        for problem in problems:
            logger.error("%s", problem)


@held_signals()
def attach_to(spark: SparkSession | SparkContext, strict: bool, conf: Mapping[str, str] | None) -> Attachment:
    """Attach; see ``attach`` for the arguments, what is returned and what is raised."""
    driver_log.install()
    given, problems = as_texts(conf)
    if strict and problems:
        raise ConfigError.of_all(problems)
    for problem in problems:
        logger.error("%s", problem)
    global _attaching
    with _lock:
        if _attaching:
            return _nothing_attached(_NESTED, strict)
        _attaching = True
        try:
            return _attach(spark, given, strict)
        except NothingToAttachToError:
            raise
        except Exception as error:
            if strict:
                raise
            if isinstance(error, ConfigError):
                return _nothing_attached(str(error), strict)
            logger.exception("spark-events could not attach; the application continues without it")
            return Attachment(Registry(()), None)
        finally:
            _attaching = False


def _nothing_attached(why: str, strict: bool) -> Attachment:
    if strict:
        raise ConfigError(why)
    logger.error("%s", why)
    return Attachment(Registry(()), None)


def _attach(spark: SparkSession | SparkContext, given: Mapping[str, str], strict: bool) -> Attachment:
    target = target_of(spark)
    attachment = _attachments.get(target.key)
    if attachment is not None and attachment.active:
        attachment._check_asked_for(given, strict)
        return attachment
    if attachment is not None and attachment._process != os.getpid():
        return _nothing_attached(_FORKED, strict)
    conf = target.conf()
    # A session of Spark Connect may be of a server that is this process's own driver, attached as such.
    driver = _attachments.get(target.application(conf).id)
    if driver is not None and driver.active:
        driver._check_asked_for(given, strict)
        return driver
    attachment = _start(target, {**conf, **given}, strict)
    if not attachment.registry.workers:
        return attachment
    for ended in [key for key, other in _attachments.items() if not other.active]:
        del _attachments[ended]
    _attachments[target.key] = attachment
    return attachment


def _start(target: AttachTarget, conf: Mapping[str, str], strict: bool) -> Attachment:
    if off := turned_off(conf):
        return Attachment(Registry(()), None, target.key, conf, off=off)
    application = replace(target.application(conf), attachment=_times_attached[target.key] + 1)
    configuration = read_checked(conf, application, strict)
    configuration.log_problems()
    unknown = map(configuration.redactor.text, unknown_keys_of_ours(conf))
    for warning in (*configuration.warnings, *unknown):
        logger.warning("%s", warning)
    if not configuration.setups:
        if strict:
            raise ConfigError(_NO_REPORTER)
        logger.warning(_NO_REPORTER)
        return Attachment(Registry(()), None, target.key, conf, configuration.problems)
    formers = [other for other in _attachments.values() if other.ending]
    start_up = StartUp(
        open_within_ms=_OPEN_WAIT_MS if strict else None,
        close_within_ms=configuration.settings.close_timeout_ms,
        with_plans=target.with_plans,
        spark_version=target.version(),
        before_metrics=lambda: _await_ends(formers),
    )
    assembly = assemble(conf, application, configuration, start_up)
    try:
        watch_wrong_values(assembly.registry, application.name)
        PROCESS_EXIT.raising_at_stop = None
        source = target.make_source(application, assembly)
        source.start()
        PROCESS_EXIT.install()
    except BaseException:  # including Ctrl-C, and what the program's own signal handlers raise
        assembly.close()
        raise
    _times_attached[target.key] += 1
    own = OwnSignals(assembly.registry, application, configuration.settings)
    return Attachment(assembly.registry, source, target.key, conf, configuration.problems, own=own)


def _await_ends(formers: Sequence[Attachment]) -> None:
    """Wait, though not for long, until applications that this process had before have left their ports."""
    until_s = time.monotonic() + _ENDS_WAIT_S
    while any(former.ending for former in formers) and time.monotonic() < until_s:
        time.sleep(_ENDS_LOOK_S)


def _at_exit() -> None:
    process = os.getpid()
    for attachment in list(_attachments.values()):
        if attachment._process == process:  # a forked child inherits those of its parent
            attachment._close(at_exit=True)


atexit.register(_at_exit)
