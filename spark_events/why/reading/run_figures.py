"""What a run read, wrote, and was given: the figures by which two runs of one application are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.diagnosis.earlier_runs.usual import differs_in_each_run
from spark_events.listeners import spark_records
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_types import (
    EnvironmentUpdateRecord,
    LateTasksRecord,
    SQLExecutionEndRecord,
    StageCompletedRecord,
    StageTasksRecord,
)
from spark_events.listeners.work.work import SUMS, scanned_files_bytes


@dataclass(slots=True)
class RunFigures(Timeless):
    """What is known of a run, besides where its time went.

    Attributes:
        spark_version: empty if unknown.
        conf: Spark's settings, but for those that differ in each run.
        sums: over all tasks, by the names of ``work.SUMS``; times in ms and ns, sizes in bytes.
        counts: ``jobs``, ``stages``, ``tasks``, ``failed tasks`` and ``cores`` (the most at once).
        scanned_files_bytes: the size of the files that its SQL executions read, by their plans.
    """

    spark_version: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    scanned_files_bytes: int = 0
    _of_attempts: dict[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.ENVIRONMENT_UPDATE: self.on_environment,
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.STAGE_TASKS: self.on_stage_tasks,
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
            spark_records.LATE_TASKS: self.on_late_tasks,
        }

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate, of which the first has what the application was started with."""
        if not self.conf:
            properties = record.get("Spark Properties") or {}
            self.conf = {
                str(key): str(value) for key, value in properties.items() if not differs_in_each_run(key)
            }

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd."""
        self.scanned_files_bytes += scanned_files_bytes(record)

    def on_stage_tasks(self, record: StageTasksRecord, time_ms: int) -> None:
        """Handle what a stage's tasks have done so far; the last record of an attempt has it all."""
        self._of_attempts[spark_records.stage_attempt(record)] = record

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        self._add(self._of_attempts.pop(spark_records.stage_attempt(record["Stage Info"]), {}))
        self._count("stages", 1)

    def on_late_tasks(self, record: LateTasksRecord, time_ms: int) -> None:
        """Handle what tasks have taken that ended after their stage, which was cancelled or has failed."""
        self._add(record)

    def end(self, timeline: ApplicationTimeline) -> None:
        """Called after the last record."""
        self.counts["jobs"] = timeline.jobs
        self.counts["cores"] = timeline.cores

    def _add(self, record: Mapping[str, Any]) -> None:
        for summed in SUMS:
            self.sums[summed.name] = self.sums.get(summed.name, 0) + int(record.get(summed.field) or 0)
        self._count("tasks", int(record.get("Finished") or 0))
        self._count("failed tasks", int(record.get("Failed") or 0))

    def _count(self, name: str, amount: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + amount
