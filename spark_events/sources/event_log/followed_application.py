"""One application whose growing log is read in turns, across restarts, until it ends or dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from spark_events.api import ApplicationInfo
from spark_events.api.event import now_ms
from spark_events.listeners.record_fields import TIMESTAMP
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.listeners.spark_records import (
    APPLICATION_ALIVE,
    APPLICATION_DEAD,
    OUTCOME_ASSUMED,
    RESTARTED,
)
from spark_events.runtime.log_once import logger
from spark_events.runtime.registry import Registry
from spark_events.runtime.settings import key_of
from spark_events.sources.assembly import Assembly
from spark_events.sources.event_log.logged_application import LoggedApplication
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.reading.log_positions import DEAD, ENDED, LogPosition
from spark_events.sources.event_log.reading.tail import NOTHING_READ

_BLOCKS_A_TURN = 128
_REST_AFTER_REVIVAL_MS = 60_000


def steady_ms() -> int:
    """Return the time of a clock that nobody sets, and that rests while the machine does, in ms."""
    return time.monotonic_ns() // 1_000_000


class FollowedApplication:
    """One application that is followed.

    Args:
        saved: how far an earlier process read its log; None if there was none.
        start: makes its reporters and listeners.
        late_ms: how late a record may arrive, in ms; after that, what it would report did not happen.

    Attributes:
        log: the log as it was when last read.
        logged: the application as its log describes it.
        registry: its reporters; None until the log names the application.
        last_write_ms: when the log was last written to, in ms since the epoch.
        end_state: ENDED or DEAD; None while it goes on.
    """

    def __init__(
        self,
        files: LogFiles,
        log: EventLog,
        saved: LogPosition | None,
        start: Callable[[ApplicationInfo, Mapping[str, str]], Assembly],
        late_ms: int,
    ) -> None:
        self._start = start
        self._late_ms = late_ms
        self._was_dead = saved is not None and saved.state == DEAD
        resume = saved.read_up_to if saved is not None and saved.read_up_to != NOTHING_READ else None
        self._muted = resume is not None
        self.log = log
        self.registry: Registry | None = None
        self.logged = LoggedApplication(files, log, self._make_listeners, resume, self._unmute)
        self.last_write_ms = log.modified_ms or now_ms()
        # Clocks jump, as after a pause of the machine; applications that paused, too, are not dead for that.
        self._listed_ms = steady_ms()
        self._quiet_since_ms = self._listed_ms - max(0, now_ms() - self.last_write_ms)
        self.end_state: str | None = None

    @property
    def caught_up(self) -> bool:
        """Whether it has been read past the point that an earlier process had reached."""
        return self.registry is not None and not self.registry.muted

    @property
    def at_risk(self) -> int:
        """How many items would be lost if the process died now."""
        return self.registry.at_risk if self.registry else 0

    @property
    def undelivered(self) -> int:
        """How many items wait for its reporters, or are in flight."""
        return self.registry.undelivered if self.registry else 0

    @property
    def dropped(self) -> int:
        """How many items its reporters could not deliver."""
        return sum(worker.stats.dropped for worker in self.registry.workers) if self.registry else 0

    @property
    def quiet_ms(self) -> int:
        """For how long its log was not written to when it was last listed, in ms, without pauses."""
        return self._listed_ms - self._quiet_since_ms

    def pass_over(self, ms: int) -> None:
        """Let some time not count as one in which its log was not written to."""
        self._quiet_since_ms += ms

    @property
    def title(self) -> str:
        """Its name in messages."""
        application = self.logged.application
        return f"application {application.name!r} ({application.id})" if application else self.log.path

    def read(self, log: EventLog, listed_ms: int) -> bool:
        """Read new records, as many as one turn allows; return whether there are more.

        Args:
            log: as it is listed.
            listed_ms: when, by a steady clock.
        """
        self._listed_ms = listed_ms
        # HDFS says the time only of closed files, and closes that of a driver that is gone: not a change.
        times = {log.modified_ms, self.log.modified_ms}
        if log.size != self.log.size or (len(times) > 1 and 0 not in times):
            self.last_write_ms = max(self.last_write_ms, log.modified_ms or now_ms())
            self._quiet_since_ms = listed_ms
        self.log = log
        final = self.logged.ended and not log.in_progress
        for blocks, _ in enumerate(self.logged.read(log, final), 1):
            if blocks >= _BLOCKS_A_TURN or (self.registry is not None and self.registry.crowded):
                return True
        return False

    def tick(self, time_ms: int) -> None:
        """Let time pass while there are no new records."""
        if self.quiet_ms >= self._late_ms:
            self.logged.take_unfinished_line()
        listeners = self.logged.listeners
        if listeners is not None and self.registry is not None and not self.logged.ended:
            self.logged.tail.take_rest_as_new()
            self.logged.tail.reader.report_changed_tasks(time_ms)
            listeners.tick(time_ms - self._late_ms)
            self.registry.tick()

    def mark_ended(self) -> None:
        """Remember that the end of its application was read."""
        self.end_state = ENDED
        logger.info("%s has ended", self.title)

    def later_attempt(self, latest: Mapping[str, int]) -> int | None:
        """Return the attempt that proves this one to be over; None if there is none, or not long enough.

        YARN begins an attempt when the one before has ended. What that has written last may still arrive; if
        it did after it had been called dead, more is waited for before it is called so again.

        Args:
            latest: the latest attempt of each application.
        """
        application = self.logged.application
        rest_ms = _REST_AFTER_REVIVAL_MS if self._was_dead else self._late_ms
        if application is None or self.quiet_ms < rest_ms:
            return None
        own, last = application.attempt_id, latest.get(application.id, 0)
        return last if own.isdecimal() and int(own) < last else None

    def mark_resting(self) -> None:
        """Report it FAILED because its log is no longer written; this may be revoked later."""
        resting_s = self.quiet_ms // 1000
        reason = (
            f"the event log has no end, and nothing was written to it for {resting_s} s "
            f"({key_of(ListenerSettings, 'log_idle_timeout_ms')})"
        )
        self._mark_dead(f"its log has had no record for {resting_s} s", {"Reason": reason})

    def mark_followed_by(self, attempt: int) -> None:
        """Report it FAILED because a later attempt has begun; this may be revoked if it writes again."""
        reason = f"the event log has no end, and attempt {attempt} of the application has begun"
        record = {"Reason": reason, RESTARTED: True, OUTCOME_ASSUMED: True}
        self._mark_dead(f"attempt {attempt} of it has begun", record)

    def _mark_dead(self, why: str, record: dict[str, Any]) -> None:
        self.end_state = DEAD
        if self.logged.listeners is None:
            logger.warning(
                "%s: it has no SparkListenerApplicationStart record, and is no longer followed", self.title
            )
            return
        logger.warning("%s is marked FAILED: %s", self.title, why)
        self.logged.listeners.on_record(
            {"Event": APPLICATION_DEAD, TIMESTAMP: self.logged.clock_ms, **record}
        )

    def position(self, state: str) -> LogPosition:
        """Return how far it has been read, to be saved with a state."""
        return LogPosition(state, self.logged.tail.position, self.log.size, self.log.folder_modified_ms)

    def request_close(self, timeout_ms: int) -> None:
        """Begin to deliver what is pending within a time limit in ms; ``close`` waits for it."""
        if self.registry is not None:
            self.registry.request_close(timeout_ms)

    def close(self, timeout_ms: int) -> None:
        """Deliver what is pending within a time limit in ms; its series stay."""
        self.logged.close()
        if self.registry is not None:
            self.registry.close(timeout_ms)

    def _make_listeners(self, application: ApplicationInfo, own: Mapping[str, str]) -> SparkListeners:
        assembly = self._start(application, own)
        self.registry = assembly.registry
        self.registry.muted = self._muted
        return assembly.listeners

    def _unmute(self) -> None:
        """Called when everything that an earlier process reported has been read."""
        self._muted = False
        if self.registry is not None:
            self.registry.muted = False
            if self._was_dead and self.logged.listeners is not None:
                logger.warning("%s counted as FAILED, but its log is being written again", self.title)
                record = {"Event": APPLICATION_ALIVE, TIMESTAMP: self.last_write_ms}
                self.logged.listeners.on_record(record)
