"""Compares what an application does with its earlier runs, and keeps this run for those after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import JobStatus
from spark_events.api.toolkit.daemon_executor import DaemonExecutor, call_within
from spark_events.diagnosis.earlier_runs.past_runs import PastRun, Work, digests
from spark_events.diagnosis.earlier_runs.regression import is_regression, late_run, work_regression
from spark_events.diagnosis.earlier_runs.run_folder import RunFolder
from spark_events.diagnosis.earlier_runs.usual import differs_in_each_run, usual
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import misses_reads
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import ApplicationListener
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.issues.issue_events import IssueEvents, Subject
from spark_events.listeners.listener import Handlers, Record, early, late
from spark_events.listeners.long_texts import LONGEST_TITLE
from spark_events.listeners.queries.micro_batch import parse_micro_batch
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    ApplicationStartRecord,
    EnvironmentUpdateRecord,
    JobEndRecord,
    JobStartRecord,
    QueryStartedRecord,
    SQLExecutionEndRecord,
    SQLExecutionStartRecord,
    StageCompletedRecord,
    StageTasksRecord,
)
from spark_events.listeners.spark_records import stage_attempt
from spark_events.listeners.work.work import SUMS
from spark_events.runtime.foreign_errors import describe, text_of
from spark_events.runtime.log_once import logger

_MOST_WORKS = 1_000
_MOST_STAGES = 100_000
_READ_WAIT_S = 10
_KEY = "spark.events.issue.regression.dir"
_CALL_SITE = re.compile(r" at \S+:\d+$")


@dataclass(slots=True)
class _Running:
    """An SQL execution, or a job of none, that runs."""

    entity: Entity
    attributes: dict[str, str]
    begun_ms: int
    work: Work
    stages: list[int] = field(default_factory=list)


class RegressionListener:
    """Adds up the work of one application by name and plan, and reports what took much longer than before.

    Streaming queries are left out, and so are applications that have one: how long they run says nothing.
    Their micro-batches are compared by ``batch_durations``.

    Args:
        context: what the listeners share.
        events: reports issues.
        application: tells how it ended.
        cores: the cores of all executors that live.
        spark_version: of this run.
    """

    def __init__(
        self,
        context: ListenerContext,
        events: IssueEvents,
        application: ApplicationListener,
        cores: Callable[[], int],
        spark_version: str,
    ) -> None:
        self._context = context
        self._application = application
        self._events = events
        self._cores = cores
        self._thresholds = context.settings.thresholds
        of_run = context.emitter.application
        self._run = PastRun(f"{of_run.id}{of_run.attempt_id}", 0, spark_version)
        self._past: Future[list[PastRun]] = Future()
        self._executions: dict[int, _Running] = {}
        self._jobs: dict[int, _Running] = {}
        self._stages: dict[int, _Running] = {}
        self._measured: dict[tuple[int, int], StageTasksRecord] = {}
        self._works: dict[tuple[str, str], Work] = {}
        self._told: set[tuple[str, str]] = set()
        self._told_ms = 0
        self._warned = self._has_queries = False

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.APPLICATION_START: late(self.on_application_start),
            spark_records.ENVIRONMENT_UPDATE: late(self.on_environment),
            spark_records.QUERY_STARTED: late(self.on_query_started),
            spark_records.SQL_EXECUTION_START: late(self.on_execution_start),
            spark_records.SQL_EXECUTION_END: late(self.on_execution_end),
            spark_records.JOB_START: late(self.on_job_start),
            spark_records.JOB_END: late(self.on_job_end),
            spark_records.STAGE_TASKS: late(self.on_stage_tasks),
            spark_records.STAGE_COMPLETED: late(self.on_stage_completed),
            spark_records.APPLICATION_END: (early(self.on_application_end), late(self.keep)),
        }

    def on_application_start(self, record: ApplicationStartRecord, time_ms: int) -> None:
        """Handle ApplicationStart: read the earlier runs, on a thread of its own."""
        self._run.start_ms = time_ms
        executor = DaemonExecutor(1, "spark-events-past-runs")
        self._past = executor.submit(lambda: self._folder().read(time_ms, self._run.app_id))
        executor.shutdown(wait=False)  # its thread ends when this is done

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate, of which the first has what the application was started with."""
        properties = record.get("Spark Properties") or {}
        if not self._run.settings:
            self._run.settings = digests(
                {key: value for key, value in properties.items() if not differs_in_each_run(str(key))}
            )

    def on_query_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted."""
        self._has_queries = True

    def on_execution_start(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        """Handle SQLExecutionStart."""
        description, execution = str(record.get("description") or ""), int(record["executionId"])
        if parse_micro_batch(description) is None and len(self._executions) < _MOST_WORKS:
            name = _name(description)
            entity = Entity("sql_execution", str(execution), f"SQL execution {execution} ({name})")
            work = Work(name, plan=str(record.get("Plan Shape") or ""))
            self._executions[execution] = _Running(
                entity, {"sql_execution_id": str(execution)}, time_ms, work
            )

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd, which comes after the ends of its jobs."""
        running = self._executions.pop(int(record["executionId"]), None)
        if running is not None:
            self._ended(running, time_ms, not record.get("errorMessage"))

    def on_job_start(self, record: JobStartRecord, time_ms: int) -> None:
        """Handle JobStart."""
        job = self._context.run.jobs[int(record["Job ID"])]
        if job.query:
            return
        running = self._executions.get(job.execution) if job.execution is not None else None
        if running is None:
            name = _name(job.description or job.final_stage)
            entity = Entity("job", str(job.id), f"job {job.id} ({name})")
            running = self._jobs[job.id] = _Running(entity, {"job_id": str(job.id)}, time_ms, Work(name))
        for stage in job.stages:
            if len(self._stages) < _MOST_STAGES:
                self._stages.setdefault(stage, running)
                running.stages.append(stage)

    def on_job_end(self, record: JobEndRecord, time_ms: int) -> None:
        """Handle JobEnd."""
        running = self._jobs.pop(int(record["Job ID"]), None)
        if running is not None:
            succeeded = (record.get("Job Result") or {}).get("Result") == "JobSucceeded"
            self._ended(running, time_ms, succeeded)

    def on_stage_tasks(self, record: StageTasksRecord, time_ms: int) -> None:
        """Handle what a stage's tasks have done so far; the last record of an attempt has it all."""
        if int(record["Stage ID"]) in self._stages:
            self._measured[stage_attempt(record)] = record

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        info = record["Stage Info"]
        measured, running = (
            self._measured.pop(stage_attempt(info), None),
            self._stages.get(int(info["Stage ID"])),
        )
        if measured is None or running is None:
            return
        sums: Mapping[str, Any] = measured
        figures = {summed.name: int(sums.get(summed.field) or 0) for summed in SUMS}
        if misses_reads(info):
            figures["inputBytes"] = 0
        figures["tasks"] = int(measured.get("Finished") or 0)
        figures["failedTasks"] = int(measured.get("Failed") or 0)
        figures["cores"] = self._cores()
        running.work.add(figures)
        self._run.whole.add(figures)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd: report a slow run, unless what was reported already explains half of it."""
        self._run.whole.duration_ms = max(0, time_ms - self._run.start_ms)
        if self._has_queries:
            return
        issue = self._compared(self._run.whole, [(run, run.whole) for run in self._earlier_runs()])
        if issue is not None and 2 * self._told_ms < (issue.lost_ms or 0):
            self._events.report(issue, self._of_application(time_ms), time_ms)

    def keep(self, record: Record, time_ms: int) -> None:
        """Handle ApplicationEnd, once it is told: keep a run that finished for those after it."""
        if self._has_queries or self._application.tracker.status is not JobStatus.FINISHED:
            return
        self._run.works = sorted(self._works.values(), key=lambda work: -work.duration_ms)[:_MOST_WORKS]
        try:
            within_s = self._context.settings.close_timeout_ms / 1_000
            call_within(within_s, lambda: self._folder().write(self._run))
        except Exception as error:  # each file system has errors of its own
            message = "%s: this run is not kept, so later runs are not compared with it: %s"
            logger.warning(message, _KEY, _described(error))

    def tick(self, now_ms: int) -> None:
        """Warn, once, of a run that takes much longer than earlier ones, while it runs."""
        if self._warned or self._has_queries or not self._past.done():
            return
        earlier = [run.whole.duration_ms for run in self._earlier_runs()]
        lasted_ms = now_ms - self._run.start_ms
        if earlier and is_regression(lasted_ms, before := usual(earlier), self._thresholds):
            issue = late_run(lasted_ms, before)
            if self._events.matters(issue, lasted_ms):
                self._warned = True
                self._events.warn(issue, self._of_application(now_ms), now_ms)

    # -----------------------------------------------------------------------------------------------------

    def _ended(self, running: _Running, time_ms: int, succeeded: bool) -> None:
        for stage in running.stages:
            self._stages.pop(stage, None)
        work = self._added(running.work, max(0, time_ms - running.begun_ms)) if succeeded else None
        if work is None:
            return
        key = work.name, work.plan
        past = [(run, same) for run in self._earlier_runs() if (same := run.like(work)) is not None]
        issue = self._compared(work, past) if key not in self._told else None
        if issue is None:
            return
        self._told.add(key)
        self._told_ms += issue.lost_ms or 0
        scopes, entity = self._context.scopes, running.entity
        group = (
            scopes.job(int(entity.id), {}) if entity.kind == "job" else scopes.sql_execution(int(entity.id))
        )
        whole = f"what it did in {work.times} times" if work.times > 1 else "its time"
        subject = Subject(entity, group, whole, work.duration_ms, {**running.attributes, "times": work.times})
        self._events.report(issue, subject, time_ms)

    def _added(self, part: Work, lasted_ms: int) -> Work | None:
        """Return all work of a part's name and plan, with the part; None if there is too much to follow."""
        key = part.name, part.plan
        if key not in self._works:
            if len(self._works) >= _MOST_WORKS:
                return None
            number = sum(name == part.name for name, _ in self._works)
            self._works[key] = Work(part.name, number, part.plan)
        work = self._works[key]
        work.times += 1
        work.duration_ms += lasted_ms
        work.add(part.figures)
        return work

    def _compared(self, work: Work, past: list[tuple[PastRun, Work]]) -> Issue | None:
        issue = work_regression(work, self._run, past, self._thresholds)
        return issue if issue is not None and self._events.matters(issue, work.duration_ms) else None

    def _earlier_runs(self) -> list[PastRun]:
        """Return the earlier runs; none, said once, if they cannot be read in time."""
        wait([self._past], _READ_WAIT_S)
        reason = (
            self._past.exception()
            if self._past.done()
            else TimeoutError(f"no answer within {_READ_WAIT_S} s")
        )
        if reason is None:
            return self._past.result()
        logger.warning("%s: this run is compared with none: %s", _KEY, _described(reason))
        self._past = Future()
        self._past.set_result([])
        return []

    def _folder(self) -> RunFolder:
        name = self._context.emitter.application.name
        return RunFolder(self._thresholds.past_dir or "", name, self._thresholds.past_runs)

    def _of_application(self, time_ms: int) -> Subject:
        name = self._context.emitter.application.name
        return Subject(
            Entity("application", "", f"application {name!r}"),
            self._context.scopes.application_run(),
            "its time",
            max(0, time_ms - self._run.start_ms),
            {},
        )


def _name(description: str) -> str:
    """Return a name that is the same in each run: a call site, or a description without its numbers."""
    name = description[:LONGEST_TITLE]
    return name if _CALL_SITE.search(name) else re.sub(r"\d+", "#", name)


def _described(error: BaseException) -> str:
    """Return why a folder cannot be used: errors of the system say so themselves, others with their type."""
    return text_of(error) if isinstance(error, OSError) else describe(error)
