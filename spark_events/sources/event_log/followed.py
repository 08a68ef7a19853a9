"""One application whose log grows, read turn by turn and across restarts, to its end or its death."""

from __future__ import annotations

from collections.abc import Callable

from spark_events.api import ApplicationInfo
from spark_events.api.event import now_ms
from spark_events.listeners.settings import DEAD_AFTER, PREFIX
from spark_events.listeners.spark_records import APPLICATION_ALIVE, APPLICATION_DEAD
from spark_events.listeners.translator import SparkListeners
from spark_events.runtime.log_once import logger
from spark_events.runtime.registry import Registry
from spark_events.sources.event_log.application import LoggedApplication
from spark_events.sources.event_log.cursor import DEAD, ENDED, Cursor
from spark_events.sources.event_log.files import EventLog, LogFiles

StartFollowed = Callable[[ApplicationInfo], tuple[Registry, SparkListeners]]
_BLOCKS_A_TURN = 128


class FollowedApplication:
    """One application that is followed.

    Args:
        files: where its log is.
        log: the log.
        cursor: how far an earlier process read it.
        start: makes its reporters and listeners.
        late_ms: how late a record may come, in ms: what should have happened by then has not happened.

    Attributes:
        log: the log as it was when it was read last.
        logged: the application as its log tells it.
        registry: its reporters; None before the log says whose it is.
        grown_ms: when the log was written to, in ms since the epoch.
        over: ENDED or DEAD; empty while it goes on.
        over_since_ms: since when, in ms since the epoch.
    """

    def __init__(
        self, files: LogFiles, log: EventLog, cursor: Cursor | None, start: StartFollowed, late_ms: int
    ) -> None:
        self._start_followed = start
        self._late_ms = late_ms
        self._was_dead = cursor is not None and cursor.state == DEAD
        resume = cursor.position if cursor is not None and cursor.position != (0, 0) else None
        self._muted = resume is not None
        self.log = log
        self.registry: Registry | None = None
        self.logged = LoggedApplication(files, log, self._start, resume, self._resumed)
        self.grown_ms = log.modified_ms or now_ms()
        self.over = ""
        self.over_since_ms = 0

    @property
    def caught_up(self) -> bool:
        """Whether what an earlier process has read is behind it."""
        return self.registry is not None and not self.registry.muted

    @property
    def at_risk(self) -> int:
        """How many items would be lost with the process."""
        return self.registry.at_risk if self.registry else 0

    @property
    def dropped(self) -> int:
        """How many items its reporters could not deliver."""
        return sum(worker.stats.dropped for worker in self.registry.workers) if self.registry else 0

    @property
    def title(self) -> str:
        """How messages call it."""
        application = self.logged.application
        return f"application {application.name!r} ({application.id})" if application else self.log.path

    def read(self, log: EventLog) -> bool:
        """Read what is new, as much as one turn allows; tell whether there is more."""
        if log.size != self.log.size or log.modified_ms != self.log.modified_ms:
            self.grown_ms = max(self.grown_ms, log.modified_ms or now_ms())
        self.log = log
        final = self.logged.ended and not log.in_progress
        for turn, _ in enumerate(self.logged.tail.read(log, final), 1):
            if turn >= _BLOCKS_A_TURN or (self.registry is not None and self.registry.crowded):
                return True
        return False

    def rest(self, time_ms: int) -> None:
        """Let time pass while nothing is new."""
        listeners = self.logged.listeners
        if listeners is not None and self.registry is not None and not self.logged.ended:
            self.logged.tail.resume_here()
            self.logged.tail.reader.changed_tasks(time_ms)
            listeners.tick(time_ms - self._late_ms)
            self.registry.tick()

    def end(self, state: str, time_ms: int) -> None:
        """Take that its log is over, ENDED or DEAD; a dead one may be written again."""
        self.over, self.over_since_ms = state, time_ms
        if state == ENDED:
            logger.info("%s has ended", self.title)
        elif self.logged.listeners is None:
            logger.warning("%s: it has no start of an application, and is followed no longer", self.title)
        else:
            resting_s = (time_ms - self.grown_ms) // 1000
            logger.warning("%s counts as FAILED: its log has had no record for %d s", self.title, resting_s)
            reason = (
                f"the event log has no end, and nothing was written to it for {resting_s} s "
                f"({PREFIX}{DEAD_AFTER.name})"
            )
            record = {"Event": APPLICATION_DEAD, "Timestamp": self.logged.clock_ms, "Reason": reason}
            self.logged.listeners.on_record(record)

    def cursor(self, state: str) -> Cursor:
        """Return how far it has been read."""
        return Cursor(state, self.logged.tail.position, self.log.size, self.log.folder_modified_ms)

    def close(self, timeout_ms: int) -> None:
        """Deliver what there is, and take its series away."""
        self.logged.close()
        if self.registry is not None:
            self.registry.close(timeout_ms)
            self.registry.root.close()

    def _start(self, application: ApplicationInfo) -> SparkListeners:
        self.registry, listeners = self._start_followed(application)
        self.registry.muted = self._muted
        return listeners

    def _resumed(self) -> None:
        self._muted = False
        if self.registry is not None:
            self.registry.muted = False
            if self._was_dead and self.logged.listeners is not None:
                logger.warning("%s had counted as FAILED, and its log is written again", self.title)
                record = {"Event": APPLICATION_ALIVE, "Timestamp": self.grown_ms}
                self.logged.listeners.on_record(record)
