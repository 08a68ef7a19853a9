"""Spark jobs, one for each action: RUNNING, and FINISHED, FAILED or CANCELED."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spark_events.api import Failure, Gauge, JobStatus, MetricGroup
from spark_events.api.event import now_ms
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import outcome_of
from spark_events.listeners.application.job_status import JobStatusTracker
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity, Place, ended_span
from spark_events.listeners.executors.executor_ends import FailedStage
from spark_events.listeners.failures.failures import (
    CAUSED_BY,
    parse_json_exception,
    said_before_frames,
    thrown_by_task,
    was_cancelled,
)
from spark_events.listeners.listener import Handlers
from spark_events.listeners.passing_series import PassingSeries
from spark_events.listeners.record_types import ApplicationEndRecord, JobEndRecord, JobStartRecord
from spark_events.listeners.run import Job
from spark_events.listeners.work.work import JobWork

PlaceOfJob = Callable[[Job], Place | None]


@dataclass(slots=True)
class RunningJob:
    """A job that runs.

    Attributes:
        of_query: names the streaming query that it belongs to; empty if none.
        place: of its span; None if it is to have none.
        failed_stage: the one that failed last, if any.
    """

    model: Job
    tracker: JobStatusTracker
    of_query: Mapping[str, str]
    place: Place | None
    start_ms: int
    work: JobWork
    failed_stage: FailedStage | None = None


class SparkJobListener:
    """Follows the jobs of one application; ended ones are forgotten.

    Args:
        context: what the listeners share.
        parent_of: returns the parent of a job's span, or None.
    """

    def __init__(self, context: ListenerContext, parent_of: PlaceOfJob) -> None:
        self._context = context
        self._parent_of = parent_of
        self._running: dict[int, RunningJob] = {}
        self._series = PassingSeries(context.settings.min_job_duration_ms, context.settings.retention_ms)
        active = Gauge(lambda: len(self._running), "{job}", "Running Spark jobs.")
        context.scopes.application().register("activeJobs", active)

    def of_stage(self, stage: int) -> RunningJob | None:
        """Return the job that a stage belongs to; if there are several, the one that began first."""
        job = self._context.run.job_of(stage)
        return self._running.get(job.id) if job is not None else None

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.JOB_START: self.on_start,
            spark_records.JOB_END: self.on_end,
            spark_records.APPLICATION_END: self.on_application_end,
        }

    def on_start(self, record: JobStartRecord, time_ms: int) -> None:
        """Handle JobStart; a job that is already known was found running when attaching."""
        job_id = int(record["Job ID"])
        if job_id in self._running:
            return
        begun = self._context.run.jobs[job_id]
        group = self._context.scopes.job(job_id, begun.query)
        entity = Entity("job", str(job_id), f"job {job_id}", begun.query.get("query_name", ""))
        tracker = JobStatusTracker(self._context.emitter, entity, group)
        parent = self._parent_of(begun)
        place = self._context.traces.below(parent, "Job", entity) if parent else None
        work = JobWork(len(begun.stages), begun.tasks)
        job = RunningJob(begun, tracker, begun.query, place, time_ms, work)
        self._running[job_id] = job
        self._series.begun(job_id, time_ms, lambda: self._show(job_id, job))
        tracker.change(JobStatus.RUNNING, time_ms)

    def stage_failed(self, stage: int, failed: FailedStage) -> None:
        """Called when an attempt of a stage has failed, which may fail its jobs."""
        for job in self._context.run.jobs_of(stage):
            self._running[job.id].failed_stage = failed

    def on_end(self, record: JobEndRecord, time_ms: int) -> None:
        """Handle JobEnd."""
        job_id = int(record["Job ID"])
        job = self._running.pop(job_id, None)
        if job is None:
            return
        self._series.ended(job_id, time_ms)
        result = record.get("Job Result") or {}
        failure = None
        status = JobStatus.FINISHED
        if result.get("Result") != "JobSucceeded":
            failure = _completed(parse_json_exception(result.get("Exception") or {}), job.failed_stage)
            status = JobStatus.CANCELED if was_cancelled(failure) else JobStatus.FAILED
        self._context.work.count(f"{status.value.lower()}Jobs")
        if failure is not None and status is JobStatus.FAILED:
            self._report(job, failure, time_ms)
        job.tracker.change(status, time_ms)
        self._span(job, time_ms, status, failure)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """End the jobs that still ran when the application ended; the application says why."""
        outcome = outcome_of(record, self._context.settings.stop_signals)
        for job_id, job in list(self._running.items()):
            del self._running[job_id]
            self._series.ended(job_id, time_ms)
            self._context.work.count(f"{outcome.of_what_ran.value.lower()}Jobs")
            job.tracker.change(outcome.of_what_ran, time_ms)
            self._span(job, time_ms, outcome.of_what_ran, outcome.failure)

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._running)

    def tick(self, now_ms: int) -> None:
        """Add the series of jobs that have run for a while; remove those that ended a while ago."""
        self._series.tick(now_ms)

    def _report(self, job: RunningJob, failure: Failure, time_ms: int) -> None:
        self._context.failures.report(
            failure,
            job.tracker.entity,
            job.tracker.group,
            time_ms,
            can_restart=False,
            is_global=not thrown_by_task(failure),
            code=job.model.action_until(time_ms),
            stage=job.failed_stage,
        )

    def _span(self, job: RunningJob, end_ms: int, status: JobStatus, failure: Failure | None) -> None:
        if job.place is None:
            return
        thrown = failure if status is JobStatus.FAILED else None
        span = ended_span("Job", job.start_ms, end_ms, thrown).set_attribute("jobStatus", status.value)
        self._context.traces.report(span, job.place, job.tracker.entity, job.tracker.group)

    def _show(self, job_id: int, job: RunningJob) -> MetricGroup:
        group = self._context.scopes.job_series(job_id, job.of_query)

        def uptime_ms() -> int:
            return now_ms() - job.start_ms if job.tracker.status is JobStatus.RUNNING else 0

        described = "How long the job has been running; 0 after its end."
        group.register("uptime", Gauge(uptime_ms, "ms", described))
        job.work.register(group)
        return group


def _completed(failure: Failure, failed: FailedStage | None) -> Failure:
    """Return a failure with the class and the cause that a task told.

    Spark 4 passes on no more than what its exception says.
    """
    own, of_stage = failure.stacktrace or "", (failed.failure.stacktrace or "") if failed else ""
    if failed is None or said_before_frames(own) != said_before_frames(of_stage):
        return failure
    _, caused_by, causes = of_stage.partition(CAUSED_BY)
    stacktrace = own if CAUSED_BY in own else own + caused_by + causes
    return replace(failed.failure, stacktrace=stacktrace, code=failure.code or failed.failure.code)
