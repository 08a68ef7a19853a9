"""Follows all applications whose event logs are in one folder, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from spark_events.api import ApplicationInfo, ConfigError, Counter, Gauge
from spark_events.api.event import now_ms
from spark_events.jobs.handlers import job_handlers
from spark_events.listeners.configuration import read_configuration
from spark_events.listeners.scopes import variables_of
from spark_events.listeners.translator import SparkListeners
from spark_events.runtime.kinds import METRICS
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import redact_logs
from spark_events.runtime.registry import Registry
from spark_events.sources.event_log.application import without_state
from spark_events.sources.event_log.cursor import DEAD, ENDED, FOLLOWED, PASSED, Cursor, Cursors
from spark_events.sources.event_log.files import EventLog, LogFiles
from spark_events.sources.event_log.followed import FollowedApplication
from spark_events.sources.event_log.tail import LogRewrittenError

_OPEN_WAIT_MS = 10_000
_OPEN_AGAIN_MS = 30_000
_LATE_MS = 1_000
"""How long Spark may take to bring a record to its log."""


class Follower:
    """Follows the logs of one folder.

    Args:
        path: the folder; local or any fsspec URL.
        conf: Spark's configuration.
        cursors: how far each log has been read.
        complete_too: whether logs that are complete before anybody followed them are read as well.

    Attributes:
        files: where the logs are.
        interval_ms: how often they are looked at, in ms.
        warnings: what there is to say of the configuration.

    Raises:
        ConfigError: the configuration is wrong, or there is no such folder.
    """

    def __init__(
        self, path: str, conf: Mapping[str, str], cursors: Cursors, complete_too: bool = False
    ) -> None:
        found = read_configuration(conf)
        if found.problems:
            raise ConfigError.of_all(found.problems)
        redact_logs(found.redactor)
        self.files = LogFiles(path)
        self.files.find()
        self.warnings = found.warnings
        self.interval_ms = found.settings.poll_interval_ms
        self._settings = without_state(found.settings)
        self._conf = conf
        self._cursors = cursors
        self._complete_too = complete_too
        self._followed: dict[str, FollowedApplication] = {}
        self._troubles: dict[str, str] = {}
        self._again_ms: dict[str, int] = {}
        self._stopping = threading.Event()
        self._polled_ms: int | None = None
        metrics = [setup for setup in found.setups if setup.kind is METRICS]
        self._metrics = Registry(metrics, found.redactor)
        self._register()

    def run(self) -> None:
        """Follow until ``stop``, and then deliver what there is.

        Raises:
            ConfigError: a metric reporter cannot be opened, or the cursors cannot be written.
        """
        self._metrics.start()
        if unopened := self._metrics.wait_opened(_OPEN_WAIT_MS):
            self._metrics.close(0)
            raise ConfigError.of_all(unopened)
        try:
            while not self._stopping.is_set():
                more = self.poll()
                self._stopping.wait(0 if more else self.interval_ms / 1000)
        finally:
            self._end()

    def stop(self) -> None:
        """Let ``run`` return; may be called from a signal handler."""
        self._stopping.set()

    def poll(self) -> bool:
        """Look at all logs once; tell whether there is more to read at once."""
        passed_by: set[str] = set()

        def is_over(name: str, folder_ms: int) -> bool:
            passed_by.add(name)
            return self._is_over(name, folder_ms)

        try:
            logs = {log.name: log for log in self.files.find(is_over)}
        except ConfigError as error:  # a share that is away for a while
            self._trouble(self.files.path, str(error))
            return False
        self._troubles.pop(self.files.path, None)
        if self._cursors.fresh:
            self._pass_over(logs)
        more = False
        for log in logs.values():
            more = self._attend(log) or more
        for name in [name for name in self._followed if name not in logs]:
            self._gone(name)
        self._cursors.keep_only(passed_by | logs.keys())
        self._metrics.tick()
        self._polled_ms = now_ms()
        return more

    def _start(self, application: ApplicationInfo) -> tuple[Registry, SparkListeners]:
        """Start the reporters of an application; its metrics go to those that all share."""
        found = read_configuration(self._conf, application)
        setups = [setup for setup in found.setups if setup.kind is not METRICS]
        scope = self._settings.scopes.driver.render(variables_of(application))
        # One endpoint has the series of all applications, so that names alone do not tell them apart.
        variables = {"app_id": application.id}
        registry = Registry(setups, found.redactor, scope, None, self._metrics, variables)
        registry.start()
        if unopened := registry.wait_opened(_OPEN_WAIT_MS):
            registry.close(0)
            raise ConfigError.of_all(unopened)
        logger.info("follows application %r (%s)", application.name, application.id)
        jobs = job_handlers(self._conf, registry, with_plans=False)
        return registry, SparkListeners(registry, self._settings, found.enrichers, extension=jobs)

    # ----------------------------------------------------------------------------------------------------

    def _attend(self, log: EventLog) -> bool:
        """Read one log as far as it goes; tell whether there is more."""
        followed = self._followed.get(log.name)
        if followed is None:
            followed = self._take_up(log)
            if followed is None:
                return False
        # What was read at the last turn has had the time to be delivered.
        self._note(followed)
        if followed.over == DEAD and log.size != followed.log.size:
            self._leave(log.name, DEAD)
            return True
        try:
            more = followed.read(log)
        except ConfigError as error:  # a reporter could not be opened
            del self._followed[log.name]
            self._again_ms[log.name] = now_ms() + _OPEN_AGAIN_MS
            self._trouble(log.path, str(error), _OPEN_AGAIN_MS)
            return False
        except LogRewrittenError as error:
            logger.warning("%s; it is read from its beginning", error)
            self._leave(log.name, None)
            return True
        except OSError as error:  # it was renamed just now, or a share is away
            self._trouble(log.path, f"{log.path}: cannot be read now ({error})")
            return False
        self._troubles.pop(log.path, None)
        self._again_ms.pop(log.name, None)
        self._say_notes(followed)
        if not more:
            self._settle(followed, log)
        return more

    def _take_up(self, log: EventLog) -> FollowedApplication | None:
        """Begin to follow a log; return None where it is over, or its turn has not come again."""
        cursor = self._cursors[log.name]
        over = cursor is not None and cursor.state != FOLLOWED and cursor.size == log.size
        if over or now_ms() < self._again_ms.get(log.name, 0):
            return None
        late_ms = _LATE_MS + self.interval_ms
        found = FollowedApplication(self.files, log, cursor, self._start, late_ms)
        self._followed[log.name] = found
        return found

    def _settle(self, followed: FollowedApplication, log: EventLog) -> None:
        """Do what is to be done when all there is has been read."""
        time_ms = now_ms()
        followed.rest(time_ms)
        self._note(followed)
        if not followed.over and followed.logged.ended:
            followed.end(ENDED, time_ms)
            self._ended.inc()
        elif not followed.over and time_ms - followed.grown_ms >= self._settings.dead_after_ms:
            followed.end(DEAD, time_ms)
            self._dead.inc()
        if followed.over and self._may_leave(followed, time_ms):
            self._leave(log.name, followed.over)

    def _note(self, followed: FollowedApplication) -> None:
        """Note how far a log was read, unless some of that is not delivered."""
        if followed.caught_up and not followed.over and not followed.at_risk:
            self._cursors.put(followed.log.name, followed.cursor(FOLLOWED))

    def _may_leave(self, followed: FollowedApplication, time_ms: int) -> bool:
        """Tell whether all of what is over is delivered, and its last values were there to be seen."""
        # Metrics that nobody reads need not stay.
        grace_ms = self._settings.grace_ms if self._metrics.workers else 0
        waiting = followed.registry.undelivered if followed.registry else 0
        return not waiting and time_ms - followed.over_since_ms >= grace_ms

    def _leave(self, name: str, state: str | None) -> None:
        """Follow a log no longer, and remember it in that state; with None it is read anew."""
        followed = self._followed.pop(name)
        cursor = followed.cursor(state) if state else None
        followed.close(self._settings.close_timeout_ms)
        self._skipped.inc(sum(followed.logged.tail.reader.counts.lost().values()))
        if cursor is None:
            self._cursors.forget(name)
        else:
            self._cursors.put(name, cursor)

    def _gone(self, name: str) -> None:
        followed = self._followed[name]
        if not followed.over:
            logger.warning("%s: its log is gone before its end; it is followed no longer", followed.title)
        self._leave(name, None)

    def _is_over(self, name: str, folder_ms: int) -> bool:
        """Tell whether a folder need not be looked into: it is over, and no part has come or gone since."""
        cursor = self._cursors[name]
        over = cursor is not None and cursor.state in (ENDED, PASSED) and cursor.folder_ms == folder_ms
        return over and name not in self._followed

    def _pass_over(self, logs: Mapping[str, EventLog]) -> None:
        """Leave out, at the very first start, what was complete before."""
        self._cursors.fresh = False
        complete = [] if self._complete_too else [log for log in logs.values() if not log.in_progress]
        for log in complete:
            self._cursors.put(log.name, Cursor(PASSED, size=log.size, folder_ms=log.folder_modified_ms))
        if complete:
            logger.info(
                "%d log(s) are complete already, and are left to spark-events replay (or --complete-too)",
                len(complete),
            )

    def _end(self) -> None:
        deadline = now_ms() + self._settings.close_timeout_ms
        for name, followed in self._followed.items():
            cursor, dropped = followed.cursor(followed.over or FOLLOWED), followed.dropped
            followed.close(max(0, deadline - now_ms()))
            # What could not be delivered is read again by the next start.
            if followed.caught_up and followed.dropped == dropped:
                self._cursors.put(name, cursor)
        self._metrics.close(self._settings.close_timeout_ms)
        self._cursors.close()

    def _say_notes(self, followed: FollowedApplication) -> None:
        notes = followed.logged.tail.notes
        while notes:
            logger.warning("%s", notes.pop(0))

    def _trouble(self, what: str, sentence: str, again_ms: int = 0) -> None:
        """Say what is wrong, once for as long as it is."""
        if self._troubles.get(what) != sentence:
            self._troubles[what] = sentence
            seconds = (again_ms or self.interval_ms) / 1000
            logger.warning("%s; it is tried again each %g s", sentence, seconds)

    def _register(self) -> None:
        group = self._metrics.root.child("eventlog", ("eventlog",), {}, {})

        def gauge(name: str, read: Callable[[], int | None], unit: str, described: str) -> None:
            group.register(name, Gauge(read, unit, described))

        gauge("followedLogs", lambda: len(self._followed), "{log}", "Event logs that are followed.")
        gauge("lastPollTimestamp", lambda: self._polled_ms, "ms", "When the logs were last looked at.")
        self._ended = group.register(
            "endedApplications", Counter("{application}", "Applications that ended.")
        )
        described = "Applications that died without an end in their log."
        self._dead = group.register("deadApplications", Counter("{application}", described))
        described = "Records of logs that are followed no longer that could not be used."
        self._skipped = group.register("skippedRecords", Counter("{record}", described))
