"""Stage attempts: whether all tasks are running or finished, and failed attempts that are retried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spark_events.api import Event, Failure, JobStatus, MetricGroup
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import outcome_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity, Place, ended_span
from spark_events.listeners.executors.executor_ends import FailedStage
from spark_events.listeners.failures.failures import CAUSED_BY, parse_failure, unless_cancelled, was_cancelled
from spark_events.listeners.listener import Handlers
from spark_events.listeners.long_texts import LONGEST_TITLE
from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    JobEndRecord,
    LateTasksRecord,
    StageCompletedRecord,
    StageSubmittedRecord,
    StageTasksRecord,
)
from spark_events.listeners.settings import AND_STAGES
from spark_events.listeners.spark_records import ALL_RUNNING, THROWN_BY_TASK
from spark_events.listeners.work.job import RunningJob, SparkJobListener
from spark_events.listeners.work.python_work import PythonWork
from spark_events.listeners.work.work import StageWork, late_growth

_MOST_ENDED = 1_000
CLASS_SCOPE = "spark_events.listeners.AllSubtasksStatus"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A running stage attempt; its job is None if unknown."""

    submitted_ms: int
    job: RunningJob | None
    of_query: Mapping[str, str]
    work: StageWork
    name: str = ""


class _FailedAttempt(NamedTuple):
    """A failed stage attempt, which may be retried."""

    number: int
    time_ms: int
    failed: FailedStage
    of_query: Mapping[str, str]


class StageListener:
    """Follows an application's stages; forgets those that end, failed ones only when their job ends."""

    def __init__(self, context: ListenerContext, jobs: SparkJobListener) -> None:
        self._context = context
        self._jobs = jobs
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._failed: dict[int, _FailedAttempt] = {}
        self._ended: dict[tuple[int, int], None] = {}  # the latest attempts that have ended
        # By the attempt: what Spark's record of its failure, which follows, does not say.
        self._thrown: dict[tuple[int, int], Mapping[str, str | None]] = {}
        self._python = PythonWork(context)
        self._series = PassingSeries(context.settings.min_job_duration_ms, context.settings.retention_ms)

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.STAGE_SUBMITTED: self.on_submitted,
            spark_records.STAGE_TASKS: self.on_tasks,
            spark_records.LATE_TASKS: self.on_late_tasks,
            spark_records.STAGE_COMPLETED: self.on_completed,
            spark_records.JOB_END: self.on_job_end,
            spark_records.APPLICATION_END: self.on_application_end,
        }

    def on_submitted(self, record: StageSubmittedRecord, time_ms: int) -> None:
        """Handle StageSubmitted; after a failed attempt, it shows that Spark is retrying."""
        info = record["Stage Info"]
        key = stage, attempt = _key(info)
        job = self._jobs.of_stage(stage)
        of_query = job.of_query if job else {}
        work = StageWork(int(info.get("Number of Tasks") or 0))
        name = str(info.get("Stage Name") or "")[:LONGEST_TITLE]
        self._attempts[key] = _Attempt(time_ms, job, of_query, work, name)
        self._context.work.submitted(key, work)
        self._context.all_subtasks.changed(key, of_query, False, time_ms)
        if job is not None:
            job.work.submitted(work)
        self._series.begun(key, time_ms, lambda: self._show(key, of_query, work))
        failed = self._failed.pop(stage, None)
        if failed is not None and failed.number < attempt:
            self._report_retried(stage, failed)

    def on_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted; a failure is kept until it is clear whether the stage is retried."""
        info = record["Stage Info"]
        key = stage, number = _key(info)
        reason = info.get("Failure Reason")
        if key in self._ended:  # Spark ends a barrier stage twice if its job fails
            return
        self._note_end(key)
        attempt = self._attempts.pop(key, None)
        is_known = attempt is not None
        if attempt is None:  # it began before we listened
            job = self._jobs.of_stage(stage)
            begun_ms = int(info.get("Submission Time") or time_ms)
            work = StageWork(int(info.get("Number of Tasks") or 0))
            attempt = _Attempt(begun_ms, job, job.of_query if job else {}, work)
        failed = self._failure(key, str(reason), attempt.submitted_ms) if reason else None
        failure = failed.failure if failed else None
        status = _status(failure)
        if is_known and attempt.job is not None:
            attempt.job.work.completed(status)
        attempt.work.active = 0  # tasks of a failed attempt may run on for a while, in vain
        self._context.work.completed(key, status)
        self._python.stage_completed(info, attempt.of_query)
        self._context.all_subtasks.completed(key, attempt.of_query, time_ms)
        self._series.ended(key, time_ms)
        self._span(key, attempt, info, time_ms, unless_cancelled(failure))
        if failed is not None:
            self._failed[stage] = _FailedAttempt(number, time_ms, failed, attempt.of_query)
            self._jobs.stage_failed(stage, failed)

    def on_job_end(self, record: JobEndRecord, time_ms: int) -> None:
        """Handle JobEnd: failed stages that belong to no other job will not be retried."""
        ended = int(record["Job ID"])
        for stage in list(self._failed):
            if all(job.id == ended for job in self._context.run.jobs_of(stage)):
                del self._failed[stage]

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """End the attempts that still ran when the application ended."""
        outcome = outcome_of(record, self._context.settings.stop_signals)
        for key, attempt in list(self._attempts.items()):
            del self._attempts[key]
            attempt.work.active = 0
            self._context.work.completed(key, outcome.of_what_ran)
            self._context.all_subtasks.completed(key, attempt.of_query, time_ms)
            self._series.ended(key, time_ms)
            self._span(key, attempt, {}, time_ms, outcome.failure)
        self._failed.clear()

    def on_tasks(self, record: StageTasksRecord, time_ms: int) -> None:
        """Handle the bridge's record of the state of an attempt's tasks; it has a status if that changed."""
        key = stage, number = int(record["Stage ID"]), int(record["Stage Attempt ID"])
        attempt = self._attempts.get(key)
        if attempt is not None:
            self._context.work.grow(attempt.work.take(record))
        if thrown := record.get(THROWN_BY_TASK):
            self._thrown[key] = thrown
        status = record.get("Status")
        if not status:
            return
        of_query = attempt.of_query if attempt else {}
        self._context.all_subtasks.changed(key, of_query, status == ALL_RUNNING, time_ms)
        entity = self._entity(key, of_query)
        waited = max(0, time_ms - attempt.submitted_ms) if attempt else None
        event = (
            Event.builder(CLASS_SCOPE, "AllSubtasksStatusChangeEvent")
            .set_routine()
            .set_body(f"{entity.title}: {status}")
            .set_attribute("status", status)
            .set_attribute("numTasks", int(record["Number of Tasks"]))
            .set_attribute("waitMs", waited)
        )
        group = self._context.scopes.stage(stage, number, of_query)
        self._context.emitter.emit(event, entity, group, time_ms, (status, str(record["Change"])), status)

    def on_late_tasks(self, record: LateTasksRecord, time_ms: int) -> None:
        """Handle what tasks have taken that ended after their stage, which was cancelled or has failed."""
        self._context.work.grow(late_growth(record))

    def place_of(self, stage: int) -> Place | None:
        """Return the place of the span of a running stage; None if it has none."""
        for key, attempt in self._attempts.items():
            if key[0] == stage:
                return self._place(key, attempt)
        return None

    def runs(self, stage: int) -> bool:
        """Return whether an attempt of a stage is known to run."""
        return any(key[0] == stage for key in self._attempts)

    def place_of_first_attempt(self, stage: int) -> Place:
        """Return the place of the span of a stage of no query that has not begun yet, or that has ended.

        What tasks report may come before Spark's own record of their stage.
        """
        traces = self._context.traces
        return traces.below(traces.application, "Stage", self._entity((stage, 0), {}))

    def tick(self, now_ms: int) -> None:
        """Add the series of stages that have run for a while, and remove those that ended a while ago."""
        self._series.tick(now_ms)

    def _note_end(self, key: tuple[int, int]) -> None:
        self._ended[key] = None
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    def _failure(self, key: tuple[int, int], reason: str, begun_ms: int) -> FailedStage:
        thrown = self._thrown.pop(key, {})
        # Since Spark 4, the stage's reason is what the exception says; what caused it is with the task.
        causes = thrown.get("Causes") if CAUSED_BY not in reason else None
        failure = parse_failure(reason + (causes or ""))
        if failure.exception_type is None:
            failure = replace(failure, exception_type=thrown.get("Class"))
        return FailedStage(failure, thrown.get("Fetched From"), begun_ms)

    def _report_retried(self, stage: int, failed: _FailedAttempt) -> None:
        self._context.failures.report(
            failed.failed.failure,
            self._entity((stage, failed.number), failed.of_query),
            self._context.scopes.stage(stage, failed.number, failed.of_query),
            failed.time_ms,
            can_restart=True,
            is_global=False,
            stage=failed.failed,
        )

    def _span(
        self,
        key: tuple[int, int],
        attempt: _Attempt,
        info: Mapping[str, Any],
        end_ms: int,
        failure: Failure | None,
    ) -> None:
        place = self._place(key, attempt)
        if place is None:
            return
        span = (
            ended_span("Stage", attempt.submitted_ms, end_ms, failure)
            .set_attribute("stageName", str(info.get("Stage Name") or attempt.name)[:LONGEST_TITLE])
            .set_attribute("numTasks", attempt.work.tasks)
            .set_attribute("finishedTasks", attempt.work.finished)
            .set_attribute("failedTasks", attempt.work.failed)
        )
        for name, value in (*attempt.work.sums.items(), *attempt.work.spreads.items()):
            span.set_attribute(name, value)
        group = self._context.scopes.stage(*key, attempt.of_query)
        self._context.traces.report(span, place, self._entity(key, attempt.of_query), group)

    def _place(self, key: tuple[int, int], attempt: _Attempt) -> Place | None:
        parent = attempt.job.place if attempt.job else None
        if parent is None or (attempt.of_query and not self._context.settings.detailed(AND_STAGES)):
            return None
        return self._context.traces.below(parent, "Stage", self._entity(key, attempt.of_query))

    def _show(self, key: tuple[int, int], of_query: Mapping[str, str], work: StageWork) -> MetricGroup:
        group = self._context.scopes.stage_series(*key, of_query)
        work.register(group)
        return group

    def _entity(self, key: tuple[int, int], of_query: Mapping[str, str]) -> Entity:
        stage, attempt = key
        query_name = of_query.get("query_name", "")
        return Entity("stage", f"{stage}.{attempt}", f"stage {stage}.{attempt}", query_name)


def _status(failure: Failure | None) -> JobStatus:
    if failure is None:
        return JobStatus.FINISHED
    return JobStatus.CANCELED if was_cancelled(failure) else JobStatus.FAILED


def _key(info: Mapping[str, Any]) -> tuple[int, int]:
    return int(info["Stage ID"]), int(info.get("Stage Attempt ID", 0))
