"""Replays event logs: each application through listeners and reporters of its own, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from spark_events.api import ApplicationInfo, ConfigError, Event
from spark_events.jobs.handlers import job_handlers
from spark_events.listeners.configuration import Configuration, read_configuration
from spark_events.listeners.scopes import variables_of
from spark_events.listeners.translator import SparkListeners
from spark_events.runtime.kinds import METRICS
from spark_events.runtime.redaction import redact_logs
from spark_events.runtime.registry import Registry
from spark_events.sources.event_log.application import LoggedApplication, Outcomes, iso_time, without_state
from spark_events.sources.event_log.files import EventLog, LogFiles
from spark_events.sources.event_log.summary import Delivered, ReplayedLog, Summary

Tap = Callable[[Event], None]
Start = Callable[[ApplicationInfo, Tap], SparkListeners]
_WAIT_S = 0.01
_OPEN_WAIT_MS = 30_000


class StalledError(Exception):
    """A reporter has taken nothing for too long."""


class LogReplay:
    """Reads one log to its end.

    Args:
        files: where it is.
        log: the log.
        start: makes the listeners of an application, given what has to see its events.
        seen: also sees them.
    """

    def __init__(self, files: LogFiles, log: EventLog, start: Start, seen: Tap = lambda event: None) -> None:
        self._log = log
        self._seen = seen
        self._outcomes = Outcomes()
        self._trouble = ""
        self._logged = LoggedApplication(files, log, lambda application: start(application, self._take))

    def run(self) -> Iterator[int]:
        """Read it.

        Yields:
            How many bytes were read, block by block.
        """
        try:
            yield from self._logged.tail.read(self._log, final=True)
        except OSError as error:
            self._trouble = f"cannot be read: {error}"
        finally:
            self._logged.close()

    @property
    def result(self) -> ReplayedLog:
        """What came of it so far."""
        logged = self._logged
        troubles = [*logged.tail.notes, *([self._trouble] if self._trouble else [])]
        return ReplayedLog(
            self._log.path,
            logged.application,
            logged.spark_version,
            logged.ended,
            logged.tail.reader.counts,
            self._outcomes,
            [*troubles, *_notes(logged, self._log)],
            bool(troubles),
        )

    def _take(self, event: Event) -> None:
        self._outcomes.take(event)
        self._seen(event)


def _notes(logged: LoggedApplication, log: EventLog) -> Iterator[str]:
    if logged.application is None:
        yield "it has no SparkListenerApplicationStart record, so nothing of it was reported"
    elif not logged.ended:
        why = (
            "it still runs, or it died" if log.in_progress else "the log is cut off, or the application died"
        )
        last = f"; its last record is of {iso_time(logged.clock_ms)}" if logged.clock_ms else ""
        yield f"it has no SparkListenerApplicationEnd record: {why}{last}"


class Replay:
    """Replays logs to the reporters of events and spans that a configuration names.

    Args:
        conf: Spark's configuration.

    Attributes:
        delivered: what became of what was reported, by reporter.
        summary: what came of the logs so far, also of one that was not read to its end.
        warnings: what there is to say of the configuration.

    Raises:
        ConfigError: it is wrong.
    """

    def __init__(self, conf: Mapping[str, str]) -> None:
        found = read_configuration(conf)
        if found.problems:
            raise ConfigError.of_all(found.problems)
        redact_logs(found.redactor)
        self._conf = conf
        self._stall_s = found.settings.stall_timeout_ms / 1000
        self.warnings = [*found.warnings, *_left_out(found)]
        self.delivered: dict[str, Delivered] = {}
        self.summary = Summary()
        self._registry: Registry | None = None
        self._close_ms = found.settings.close_timeout_ms

    def run(self, logs: Iterable[tuple[LogFiles, EventLog]]) -> Iterator[int]:
        """Replay logs, one after the other.

        Yields:
            How many bytes were read, block by block.

        Raises:
            ConfigError: a reporter cannot be opened.
            StalledError: a reporter has taken nothing for ``spark.events.eventlog.stall.timeout``.
        """
        for files, log in logs:
            yield from self._run_log(files, log)

    def _run_log(self, files: LogFiles, log: EventLog) -> Iterator[int]:
        reading = LogReplay(files, log, self._start)
        try:
            for size in reading.run():
                if self._registry is not None:
                    self._await(self._registry, lambda registry: not registry.crowded)
                yield size
            if self._registry is not None:
                self._await(self._registry, lambda registry: not registry.undelivered)
        finally:
            self.summary.add(reading.result)
            if self._registry is not None:
                registry, self._registry = self._registry, None
                registry.close(self._close_ms)
                self._count(registry)

    def _start(self, application: ApplicationInfo, tap: Tap) -> SparkListeners:
        found = read_configuration(self._conf, application)
        settings = found.settings
        setups = [setup for setup in found.setups if setup.kind is not METRICS]
        scope = settings.scopes.driver.render(variables_of(application))
        self._registry = registry = Registry(setups, found.redactor, scope, tap)
        registry.start()
        if unopened := registry.wait_opened(_OPEN_WAIT_MS):
            raise ConfigError.of_all(unopened)
        jobs = job_handlers(self._conf, registry, with_plans=False)
        return SparkListeners(registry, without_state(settings), found.enrichers, extension=jobs)

    def _await(self, registry: Registry, there: Callable[[Registry], bool]) -> None:
        """Wait for the reporters: a replay has time, and loses nothing to a full queue."""
        last, since = -1, time.monotonic()
        while not there(registry):
            waiting, now = registry.undelivered, time.monotonic()
            if waiting != last:
                last, since = waiting, now
            elif now - since > self._stall_s:
                titles = [worker.title for worker in registry.workers if worker.depth]
                raise StalledError(
                    f"{', '.join(titles)}: nothing was taken for {self._stall_s:g} s, {waiting} item(s) wait"
                )
            time.sleep(_WAIT_S)

    def _count(self, registry: Registry) -> None:
        for worker in registry.workers:
            of = self.delivered.setdefault(worker.title, Delivered())
            stats = worker.stats
            of.reported += stats.reported.count
            lost = {**stats.dropped_here(), "failed": stats.failed.count}
            for cause, count in lost.items():
                if count:
                    of.lost[cause] = of.lost.get(cause, 0) + count
            of.waiting = worker.journaled


def _left_out(found: Configuration) -> Iterator[str]:
    """Say which reporters a replay does without: metrics tell how things are now."""
    names = [setup.name for setup in found.setups if setup.kind is METRICS]
    if names:
        yield (
            f"metric reporters are left out ({', '.join(names)}): metrics tell of the present, and a replay "
            "has none; spark-events follow reports them"
        )
    if len(names) == len(found.setups):
        yield "no reporter of events or spans is configured: the logs are read, and nothing is sent"
