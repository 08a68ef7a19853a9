"""What a run read, wrote, and was given: the figures by which two runs of one application are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.diagnosis.past_runs import differs_in_each_run
from spark_events.listeners import spark_records
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.work.work import SUMS, scanned_files_bytes

FIGURES_RECORDS = (
    spark_records.STAGE_TASKS,
    spark_records.STAGE_COMPLETED,
    spark_records.SQL_EXECUTION_END,
    spark_records.ENVIRONMENT_UPDATE,
)
"""What ``RunFigures.take`` has to be called with."""


@dataclass(slots=True)
class RunFigures:
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

    def take(self, record: Mapping[str, Any]) -> None:
        """Called with each record, in order."""
        name = record["Event"]
        if name == spark_records.STAGE_TASKS:
            # Its sums grow; the last record of an attempt has them all.
            self._of_attempts[spark_records.stage_attempt(record)] = record
        elif name == spark_records.STAGE_COMPLETED:
            self._add(self._of_attempts.pop(spark_records.stage_attempt(record["Stage Info"]), {}))
        elif name == spark_records.SQL_EXECUTION_END:
            self.scanned_files_bytes += scanned_files_bytes(record)
        elif name == spark_records.ENVIRONMENT_UPDATE and not self.conf:
            properties = record.get("Spark Properties") or {}
            self.conf = {
                str(key): str(value) for key, value in properties.items() if not differs_in_each_run(key)
            }

    def end(self, timeline: ApplicationTimeline) -> None:
        """Called after the last record."""
        self.counts["jobs"] = timeline.jobs
        self.counts["cores"] = timeline.cores

    def _add(self, record: Mapping[str, Any]) -> None:
        for summed in SUMS:
            self.sums[summed.name] = self.sums.get(summed.name, 0) + int(record.get(summed.field) or 0)
        for name, amount in (
            ("stages", 1),
            ("tasks", int(record.get("Finished") or 0)),
            ("failed tasks", int(record.get("Failed") or 0)),
        ):
            self.counts[name] = self.counts.get(name, 0) + amount
