"""Watches whether new data comes to a streaming query. Flink has no such watchdog."""

from __future__ import annotations

from spark_events.api import Event, Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.queries.checkpoint_watch import LATE_RECORDS_MS
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.queries.set_back import SetBack
from spark_events.runtime import event_names

_SOURCE_WATCH = "spark_events.listeners.SourceWatch"
IDLE, ACTIVE = "IDLE", "ACTIVE"


class SourceWatch:
    """Tells once that no rows have come to a query for a while, and once that they come again.

    It looks at what the query reads, and so only while the query runs; and a batch that runs may have rows.

    Args:
        emitter: reports the events.
        limit_ms: after how long without rows, in ms; None for never.
    """

    def __init__(self, emitter: Emitter, limit_ms: int | None) -> None:
        self._emitter = emitter
        self._limit_ms = limit_ms
        self._since_ms: int | None = None
        self._last: tuple[int, int] | None = None
        self._is_idle = False
        self._in_batch = False
        self._set_back = SetBack()

    def start(self, time_ms: int) -> None:
        """Called when a run starts; one that continues a query without data does not end the gap."""
        if not self._is_idle:
            self._since_ms = time_ms

    def begun(self, run: QueryRun, time_ms: int) -> None:
        """Called when a micro-batch has begun."""
        self.check(run, time_ms)
        self._in_batch = True

    def completed(self, run: QueryRun, batch: int, rows: int, trigger_ms: int, time_ms: int) -> None:
        """Called when a micro-batch has completed.

        Args:
            run: the run that completed it.
            batch: its id.
            rows: how many it has read.
            trigger_ms: when its trigger began, in ms since the epoch.
            time_ms: when it was completed.
        """
        if not self._in_batch:  # nobody said that it had begun
            self.check(run, trigger_ms)
        self._in_batch = False
        if rows <= 0:
            self.check(run, time_ms)
            return
        if self._is_idle:
            self._tell(run, ACTIVE, time_ms, max(self._limit_ms or 0, trigger_ms - (self._since_ms or 0)))
        self._is_idle = False
        self._since_ms, self._last = time_ms, (batch, time_ms)

    def rest(self, run: QueryRun, time_ms: int) -> None:
        """Called when the query has nothing to do."""
        self._in_batch = False
        self.check(run, time_ms)

    def ended(self, run: QueryRun, time_ms: int) -> None:
        """Called when the run has ended: nobody reads what comes."""
        self.check(run, time_ms)
        self._in_batch = False
        if not self._is_idle:
            self._since_ms = None

    def tick(self, run: QueryRun, now_ms: int) -> None:
        """Report that no rows come, allowing a second for records still on their way."""
        self.check(run, now_ms - LATE_RECORDS_MS, self._set_back.by_ms(self._since_ms, now_ms))

    def check(self, run: QueryRun, time_ms: int, set_back_ms: int = 0) -> None:
        """Report, as of a run, that no rows had come for too long at a time.

        Args:
            run: that of the query.
            time_ms: in ms since the epoch.
            set_back_ms: by how much the clock was set back since the last record, at least, in ms.
        """
        if self._limit_ms is None or self._since_ms is None or self._is_idle or self._in_batch:
            return
        due_ms = self._since_ms + self._limit_ms
        if time_ms + set_back_ms > due_ms:
            self._is_idle = True
            self._tell(run, IDLE, due_ms - set_back_ms, self._limit_ms)

    def _tell(self, run: QueryRun, status: str, time_ms: int, idle_ms: int) -> None:
        last_id, last_ms = self._last or (None, None)
        said = "has read no rows for" if status == IDLE else "reads rows again after"
        event = (
            Event.builder(_SOURCE_WATCH, event_names.SOURCE_IDLE)
            .set_severity(Severity.WARN if status == IDLE else Severity.INFO)
            .set_body(f"{run.entity.title} {said} {duration(idle_ms)}")
            .set_attribute("sourceStatus", status)
            .set_attribute("idleMs", idle_ms)
            .set_attribute("limitMs", self._limit_ms)
            .set_attribute("lastInputMs", last_ms)
            .set_attribute("lastCheckpointId", last_id)
        )
        occasion = ("source", status, str(self._since_ms))
        self._emitter.emit(event, run.entity, run.group, time_ms, occasion)
