"""Stage attempts: all tasks running or finished, and attempts that failed and are tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import Event, Failure
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_failure

CLASS_SCOPE = "spark_events.listeners.AllSubtasksStatus"
STAGE_TASKS = "SparkEventsStageTasks"
"""The bridge's own record of how a stage attempt's tasks stand."""


class StageListener:
    """Follows the stages of one application; ended ones are forgotten, failed ones until their job ends."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._submitted_ms: dict[tuple[int, int], int] = {}
        self._failed: dict[int, tuple[int, int, Failure]] = {}
        self._of_query: dict[int, Mapping[str, str]] = {}
        self._stages_of_job: dict[int, list[int]] = {}

    def on_job_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Take JobStart, which tells whose stages these are."""
        stages = [int(stage) for stage in record.get("Stage IDs") or ()]
        self._stages_of_job[int(record["Job ID"])] = stages
        query = self._context.query_of_job(record)
        if query:
            self._of_query.update(dict.fromkeys(stages, query))

    def on_job_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Take JobEnd: what failed now is the job's failure and will not be tried again."""
        for stage in self._stages_of_job.pop(int(record["Job ID"]), ()):
            self._failed.pop(stage, None)
            self._of_query.pop(stage, None)

    def on_submitted(self, record: dict[str, Any], time_ms: int) -> None:
        """Take StageSubmitted; one that follows a failed attempt shows that Spark tries again."""
        info = record["Stage Info"]
        stage, attempt = int(info["Stage ID"]), int(info.get("Stage Attempt ID", 0))
        self._submitted_ms[stage, attempt] = time_ms
        failed = self._failed.pop(stage, None)
        if failed is not None and failed[0] < attempt:
            old_attempt, failed_ms, failure = failed
            self._context.failures.report(
                failure,
                self._entity(stage, old_attempt),
                self._context.scopes.stage(stage, old_attempt, self._of_query.get(stage, {})),
                failed_ms,
                can_restart=True,
                is_global=False,
            )

    def on_completed(self, record: dict[str, Any], time_ms: int) -> None:
        """Take StageCompleted; a failure is kept until it shows whether the stage is tried again."""
        info = record["Stage Info"]
        stage, attempt = int(info["Stage ID"]), int(info.get("Stage Attempt ID", 0))
        self._submitted_ms.pop((stage, attempt), None)
        reason = info.get("Failure Reason")
        if reason:
            self._failed[stage] = (attempt, time_ms, parse_failure(reason))

    def on_tasks(self, record: dict[str, Any], time_ms: int) -> None:
        """Take the bridge's record of a change between all running or finished, and not all."""
        status = record.get("Status")
        if not status:
            return
        stage, attempt = int(record["Stage ID"]), int(record["Stage Attempt ID"])
        submitted_ms = self._submitted_ms.get((stage, attempt))
        entity = self._entity(stage, attempt)
        event = (
            Event.builder(CLASS_SCOPE, "AllSubtasksStatusChangeEvent")
            .set_routine()
            .set_body(f"{entity.title}: {status}")
            .set_attribute("status", status)
            .set_attribute("stageId", stage)
            .set_attribute("stageAttempt", attempt)
            .set_attribute("numTasks", int(record["Number of Tasks"]))
            .set_attribute("waitMs", None if submitted_ms is None else max(0, time_ms - submitted_ms))
        )
        group = self._context.scopes.stage(stage, attempt, self._of_query.get(stage, {}))
        self._context.emitter.emit(event, entity, group, time_ms, (status, str(record["Change"])), status)

    def _entity(self, stage: int, attempt: int) -> Entity:
        query_name = self._of_query.get(stage, {}).get("query_name", "")
        return Entity("stage", f"{stage}.{attempt}", f"stage {stage}.{attempt}", query_name)
