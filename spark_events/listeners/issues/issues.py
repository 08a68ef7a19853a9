"""Diagnoses: which stages are slow, why, and what that costs their job or streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import (
    TasksMeasured,
    misses_reads,
    python_ms,
    read_tasks_measured,
    without_reads,
)
from spark_events.diagnosis.small_files import small_files
from spark_events.diagnosis.stage_rules import EndedStage, lagging_task, stage_issues
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.issues.application_issues import ApplicationIssues
from spark_events.listeners.issues.issue_events import IssueEvents, Subject
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.long_texts import LONGEST_TITLE
from spark_events.listeners.run import Job
from spark_events.listeners.spark_records import stage_attempt

_MOST_OF_ONE = 100
"""How many issues one job may have, the costliest, and how many one run of a query."""


@dataclass(frozen=True, slots=True)
class _StageIssue:
    """An issue of a stage whose job or query has not reported of it yet."""

    issue: Issue
    key: tuple[int, int]
    name: str


@dataclass(slots=True)
class _Job:
    """What was found about a job that runs; ``warned`` has the stages of which a warning was given."""

    run: Job
    issues: list[_StageIssue] = field(default_factory=list)
    warned: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class _Stage:
    """A stage attempt that runs; its job is None if unknown."""

    job: _Job | None
    name: str
    begun_ms: int
    measured: TasksMeasured | None = None


@dataclass(slots=True)
class _Query:
    """A run of a streaming query: how long its jobs took, and what they lost, by cause and stage name."""

    query_id: str
    name: str
    busy_ms: int = 0
    lost: dict[tuple[str, str], Issue] = field(default_factory=dict)
    times: dict[tuple[str, str], int] = field(default_factory=dict)
    reported: set[tuple[str, str]] = field(default_factory=set)


class IssueListener(Timeless):
    """Follows the stages of one application, and reports what makes them slow.

    What a job loses is reported at its end. A micro-batch is short, so what a streaming query loses is added
    up, and reported when it is enough.
    """

    def __init__(self, context: ListenerContext, events: IssueEvents) -> None:
        self._context = context
        self._thresholds = context.settings.thresholds
        # A micro-batch may lose too little for a limit, and all of them enough.
        self._of_batches = replace(self._thresholds, min_bytes=1)
        self._events = events
        self._application = ApplicationIssues(context, events)
        self._jobs: dict[int, _Job] = {}
        self._stages: dict[tuple[int, int], _Stage] = {}
        self._queries: dict[str, _Query] = {}

    @property
    def application(self) -> ApplicationIssues:
        """What is about the application as a whole."""
        return self._application

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.QUERY_STARTED: self.on_query_started,
            spark_records.QUERY_TERMINATED: early(self.on_query_terminated),
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.JOB_START: early(self.on_job_start),
            spark_records.JOB_END: early(self.on_job_end),
            spark_records.STAGE_SUBMITTED: self.on_stage_submitted,
            spark_records.STAGE_TASKS: self.on_stage_tasks,
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
        }

    def on_query_started(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle QueryStarted."""
        run_id = str(record["runId"])
        name = self._context.run.query_of(run_id).get("query_name", "")
        self._queries.setdefault(run_id, _Query(str(record["id"]), name))

    def on_query_terminated(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle QueryTerminated."""
        self._queries.pop(str(record["runId"]), None)

    def on_execution_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle SQLExecutionEnd, which comes after the ends of its jobs."""
        number = int(record["executionId"])
        execution = self._context.run.executions.get(number)
        if execution is None or execution.of_batch:
            return
        lasted_ms = max(0, time_ms - execution.begun_ms)
        for issue in small_files(record.get("Files") or {}, self._thresholds):
            if self._events.matters(issue, lasted_ms):
                subject = Subject(
                    Entity("sql_execution", str(number), f"SQL execution {number}"),
                    self._context.scopes.sql_execution(number),
                    "its time",
                    lasted_ms,
                    {"sqlExecutionId": number, "description": self._tellable(execution.description)},
                )
                self._events.report(issue, subject, time_ms)

    def on_job_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle JobStart."""
        job = self._context.run.jobs[int(record["Job ID"])]
        self._jobs[job.id] = _Job(job)

    def on_stage_submitted(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle StageSubmitted."""
        info = record["Stage Info"]
        job = self._context.run.job_of(int(info["Stage ID"]))
        name = str(info.get("Stage Name") or "")[:LONGEST_TITLE]
        self._stages[stage_attempt(info)] = _Stage(self._jobs.get(job.id) if job else None, name, time_ms)
        self._application.stage_submitted(stage_attempt(info), int(info.get("Number of Tasks") or 0), time_ms)

    def on_stage_tasks(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle what a stage's tasks have measured, which comes right before its end, and what lags."""
        key = stage_attempt(record)
        stage = self._stages.get(key)
        if stage is None:
            return
        if statistics := record.get("Task Statistics"):
            stage.measured = read_tasks_measured(statistics)
        if lagging := record.get("Lagging Task"):
            self._take_lagging(key, stage, lagging, time_ms)

    def on_stage_completed(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle StageCompleted."""
        info = record["Stage Info"]
        key = stage_attempt(info)
        stage = self._stages.pop(key, None)
        self._application.stage_completed(key, time_ms)
        if stage is None or stage.measured is None:
            return
        lasted_ms = time_ms - int(info.get("Submission Time") or stage.begun_ms)
        of_query = bool(stage.job and stage.job.run.query)
        if lasted_ms < self._thresholds.min_time_ms and not of_query:
            return  # it cannot have lost so much
        in_python_ms = python_ms(info.get("Accumulables") or ())
        measured = without_reads(stage.measured) if misses_reads(info) else stage.measured
        ended = EndedStage(self._application.cores, measured, in_python_ms, self._application.retries_tasks)
        self._application.stage_measured(ended, time_ms)
        for issue in stage_issues(ended, self._of_batches if of_query else self._thresholds):
            pending = _StageIssue(issue, key, stage.name)
            if stage.job is None:
                self._report_of_stage(pending, None, lasted_ms, time_ms)
            else:
                stage.job.issues.append(pending)
                if len(stage.job.issues) > _MOST_OF_ONE:
                    stage.job.issues.remove(min(stage.job.issues, key=_cost))

    def on_job_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle JobEnd: now it is known how long the job took, and so what matters."""
        job = self._jobs.pop(int(record["Job ID"]), None)
        if job is None:
            return
        lasted_ms = max(0, time_ms - job.run.begun_ms)
        query = self._queries.get(job.run.group)
        if query is not None:
            self._add_to_query(query, job, lasted_ms, time_ms)
            return
        for pending in job.issues:
            self._report_of_stage(pending, job, lasted_ms, time_ms)

    # -----------------------------------------------------------------------------------------------------

    def _take_lagging(
        self, key: tuple[int, int], stage: _Stage, task: Mapping[str, Any], time_ms: int
    ) -> None:
        """Warn of a task that lags, at most once: there is still time to do something about it."""
        job = stage.job
        if job is None:
            return
        issue = lagging_task(
            int(task["Index"]),
            str(task["Executor ID"]),
            str(task["Host"]),
            int(task["Running For"]),
            int(task["Median Run Time"]),
            self._thresholds,
        )
        if issue is None or key in job.warned:
            return
        lasted_ms = max(0, time_ms - job.run.begun_ms)
        if self._events.matters(issue, lasted_ms):
            job.warned.add(key)
            subject = self._stage_subject(_StageIssue(issue, key, stage.name), job, lasted_ms)
            self._events.warn(issue, subject, time_ms)

    def _report_of_stage(self, pending: _StageIssue, job: _Job | None, whole_ms: int, time_ms: int) -> None:
        issue = pending.issue
        if self._events.matters(issue, whole_ms):
            self._events.report(issue, self._stage_subject(pending, job, whole_ms), time_ms)

    def _stage_subject(self, pending: _StageIssue, job: _Job | None, whole_ms: int) -> Subject:
        stage, attempt = pending.key
        run = job.run if job else None
        of_query = run.query if run else {}
        described = self._described(run) if run else None
        title = f"stage {stage}.{attempt}" + (f" ({pending.name})" if pending.name else "")
        return Subject(
            Entity("stage", f"{stage}.{attempt}", title, of_query.get("query_name", "")),
            self._context.scopes.stage(stage, attempt, of_query),
            f"job {run.id}" if run else "the stage",
            whole_ms,
            {
                "stageId": stage,
                "stageAttempt": attempt,
                "stageName": pending.name or None,
                "jobId": run.id if run else None,
                "sqlExecutionId": run.execution if run else None,
                "description": described,
            },
        )

    def _described(self, job: Job) -> str | None:
        """Return what a job is, by its description or that of its execution."""
        execution = self._context.run.execution_of(job)
        of_execution = execution.description if execution is not None and not execution.of_batch else ""
        return self._tellable(job.description or of_execution)

    def _tellable(self, description: str) -> str | None:
        """Return a description, unless it must not be told: it may be a statement's text."""
        return description if description and self._thresholds.tell_sql else None

    def _add_to_query(self, query: _Query, job: _Job, lasted_ms: int, time_ms: int) -> None:
        query.busy_ms += lasted_ms
        for pending in job.issues:
            at = (pending.issue.cause, pending.name)
            if at not in query.lost and len(query.lost) >= _MOST_OF_ONE:
                continue
            before = query.lost.get(at)
            query.lost[at] = _added(before, pending.issue) if before else pending.issue
            query.times[at] = query.times.get(at, 0) + 1
        for at in sorted({(pending.issue.cause, pending.name) for pending in job.issues} - query.reported):
            issue = query.lost.get(at)
            if issue is not None and self._events.matters(issue, query.busy_ms):
                query.reported.add(at)
                self._report_of_query(query, job.run.group, issue, at[1], query.times[at], time_ms)

    def _report_of_query(
        self, query: _Query, run_id: str, issue: Issue, stage_name: str, times: int, time_ms: int
    ) -> None:
        subject = Subject(
            Entity("query", run_id, f"query {query.name!r}", query.name),
            self._context.scopes.query_run(query.name, query.query_id, run_id),
            "the time of its jobs",
            query.busy_ms,
            {"stageName": stage_name or None, "stages": times},
        )
        reported = replace(
            issue,
            cause=f"{issue.cause} {stage_name}",
            sentence=issue.sentence
            if times == 1
            else f"in {times} stages so far, most recently: {issue.sentence}",
        )
        self._events.report(reported, subject, time_ms)


def _added(before: Issue, issue: Issue) -> Issue:
    """Return the newer of two issues of one cause, with what both have cost."""
    if issue.lost_ms is None:
        return replace(issue, lost_bytes=(before.lost_bytes or 0) + (issue.lost_bytes or 0))
    return replace(issue, lost_ms=(before.lost_ms or 0) + issue.lost_ms)


def _cost(pending: _StageIssue) -> tuple[int, int]:
    return pending.issue.lost_ms or 0, pending.issue.lost_bytes or 0
