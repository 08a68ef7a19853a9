"""What makes events, spans and metrics of the records of one application, whatever source they come from."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from spark_events.api import ApplicationInfo, FailureEnricher
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import (
    ApplicationListener,
    application_of,
    register_interactive,
)
from spark_events.listeners.assembly import Wanted, listeners_of_application, listeners_of_queries
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Emitter, Traces
from spark_events.listeners.failures.enrichers import Enrichers
from spark_events.listeners.failures.failure_events import FailureEvents
from spark_events.listeners.listener import Handle, Handler, Listener, Record
from spark_events.listeners.record_types import ApplicationStartRecord
from spark_events.listeners.run import Run
from spark_events.listeners.scopes import Scopes
from spark_events.listeners.settings import AND_STAGES, ListenerSettings
from spark_events.listeners.spark_records import ImpossibleTime, record_time_ms
from spark_events.listeners.work.all_subtasks import AllSubtasks
from spark_events.listeners.work.work import ApplicationWork
from spark_events.runtime.log_once import logger
from spark_events.runtime.plugins import METRICS, SPANS
from spark_events.runtime.registry import Registry
from spark_events.task.driver_link import DriverLink

Extension = Callable[[ListenerContext, Registry, str], Sequence[Listener]]
"""Makes listeners from what the others share, the registry, and Spark's version."""


class SparkListeners:
    """The listeners of one application, from its first record on.

    Not safe to use from several threads; a source calls it from only one.

    Args:
        registry: where events, spans and metrics go.
        settings: the listeners' settings.
        enrichers: label failures.
        spark_version: of the application; an event log contains its own.
        extension: makes more listeners; None makes none.
        with_all_sums: whether each stage counts, however short it is, for a listener of that.

    Attributes:
        stumbled: how many records could not be handled; each kind of error is logged once.
    """

    def __init__(
        self,
        registry: Registry,
        settings: ListenerSettings,
        enrichers: Sequence[FailureEnricher],
        spark_version: str = "",
        extension: Extension | None = None,
        with_all_sums: bool = False,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._enrichers = Enrichers(enrichers, registry.log, not registry.shares_threads)
        self._spark_version = spark_version
        self._extension = extension
        self._with_all_sums = with_all_sums
        self._dispatcher = Dispatcher((), self._stumble)
        self._application: ApplicationListener | None = None
        self._clock_ms = 0
        self.stumbled = 0

    @property
    def wants_sums(self) -> bool:
        """Whether the sums of the tasks' metrics are needed, which spans and metrics contain."""
        reporters = self._registry.has_reporters(SPANS) or self._registry.has_reporters(METRICS)
        return self._with_all_sums or reporters

    @property
    def statistics_from_ms(self) -> int:
        """How long a stage lasts at least whose tasks' statistics are needed, in ms.

        A shorter one cannot have an issue; but later runs are compared with all that a run has done.
        """
        thresholds = self._settings.thresholds
        return 0 if thresholds.compares_runs else thresholds.min_time_ms

    def task_link(self, application_start: ApplicationStartRecord) -> DriverLink:
        """Return what workers have to know to compute the ids of spans, from the record of the start."""
        application = application_of(application_start)
        settings = self._settings
        link = DriverLink(
            accumulator=-1,
            application=application.identity,
            sampling_ratio=settings.sampling_ratio,
            stages_of_queries=settings.detailed(AND_STAGES),
            task_spans=settings.task_spans,
            local_variables=settings.failure_locals,
        )
        if not self._registry.has_reporters(SPANS):
            return link
        traces = Traces(Emitter(self._registry.root, application), settings)
        return replace(
            link,
            trace_id=traces.application.trace_id,
            span_id=traces.application.span_id,
            sampled=traces.is_sampled(traces.application.trace_id),
        )

    @property
    def clock_ms(self) -> int:
        """The latest time in any record so far, in ms since the epoch."""
        return self._clock_ms

    @property
    def ended(self) -> bool:
        """Whether the application has ended."""
        tracker = self._application.tracker if self._application else None
        return bool(tracker and tracker.status and tracker.status.terminal)

    def on_record(self, record: Record, received_ms: int | None = None) -> None:
        """Handle one record; records must come in the order in which Spark posted them.

        Args:
            record: as ``JsonProtocol`` writes it.
            received_ms: when it arrived, in ms since the epoch, for a record without a time of its own; if
                it is None, such a record gets the time of the previous one.
        """
        name = str(record.get("Event"))
        if name == spark_records.LOG_START:
            self._spark_version = str(record.get("Spark Version") or self._spark_version)
        if name == spark_records.APPLICATION_START:
            if self._application is not None:
                return
            self._begin(cast(ApplicationStartRecord, record))
        if self._dispatcher.hears(name):
            stumbled = self.stumbled
            time_ms = self._time_of(name, record) or received_ms or self._clock_ms
            self._clock_ms = max(self._clock_ms, time_ms)
            self._dispatcher.hand(name, record, time_ms)
            self.stumbled = min(self.stumbled, stumbled + 1)  # a record counts once

    def close(self) -> None:
        """Release what the listeners hold besides memory; no record may come afterwards."""
        self._enrichers.close()

    def tick(self, now_ms: int) -> None:
        """Called as time passes: some events are due because something did not happen."""
        if self.ended:
            return
        self._dispatcher.tick(now_ms)

    def _time_of(self, name: str, record: Record) -> int | None:
        try:
            return record_time_ms(record)
        except Exception as error:
            self._stumble(name, error)
            return None

    def _stumble(self, name: str, error: Exception) -> None:
        self.stumbled += 1
        if isinstance(error, ImpossibleTime):  # all records of a log may have such times
            self._registry.log.error(("listener", "time"), f"skipped a {name} record: {error}")
            return
        kind_of_error = ("listener", name, type(error).__name__)
        # Most often, a record is damaged, of which a traceback says little; who mends a listener turns it on.
        self._registry.log.error(kind_of_error, f"skipped a {name} record: {error!r} at {_place(error)}")
        logger.debug("could not process a %s record", name, exc_info=error)

    def _begin(self, record: ApplicationStartRecord) -> None:
        context = self._context(application_of(record))
        register_interactive(context, record)
        if record.get(spark_records.QUERIES_ONLY):
            listeners = listeners_of_queries(context)
        else:
            kinds = Wanted(self._registry.has_reporters(SPANS), self._registry.has_reporters(METRICS))
            self._application, listeners = listeners_of_application(context, self._spark_version, kinds)
        if self._extension is not None:
            listeners = [*self._extension(context, self._registry, self._spark_version), *listeners]
        self._dispatcher = Dispatcher(listeners, self._stumble)

    def _context(self, application: ApplicationInfo) -> ListenerContext:
        scopes = Scopes(self._registry.root, application, self._settings.scopes)
        emitter = Emitter(scopes.events(), application)
        return ListenerContext(
            emitter=emitter,
            failures=FailureEvents(emitter, self._enrichers),
            scopes=scopes,
            settings=self._settings,
            traces=Traces(emitter, self._settings),
            work=ApplicationWork(),
            all_subtasks=AllSubtasks(),
            run=Run(),
            redact_name=self._registry.redact_name,
        )


def _place(error: Exception) -> str:
    """Return where an exception comes from, as ``run.py:185``."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"


OnError = Callable[[str, Exception], None]


class Dispatcher:
    """Hands records to the listeners that hear them.

    Args:
        listeners: those of one application.
        on_error: called with the record's name, or ``tick``, for the first exception of a listener; the other
            listeners still hear the record, and may fail because of the first.
    """

    def __init__(self, listeners: Iterable[Listener], on_error: OnError) -> None:
        self._on_error = on_error
        listeners = tuple(listeners)
        self._tickers = [listener.tick for listener in listeners]
        by_name: dict[str, list[Handler]] = {}
        for listener in listeners:
            for name, handlers in listener.handlers.items():
                by_name.setdefault(name, []).extend(_phased(handlers))
        self._handlers = {
            name: [handler.handle for handler in sorted(handlers, key=lambda handler: handler.phase)]
            for name, handlers in by_name.items()
        }

    def hears(self, name: str) -> bool:
        """Return whether any listener hears records of this name."""
        return name in self._handlers

    def hand(self, name: str, record: Record, time_ms: int) -> None:
        """Hand a record to all that hear it."""
        failed = False
        for handle in self._handlers.get(name, ()):
            try:
                handle(record, time_ms)
            except Exception as error:
                if not failed:
                    self._on_error(name, error)
                failed = True

    def tick(self, now_ms: int) -> None:
        """Let time pass for all."""
        for tick in self._tickers:
            try:
                tick(now_ms)
            except Exception as error:
                self._on_error("tick", error)


def _phased(handlers: Handle | Handler | tuple[Handler, ...]) -> tuple[Handler, ...]:
    if isinstance(handlers, tuple):
        return handlers
    return (handlers if isinstance(handlers, Handler) else Handler(handlers),)
