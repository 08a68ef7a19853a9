"""Watches that each streaming query completes its checkpoints in time. Flink has no such watchdog."""

from __future__ import annotations

from spark_events.api import Counter, Event, Gauge, MetricGroup, Severity
from spark_events.api.event import now_ms
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.query_run import QueryRun

CLASS_SCOPE = "spark_events.listeners.CheckpointWatch"
LATE_RECORDS_MS = 1_000
"""How long a record may be on its way; only after that it is known what did not happen."""


class SlaMetrics:
    """How many checkpoints of a query completed in time, over all its runs.

    Attributes:
        sla_ms: the longest time between two checkpoints, in ms.
        watch: knows since when a checkpoint is owed; None before the first run.
    """

    def __init__(self, series: MetricGroup, sla_ms: int) -> None:
        self.sla_ms = sla_ms
        self.watch: CheckpointWatch | None = None
        described = (
            "How long a checkpoint has been owed; none while the query is idle or was ended on purpose."
        )
        series.register("checkpointOwed", Gauge(self._owed_ms, "ms", described))
        described = "The longest time between two checkpoints (spark.events.checkpoint.sla)."
        series.register("checkpointSla", Gauge(lambda: sla_ms, "ms", described))
        described = "Checkpoints that completed within the SLA."
        self.met = series.register("checkpointSlaMet", Counter("{checkpoint}", described))
        described = "Times that no checkpoint completed within the SLA."
        self.missed = series.register("checkpointSlaMissed", Counter("{checkpoint}", described))

    def _owed_ms(self) -> int | None:
        since_ms = self.watch.owed_since_ms if self.watch is not None else None
        return None if since_ms is None else max(0, now_ms() - since_ms)


class CheckpointWatch:
    """The clock of one query. It runs from one checkpoint to the next, even while the query is down.

    An idle query has no new data and so nothing to commit: its clock stands still until it gets work.

    Args:
        emitter: reports the events.
        sla: the longest time between two checkpoints, with counts of those in time and late. None if none
            is set: then the clock runs, but nothing is reported.
    """

    def __init__(self, emitter: Emitter, sla: SlaMetrics | None) -> None:
        self._emitter = emitter
        self._sla = sla
        self._since_ms: int | None = None
        self._last_id = -1
        self._reported = False
        if sla is not None:
            sla.watch = self

    @property
    def owed_since_ms(self) -> int | None:
        """Since when a checkpoint is owed, in ms since the epoch; None while none is."""
        return self._since_ms

    @property
    def due_ms(self) -> int | None:
        """When the next checkpoint is due, in ms since the epoch; None if none is, or it is reported."""
        if self._sla is None or self._reported or self._since_ms is None:
            return None
        return self._since_ms + self._sla.sla_ms

    def start(self, time_ms: int) -> None:
        """Start the clock, unless it is running already."""
        if self._since_ms is None:
            self._since_ms = time_ms
            self._reported = False

    def stop(self) -> None:
        """Stop the clock: the query is idle, or was ended on purpose."""
        self._since_ms = None

    def completed(self, run: QueryRun, checkpoint_id: int, time_ms: int) -> int | None:
        """Restart the clock at a completed checkpoint; report one that came late, unless already reported.

        Returns:
            How long the checkpoint was owed, in ms; None if the clock stood still.
        """
        self._check(run, time_ms)
        if self._sla and not self._reported:
            self._sla.met.inc()
        owed_ms = None if self._since_ms is None else max(0, time_ms - self._since_ms)
        self._since_ms, self._last_id, self._reported = time_ms, checkpoint_id, False
        return owed_ms

    def tick(self, run: QueryRun, now_ms: int) -> None:
        """Report a checkpoint that is now overdue, allowing a second for records still on their way."""
        self._check(run, now_ms - LATE_RECORDS_MS)

    def _check(self, run: QueryRun, time_ms: int) -> None:
        due_ms = self.due_ms
        if self._sla is None or due_ms is None or time_ms <= due_ms:
            return
        sla_ms, self._reported = self._sla.sla_ms, True
        self._sla.missed.inc()
        event = (
            Event.builder(CLASS_SCOPE, "CheckpointOverdueEvent")
            .set_severity(Severity.WARN)
            .set_body(f"{run.entity.title}: no checkpoint completed within {sla_ms} ms")
            .set_attribute("slaMs", sla_ms)
            .set_attribute("sinceLastMs", sla_ms)
            .set_attribute("lastCheckpointId", self._last_id if self._last_id >= 0 else None)
        )
        occasion = ("overdue", str(self._last_id), str(self._since_ms))
        self._emitter.emit(event, run.entity, run.group, due_ms, occasion)
