"""Replays event logs, one application at a time, each through its own listeners and reporters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from spark_events.api import ApplicationInfo, Event
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.plugins import METRICS
from spark_events.runtime.registry import Registry
from spark_events.sources.assembly import StartUp, assemble, for_event_logs, read_checked
from spark_events.sources.configuration import Configuration, read_configuration
from spark_events.sources.event_log.logged_application import LoggedApplication
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.summary import Delivered, Outcomes, ReplayedLog, Summary, iso_time

Tap = Callable[[Event], None]
StartApplication = Callable[[ApplicationInfo, Tap, Mapping[str, str]], SparkListeners]
_WAIT_S = 0.01
_OPEN_WAIT_MS = 30_000


class StalledError(Exception):
    """The error of a reporter that has accepted nothing for too long."""


class LogReplay:
    """Reads one log to its end.

    Args:
        start: makes the listeners of an application, given the tap that must see its events, and what its
            own configuration says of what is expected of it.
        tap: sees the events, too.
        with_unfinished: whether the listeners get what tasks have measured of stages without an end, and of
            those that the application's end has cancelled.
    """

    def __init__(
        self,
        files: LogFiles,
        log: EventLog,
        start: StartApplication,
        tap: Tap = lambda event: None,
        with_unfinished: bool = False,
    ) -> None:
        self._log = log
        self._with_unfinished = with_unfinished
        self._tap = tap
        self._outcomes = Outcomes()
        self._logged = LoggedApplication(
            files,
            log,
            lambda application, own: start(application, self._on_event, own),
            with_cancelled=with_unfinished,
        )

    def run(self) -> Iterator[int]:
        """Read the log.

        Yields:
            The number of bytes read, block by block.
        """
        try:
            yield from self._logged.read(self._log, final=True)
            if self._with_unfinished:
                self._logged.tell_so_far()
        except OSError as error:
            self._logged.tail.notes.append(f"cannot be read: {error}")
        finally:
            self._logged.close()

    @property
    def result(self) -> ReplayedLog:
        """The outcome so far."""
        logged = self._logged
        unreadable = [*logged.tail.notes, *map(_missing_parts, self._log.gaps)]
        return ReplayedLog(
            self._log.path,
            logged.application,
            logged.spark_version,
            logged.ended,
            logged.tail.reader.counts,
            self._outcomes,
            [*unreadable, *_missing_records(logged, self._log)],
            bool(unreadable),
            _compacted(self._log),
        )

    def _on_event(self, event: Event) -> None:
        self._outcomes.take(event)
        self._tap(event)


def _missing_parts(gap: tuple[int, int]) -> str:
    first, last = gap
    which = f"part {first} is" if first == last else f"parts {first} to {last} are"
    return f"its {which} missing, with all that Spark recorded meanwhile"


def _compacted(log: EventLog) -> str:
    if not log.parts or not log.parts[0].compacted:
        return ""
    return (
        f"Spark's History Server has compacted what came before part {log.parts[0].index + 1}: the jobs that "
        "had ended by then are not in it, and their time looks like the driver's own"
    )


def _missing_records(logged: LoggedApplication, log: EventLog) -> Iterator[str]:
    """Yield a sentence if the start or the end of the application is not in its log."""
    if logged.application is None:
        yield "it has no SparkListenerApplicationStart record, so nothing of it was reported"
    elif not logged.ended:
        why = (
            "it still runs, or it died" if log.in_progress else "the log is cut off, or the application died"
        )
        last = f"; its last record is of {iso_time(logged.clock_ms)}" if logged.clock_ms else ""
        yield f"it has no SparkListenerApplicationEnd record: {why}{last}"


class Replay:
    """Replays logs to the event and span reporters that a configuration names.

    Args:
        conf: Spark's configuration.

    Attributes:
        delivered: the fate of what was reported, by reporter.
        summary: the outcome of the logs so far, including one that was not read to its end.
        warnings: remarks about the configuration.

    Raises:
        ConfigError: it is wrong.
    """

    def __init__(self, conf: Mapping[str, str]) -> None:
        configuration = read_checked(conf)
        self._conf = conf
        self._stall_s = configuration.settings.stall_timeout_ms / 1000
        self._close_ms = configuration.settings.close_timeout_ms
        self.warnings = [*configuration.warnings, *_left_out(configuration)]
        self.delivered: dict[str, Delivered] = {}
        self.summary = Summary()
        self._registry: Registry | None = None

    def run(self, logs: Iterable[tuple[LogFiles, EventLog]]) -> Iterator[int]:
        """Replay logs, one after the other.

        Yields:
            How many bytes were read, block by block.

        Raises:
            ConfigError: a reporter cannot be opened.
            StalledError: a reporter has taken nothing for ``spark.events.event-log.stall-timeout``.
        """
        for files, log in logs:
            yield from self._run_log(LogReplay(files, log, self._start))

    def _run_log(self, replay: LogReplay) -> Iterator[int]:
        try:
            for size in replay.run():
                if self._registry is not None:
                    self._wait_until(self._registry, lambda registry: not registry.crowded)
                yield size
            if self._registry is not None:
                self._wait_until(self._registry, lambda registry: not registry.undelivered)
        finally:
            self.summary.add(replay.result)
            if self._registry is not None:
                registry, self._registry = self._registry, None
                registry.close(self._close_ms)
                self._count_delivered(registry)

    def _start(self, application: ApplicationInfo, tap: Tap, own: Mapping[str, str]) -> SparkListeners:
        conf = {**own, **self._conf}
        configuration = for_event_logs(read_configuration(conf, application))
        start_up = StartUp(open_within_ms=_OPEN_WAIT_MS, close_within_ms=self._close_ms, tap=tap)
        assembly = assemble(conf, application, configuration, start_up)
        self._registry = assembly.registry
        return assembly.listeners

    def _wait_until(self, registry: Registry, is_ready: Callable[[Registry], bool]) -> None:
        """Wait for the reporters: a replay is not in a hurry, and must not lose events to a full queue."""
        last, since = -1, time.monotonic()
        while not is_ready(registry):
            waiting, now = registry.undelivered, time.monotonic()
            if waiting != last:
                last, since = waiting, now
            elif now - since > self._stall_s:
                titles = [worker.title for worker in registry.workers if worker.depth]
                raise StalledError(
                    f"{', '.join(titles)}: accepted nothing for {self._stall_s:g} s; undelivered: {waiting:,}"
                )
            time.sleep(_WAIT_S)

    def _count_delivered(self, registry: Registry) -> None:
        for worker in registry.workers:
            delivered, stats = self.delivered.setdefault(worker.title, Delivered()), worker.stats
            delivered.reported += stats.reported.count
            lost = {**stats.dropped_here(), "failed": stats.failed.count}
            for cause, count in lost.items():
                if count:
                    delivered.lost[cause] = delivered.lost.get(cause, 0) + count
            delivered.waiting = worker.journaled


def _left_out(configuration: Configuration) -> Iterator[str]:
    """Yield which reporters a replay leaves out: those of metrics, which report the present."""
    names = [setup.name for setup in configuration.setups if setup.kind is METRICS]
    if names:
        yield (
            f"metric reporters are left out ({', '.join(names)}): metrics show the present, which a replay "
            "does not have; spark-events follow reports them"
        )
    if len(names) == len(configuration.setups):
        yield "no reporter of events or spans is configured: the logs are read, but nothing is sent"
