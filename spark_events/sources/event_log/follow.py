"""Follows all applications whose event logs are in one folder, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from spark_events.api import ApplicationInfo, ConfigError, Counter, Gauge
from spark_events.api.event import now_ms
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime.foreign_errors import describe
from spark_events.runtime.log_once import logger
from spark_events.runtime.plugins import METRICS
from spark_events.runtime.registry import Registry
from spark_events.runtime.workers.turns import Lanes
from spark_events.sources.assembly import (
    Assembly,
    StartUp,
    assemble,
    for_event_logs,
    read_checked,
    start_reporters,
)
from spark_events.sources.configuration import read_configuration
from spark_events.sources.event_log.absent_logs import AbsentLogs
from spark_events.sources.event_log.ended_series import EndedSeries, is_earlier
from spark_events.sources.event_log.followed_application import FollowedApplication, steady_ms
from spark_events.sources.event_log.pace import Pace
from spark_events.sources.event_log.reading.files import EventLog, LogFiles, latest_attempts
from spark_events.sources.event_log.reading.log_positions import (
    DEAD,
    ENDED,
    FOLLOWED,
    PASSED,
    LogPosition,
    LogPositions,
)
from spark_events.sources.event_log.reading.tail import LogCompactedError, LogRewrittenError

_OPEN_WAIT_MS = 10_000
_OPEN_AGAIN_MS = 30_000
_LATE_MS = 1_000
_MOST_WARNINGS = 1_000
"""How long Spark may take to bring a record to its log."""


class Follower:
    """Follows the logs of one folder.

    Args:
        path: the folder; local or any fsspec URL.
        conf: Spark's configuration.
        positions: how far each log has been read.
        complete_too: whether to read also logs that were complete before anybody followed them.

    Attributes:
        files: where the logs are.
        interval_ms: how often they are checked, in ms.
        warnings: remarks about the configuration.

    Raises:
        ConfigError: the configuration is invalid, or there is no such folder.
    """

    def __init__(
        self, path: str, conf: Mapping[str, str], positions: LogPositions, complete_too: bool = False
    ) -> None:
        configuration = read_checked(conf)
        self.files = LogFiles(path)
        self.files.find()
        self.warnings = configuration.warnings
        self.interval_ms = configuration.settings.poll_interval_ms
        self._settings = configuration.settings
        self._conf = conf
        self._positions = positions
        self._complete_too = complete_too
        self._followed: dict[str, FollowedApplication] = {}
        self._attempts: Mapping[str, int] = {}
        self._absent = AbsentLogs()
        self._lanes = Lanes()
        self._ended_series = EndedSeries()
        self._last_warnings: dict[str, str] = {}
        self._open_again_at_ms: dict[str, int] = {}
        self._stopping = threading.Event()
        self._polled_ms: int | None = None
        metric_setups = [setup for setup in configuration.setups if setup.kind is METRICS]
        self._metrics, self._no_metrics = Registry(metric_setups, configuration.redactor), Registry(())
        self._register_metrics()

    def run(self) -> None:
        """Follow the logs until ``stop``, then deliver what is pending.

        Raises:
            ConfigError: a metric reporter cannot be opened, or the positions could not be saved at the end.
        """
        start_reporters(self._metrics, _OPEN_WAIT_MS, close_within_ms=0)
        try:
            pace = Pace(self.interval_ms)
            while not self._stopping.is_set():
                self._pass_over(pace.frozen_ms(steady_ms()))
                more = self.poll()
                self._stopping.wait(0 if more else self.interval_ms / 1000)
        finally:
            self._close()

    def stop(self) -> None:
        """Make ``run`` return; may be called from a signal handler."""
        self._stopping.set()

    def poll(self) -> bool:
        """Check all logs once, and return whether there is more to read right away."""
        listed_ms = steady_ms()
        try:
            logs, folders = self._list_logs()
        except ConfigError as error:  # a share that is temporarily unavailable
            self._warn_once(self.files.path, str(error), self.interval_ms)
            return False
        present = folders | logs.keys()
        known = self._positions.names | self._followed.keys()
        if self._absent.is_outage(known, present, listed_ms):
            sentence = f"{self.files.path}: is empty now, as if a mount had dropped; what is known of"
            self._warn_once(
                self.files.path, f"{sentence} {counted(len(known), 'log')} is kept", self.interval_ms
            )
            self._care_for_the_rest()
            return False
        self._last_warnings.pop(self.files.path, None)
        if self._positions.fresh:
            self._skip_complete_logs(logs)
        self._attempts = latest_attempts(present)
        more = False
        for log in logs.values():
            more = self._read_log(log, listed_ms) or more
        for name in [name for name in self._followed if name not in logs]:
            self._rest(name)
        for name in self._absent.removed(self._positions.names, present, listed_ms):
            self._positions.forget(name)
            self._open_again_at_ms.pop(name, None)
        self._care_for_the_rest()
        self._polled_ms = now_ms()
        return more

    def _care_for_the_rest(self) -> None:
        """Do what is due in each poll, whatever is listed."""
        self._save_what_is_unsaved()
        self._ended_series.remove_due(self._metrics, self._settings.retention_ms)
        self._metrics.tick()

    def _pass_over(self, frozen_ms: int) -> None:
        """Let a time in which this process was frozen not count: the applications may have been, too."""
        for followed in self._followed.values():
            followed.pass_over(frozen_ms)

    # -- one log -----------------------------------------------------------------------------------------

    def _list_logs(self) -> tuple[dict[str, EventLog], Set[str]]:
        """Return the logs by name, and the names of all folders, looked into or not."""
        folders: set[str] = set()

        def is_known(name: str, folder_ms: int) -> bool:
            """Return whether a log folder is finished, and no part of it was added or removed since."""
            folders.add(name)
            saved = None if name in self._followed else self._positions[name]
            return saved is not None and saved.state in (ENDED, PASSED) and saved.folder_ms == folder_ms

        return {log.name: log for log in self.files.find(is_known, self._followed.__contains__)}, folders

    def _skip_complete_logs(self, logs: Mapping[str, EventLog]) -> None:
        """On the first start, skip the logs that are already complete."""
        complete = [] if self._complete_too else [log for log in logs.values() if not log.in_progress]
        self._positions.begin(
            {
                log.name: LogPosition(PASSED, size=log.size, folder_ms=log.folder_modified_ms)
                for log in complete
            }
        )
        if complete:
            logger.info(
                "skipped %s already complete; use spark-events replay or --complete-too",
                counted(len(complete), "log"),
            )

    def _read_log(self, log: EventLog, listed_ms: int) -> bool:
        """Read one log, as it was listed then, as much as one turn allows; return whether there is more."""
        followed = self._followed.get(log.name) or self._start_following(log)
        if followed is None:
            return False
        # What the last turn read has had time to be delivered.
        self._save_position(followed)
        if followed.end_state == DEAD and log.size != followed.log.size:
            self._stop_following(log.name, DEAD)  # it is alive after all: start following it again
            return True
        try:
            more = followed.read(log, listed_ms)
        except ConfigError as error:  # a reporter could not be opened
            del self._followed[log.name]
            self._open_again_at_ms[log.name] = steady_ms() + _OPEN_AGAIN_MS
            self._warn_once(log.path, str(error), _OPEN_AGAIN_MS)
            return False
        except LogRewrittenError as error:
            logger.warning("%s; reading it again from its beginning", error)
            self._stop_following(log.name, None)
            return True
        except LogCompactedError:
            self._set_aside(log.name)  # what it keeps of what was read is not told again
            return True
        except OSError as error:  # it was just renamed, or a share is unavailable
            self._warn_once(log.path, f"{log.path}: cannot be read now ({error})", self.interval_ms)
            return False
        except Exception as error:  # a bug of ours, or of a library's; the other logs are followed
            said = f"{log.path}: cannot be read ({describe(error)})"
            if self._last_warnings.get(log.path) != said:
                logger.error("%s", said, exc_info=error)
            self._warn_once(log.path, said, self.interval_ms)
            return False
        self._last_warnings.pop(log.path, None)
        self._open_again_at_ms.pop(log.name, None)
        self._log_notes(followed)
        if not more:
            self._finish_if_ended(followed)
        return more

    def _start_following(self, log: EventLog) -> FollowedApplication | None:
        """Start following a log; return None if it is finished or its next try is not due yet."""
        saved = self._positions[log.name]
        if saved is not None and log.is_one_file and log.size < saved.size:
            saved = None  # it is a different log under the same name
        if saved is not None and saved.state != FOLLOWED and saved.size == log.size:
            # Something else may have changed in its folder, which is not looked into for that each time.
            self._positions.put(log.name, replace(saved, folder_ms=log.folder_modified_ms))
            return None
        if steady_ms() < self._open_again_at_ms.get(log.name, 0):
            return None
        self._ended_series.remove(log.name)
        late_ms = _LATE_MS + self.interval_ms
        followed = FollowedApplication(self.files, log, saved, self._start_application, late_ms)
        self._followed[log.name] = followed
        return followed

    def _start_application(self, application: ApplicationInfo, own: Mapping[str, str]) -> Assembly:
        """Start the reporters of an application; its metrics go to the shared metric reporters."""
        conf = {**own, **self._conf}
        configuration = for_event_logs(read_configuration(conf, application))
        metrics = self._no_metrics if self._withdraw_earlier_runs(application) else self._metrics
        start_up = StartUp(open_within_ms=_OPEN_WAIT_MS, shared_metrics=metrics, lanes=self._lanes)
        assembly = assemble(conf, application, configuration, start_up)
        logger.info("following application %r (%s)", application.name, application.id)
        return assembly

    def _withdraw_earlier_runs(self, application: ApplicationInfo) -> bool:
        """Remove the series of an application's earlier attempts, for they have the same labels.

        Returns:
            Whether there is a later attempt already, whose series stay.
        """
        self._ended_series.remove_of(application)
        superseded = self._ended_series.has_later(application)
        for followed in self._followed.values():
            other = followed.logged.application
            if other is None or followed.registry is None:
                continue
            if is_earlier(other, application):
                followed.registry.withdraw_metrics()  # its end is still an event
            else:
                superseded = superseded or is_earlier(application, other)
        return superseded

    def _finish_if_ended(self, followed: FollowedApplication) -> None:
        """End an application whose log is complete or dead, and let it go once everything is delivered."""
        followed.tick(now_ms())
        self._save_position(followed)
        if not followed.end_state and followed.logged.ended:
            followed.mark_ended()
            self._ended.inc()
        elif not followed.end_state and followed.quiet_ms >= self._settings.log_idle_timeout_ms:
            followed.mark_resting()
            self._dead.inc()
        elif not followed.end_state and (later := followed.later_attempt(self._attempts)):
            followed.mark_followed_by(later)
            self._dead.inc()
        if followed.end_state and not followed.undelivered:
            self._stop_following(followed.log.name, followed.end_state)

    def _save_position(self, followed: FollowedApplication) -> None:
        """Save how far a log was read, unless some of that is not delivered yet."""
        if followed.caught_up and not followed.end_state and not followed.at_risk:
            self._positions.put(followed.log.name, followed.position(FOLLOWED))

    def _save_what_is_unsaved(self) -> None:
        """Try again what a full disk has prevented; meanwhile, reporting goes on."""
        self._positions.save()
        path = str(self._positions.path)
        if self._positions.unsaved:
            self._warn_once(path, self._positions.unsaved, self.interval_ms)
        elif self._last_warnings.pop(path, None):
            logger.info("%s: the positions are saved again", path)

    def _stop_following(self, name: str, state: str | None) -> None:
        """Stop following a log; save its position with a state, or, with None, let it be read anew.

        With a state, its last metrics stay for a while if anybody reads them.
        """
        followed = self._followed.pop(name)
        position = followed.position(state) if state else None
        followed.close(self._settings.close_timeout_ms)
        self._skipped.inc(sum(followed.logged.tail.reader.counts.lost().values()))
        if followed.registry is not None:
            if state and followed.logged.application is not None:
                self._ended_series.keep(name, followed.logged.application, followed.registry)
            else:
                followed.registry.remove_series()
        if position is None:
            self._positions.forget(name)
        else:
            self._positions.put(name, position)

    def _rest(self, name: str) -> None:
        """Stop following a log that is absent; should it come back, it is read on from where it was."""
        followed = self._followed[name]
        if not followed.end_state:
            logger.warning(
                "%s: its event log was removed before it ended; it is no longer followed", followed.title
            )
        self._set_aside(name)

    def _set_aside(self, name: str) -> None:
        """Stop following a log, so that it is read on from where it was: as far as that is delivered."""
        followed = self._followed.pop(name)
        position, dropped = followed.position(followed.end_state or FOLLOWED), followed.dropped
        followed.close(self._settings.close_timeout_ms)
        self._skipped.inc(sum(followed.logged.tail.reader.counts.lost().values()))
        if followed.registry is not None:
            followed.registry.remove_series()
        if followed.caught_up and followed.dropped == dropped:
            self._positions.put(name, position)

    # ----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        deadline = steady_ms() + self._settings.close_timeout_ms
        dropped = {name: followed.dropped for name, followed in self._followed.items()}
        for followed in self._followed.values():
            followed.request_close(self._settings.close_timeout_ms)
        for name, followed in self._followed.items():
            position = followed.position(followed.end_state or FOLLOWED)
            followed.close(max(0, deadline - steady_ms()))
            # The next start reads again what could not be delivered.
            if followed.caught_up and followed.dropped == dropped[name]:
                self._positions.put(name, position)
        self._metrics.close(self._settings.close_timeout_ms)
        self._positions.close()

    def _log_notes(self, followed: FollowedApplication) -> None:
        notes = followed.logged.tail.notes
        while notes:
            logger.warning("%s", notes.pop(0))

    def _warn_once(self, path: str, sentence: str, again_ms: int) -> None:
        """Log a warning about a path, and do not repeat it while it stays the same."""
        if self._last_warnings.get(path) != sentence:
            self._last_warnings[path] = sentence
            if len(self._last_warnings) > _MOST_WARNINGS:  # of logs that are gone by now
                del self._last_warnings[next(iter(self._last_warnings))]
            logger.warning("%s; trying again every %g s", sentence, again_ms / 1000)

    def _register_metrics(self) -> None:
        group = self._metrics.root.child("eventlog", ("eventlog",), {}, {})

        def gauge(name: str, read: Callable[[], int | None], unit: str, described: str) -> None:
            group.register(name, Gauge(read, unit, described))

        def counter(name: str, unit: str, described: str) -> Counter:
            return group.register(name, Counter(unit, described))

        gauge("followedLogs", lambda: len(self._followed), "{log}", "Followed event logs.")
        gauge("lastPollTimestamp", lambda: self._polled_ms, "ms", "When the logs were last looked at.")
        self._ended = counter("endedApplications", "{application}", "Applications that ended.")
        described = "Applications that died without an end in their log."
        self._dead = counter("deadApplications", "{application}", described)
        described = "Unusable records of logs that are no longer followed."
        self._skipped = counter("skippedRecords", "{record}", described)
