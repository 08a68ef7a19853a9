"""Watches that each streaming query completes its checkpoints in time, and that new data comes to it.

Flink has no such watchdog.
"""

from __future__ import annotations

from spark_events.api import Event, Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.queries.checkpoint import SlaMetrics
from spark_events.listeners.queries.idle_interval import IdleInterval
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.queries.set_back import SetBack
from spark_events.runtime import event_names

CHECKPOINT_WATCH = "spark_events.listeners.CheckpointWatch"
_SOURCE_WATCH = "spark_events.listeners.SourceWatch"
LATE_RECORDS_MS = 1_000
"""How long a record may be on its way; only after that it is known what did not happen."""
_AT_ONCE_MS = 1_000
"""A trigger that begins so soon after a checkpoint found its data there already."""
IDLE, ACTIVE = "IDLE", "ACTIVE"


class CheckpointWatch:
    """The clock of one query. It runs from one checkpoint to the next, even while the query is down.

    An idle query has no new data and so nothing to commit: its clock stands still until it gets work. Spark
    says so only some seconds after the last checkpoint, so after each one it is open whether the next is owed
    since then, until a batch begins, Spark says that the query is idle, or neither came in time.

    Everything follows from the times in records, so that a replay comes to the same.

    Args:
        emitter: reports the events.
        sla: the longest time between two checkpoints, with counts of those in time and late. None if none
            is set: then the clock runs, but nothing is reported.
        idle_interval: after how long Spark says that a query is idle.
    """

    def __init__(self, emitter: Emitter, sla: SlaMetrics | None, idle_interval: IdleInterval) -> None:
        self._emitter = emitter
        self._sla = sla
        self._idle_interval = idle_interval
        self._since_ms: int | None = None  # since when the next checkpoint is owed; None: stopped
        self._gap_ms = 0  # tells one gap from another: when the clock last began, or last was stopped
        self._stopped_ms = 0  # when the clock was last stopped
        self._is_open = False  # whether nobody has said yet that there is anything to commit
        self._after_checkpoint = False  # whether the clock began with a checkpoint, rather than with a run
        self._from_trigger = False  # whether the progress may still say that it is owed since its trigger
        self._last: tuple[int, int] | None = None  # id and time of the last checkpoint
        self._reported = False  # whether this gap is reported as overdue
        self._set_back = SetBack()
        if sla is not None:
            sla.clocks = (*sla.clocks, self.owed_ms)

    @property
    def sla(self) -> SlaMetrics | None:
        """What it counts in; None if it counts nothing (any longer)."""
        return self._sla

    def leave(self) -> None:
        """Stop the clock for good: nothing is owed by it any longer."""
        if self._sla is not None:
            self._sla.clocks = tuple(clock for clock in self._sla.clocks if clock != self.owed_ms)
        self._sla = self._since_ms = None

    def owed_ms(self, now_ms: int) -> int:
        """Return for how long a checkpoint is owed, in ms; 0 while none is known to be."""
        since_ms = self._since_ms  # which another thread than a scrape's may set to None meanwhile
        now_ms += self._set_back.by_ms(since_ms, now_ms)
        if since_ms is None or now_ms <= self._known_ms():
            return 0
        return max(0, now_ms - since_ms)

    @property
    def due_ms(self) -> int | None:
        """When the next checkpoint is due, in ms since the epoch; None if none is, or it is reported."""
        if self._sla is None or self._reported or self._since_ms is None:
            return None
        return self._since_ms + self._sla.sla_ms

    def start(self, time_ms: int) -> None:
        """Called when a run starts: start the clock, unless it is running already."""
        if self._since_ms is None:
            self._restart(time_ms, is_open=True)

    def begun(self, run: QueryRun, time_ms: int) -> None:
        """Called when a micro-batch has begun: its checkpoint is owed.

        Since when, its progress says: since its trigger, unless there was no pause before it. Until then, a
        batch that came after a pause counts as owed since it began. After a pause so long that Spark would
        have said that the query was idle, the query was not, and the checkpoint is owed since the last one.
        """
        self.check(run, time_ms)
        if self._since_ms is None:
            self._restart(time_ms, is_open=False)
            self._gap_ms, self._from_trigger = self._stopped_ms, True
        elif self._after_checkpoint and self._since_ms + _AT_ONCE_MS < time_ms <= self._known_ms():
            self._since_ms, self._from_trigger = time_ms, True
        self._is_open = False

    def down(self, run: QueryRun, time_ms: int) -> None:
        """Called when the run has failed: the query owes its next checkpoint, if not since before."""
        self.check(run, time_ms)
        if self._since_ms is None:
            self._restart(time_ms, is_open=False)
        self._is_open = self._from_trigger = False

    def stop(self, run: QueryRun, time_ms: int) -> None:
        """Stop the clock: the query is idle, or was ended on purpose."""
        self.check(run, time_ms)
        self._since_ms, self._stopped_ms = None, time_ms

    def owed_at_stop(self, time_ms: int) -> dict[str, int]:
        """Return the attributes that say for how long a checkpoint was owed that never comes; {} if none was.

        Args:
            time_ms: when the query is stopped, in ms since the epoch.
        """
        owed_ms, sla_ms = self.owed_ms(time_ms), self._sla.sla_ms if self._sla else None
        # Between two triggers, nobody knows whether there is data; but an SLA demands a trigger within it.
        is_owed = owed_ms > 0 and (not self._is_open or (sla_ms is not None and owed_ms > sla_ms))
        return {"owedMs": owed_ms, **({} if sla_ms is None else {"slaMs": sla_ms})} if is_owed else {}

    def completed(self, run: QueryRun, checkpoint_id: int, trigger_ms: int, time_ms: int) -> int:
        """Restart the clock at a completed checkpoint; report one that came late, unless already reported.

        Args:
            run: the run that completed it.
            checkpoint_id: its id.
            trigger_ms: when its trigger began, in ms since the epoch.
            time_ms: when it was completed.

        Returns:
            How long the checkpoint was owed, in ms.
        """
        if self._is_open or self._since_ms is None:  # nobody said that the batch had begun
            self.begun(run, trigger_ms)
        self.check(run, time_ms)
        self._correct(trigger_ms)
        self.check(run, time_ms)
        if self._sla and not self._reported:
            self._sla.met.inc()
        since_ms = time_ms if self._since_ms is None else self._since_ms
        self._restart(time_ms, is_open=True, after_checkpoint=True)
        self._last = (checkpoint_id, time_ms)
        return max(0, time_ms - since_ms)

    def tick(self, run: QueryRun, now_ms: int) -> None:
        """Report a checkpoint that is now overdue, allowing a second for records still on their way."""
        self.check(run, now_ms - LATE_RECORDS_MS, self._set_back.by_ms(self._since_ms, now_ms))

    def check(self, run: QueryRun, time_ms: int, set_back_ms: int = 0) -> None:
        """Report, as of a run, a checkpoint that was overdue at a time.

        Args:
            run: the last one of the query.
            time_ms: in ms since the epoch.
            set_back_ms: by how much the clock was set back since the last record, at least, in ms.
        """
        due_ms = self.due_ms
        if self._sla is None or due_ms is None or time_ms + set_back_ms <= max(due_ms, self._known_ms()):
            return
        sla_ms, self._reported = self._sla.sla_ms, True
        self._sla.missed.inc()
        last_id, last_ms = self._last or (-1, None)
        event = (
            Event.builder(CHECKPOINT_WATCH, event_names.CHECKPOINT_OVERDUE)
            .set_severity(Severity.WARN)
            .set_body(f"{run.entity.title}: no micro-batch committed within {duration(sla_ms)}")
            .set_attribute("slaMs", sla_ms)
            .set_attribute("owedMs", sla_ms)
            .set_attribute("sinceLastMs", None if last_ms is None else due_ms - last_ms)
            .set_attribute("lastCheckpointId", None if last_ms is None else last_id)
        )
        occasion = ("overdue", str(last_id), str(self._gap_ms))
        self._emitter.emit(event, run.entity, run.group, due_ms - set_back_ms, occasion)

    def _known_ms(self) -> int:
        """Return from when on it is known that a checkpoint is owed.

        Spark looks for data, and so says that there is none, only at triggers. These may be as far apart as
        the SLA allows; where they are further apart than the interval, the first one is as good as any.
        """
        if not self._is_open or self._since_ms is None:
            return 0
        interval_ms = self._idle_interval.ms
        triggers_ms = min(self._sla.sla_ms, interval_ms) if self._sla else interval_ms
        return self._since_ms + interval_ms + triggers_ms + _AT_ONCE_MS

    def _correct(self, trigger_ms: int) -> None:
        """Let a checkpoint that came after a pause be owed since its trigger, as is known now."""
        if self._from_trigger and self._since_ms is not None:
            was_there = self._after_checkpoint and trigger_ms - self._gap_ms <= _AT_ONCE_MS
            self._since_ms = self._gap_ms if was_there else min(self._since_ms, trigger_ms)

    def _restart(self, time_ms: int, is_open: bool, after_checkpoint: bool = False) -> None:
        self._since_ms = self._gap_ms = time_ms
        self._is_open, self._after_checkpoint = is_open, after_checkpoint
        self._from_trigger = self._reported = False


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
