"""Whether a driver's clock was set back while it ran: no duration across that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.plans.execution import read_stage
from spark_events.listeners import spark_records
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_fields import STAGE_ATTEMPT_ID
from spark_events.listeners.record_types import StageCompletedRecord

_LEAST_MS = 5_000
"""Threads post their records in turn, but for a moment."""
_ENOUGH = 2
"""One record may come late, because its thread had to wait; those that follow a step are all early."""


@dataclass(slots=True)
class ClockSteps(Timeless):
    """Follows the times of a log's records, which stand in the order in which Spark posted them.

    A step within a stage shows by what its tasks ran, which is measured by another clock.

    Args:
        timeline: of the application, which knows its cores.
    """

    _timeline: ApplicationTimeline
    _latest_ms: int = 0
    _early: int = 0
    _back_ms: int = 0

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        names = (
            spark_records.APPLICATION_START,
            spark_records.EXECUTOR_ADDED,
            spark_records.JOB_START,
            spark_records.JOB_END,
            spark_records.STAGE_SUBMITTED,
            spark_records.SQL_EXECUTION_START,
            spark_records.SQL_EXECUTION_END,
            spark_records.APPLICATION_END,
        )
        return {
            **dict.fromkeys(names, self.on_record),
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
        }

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted: its tasks can only have run for as long as it took, on each core.

        That of another attempt than the first has what late tasks of earlier ones did, too.
        """
        info, cores = record["Stage Info"], self._timeline.cores
        if cores and not info.get(STAGE_ATTEMPT_ID):
            stage = read_stage(info, time_ms)
            missing_ms = stage.run_ms // cores - (stage.ended_ms - stage.begun_ms)
            if missing_ms > max(_LEAST_MS, stage.run_ms // cores // 10):
                self._back_ms += missing_ms
                self._latest_ms, self._early = time_ms, 0
                return
        self.on_record(record, time_ms)

    def on_record(self, record: Mapping[str, Any], time_ms: int) -> None:
        """Handle a record that is posted at its own time."""
        if time_ms > self._latest_ms - _LEAST_MS:
            self._latest_ms, self._early = max(self._latest_ms, time_ms), 0
            return
        self._early += 1
        if self._early == _ENOUGH:
            self._back_ms += self._latest_ms - time_ms
            self._latest_ms, self._early = time_ms, 0

    @property
    def said(self) -> str:
        """A sentence about it; empty if the clock was not set back."""
        if not self._back_ms:
            return ""
        return (
            f"the driver's clock was set back by about {duration(self._back_ms)} while it ran: times across "
            "that are wrong, and so are shares and causes that rest on them"
        )
