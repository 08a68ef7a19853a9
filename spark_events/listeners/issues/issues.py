"""Diagnoses: which stages are slow, why, and what that costs their job, SQL execution or streaming query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import kept_rdds, read_tasks_measured
from spark_events.diagnosis.plans.execution import EndedExecution, read_stage
from spark_events.diagnosis.plans.node import IN_MEMORY
from spark_events.diagnosis.queries.python_again import without_python_again
from spark_events.diagnosis.rdds.listed_again import listing
from spark_events.diagnosis.rdds.repeated_stages import RepeatedStages
from spark_events.diagnosis.rdds.stage_place import place_of_stage
from spark_events.diagnosis.repeated_work.batches import computed_again
from spark_events.diagnosis.repeated_work.called_twice import is_of_calls
from spark_events.diagnosis.repeated_work.own_sinks import own_sink_reads
from spark_events.diagnosis.stages.long_tail import lagging_task
from spark_events.diagnosis.thresholds import PYTHON
from spark_events.diagnosis.times.booking import booked
from spark_events.diagnosis.times.python_times import StagesInPython
from spark_events.diagnosis.writes.compression import heavy_compression
from spark_events.diagnosis.writes.small_files import WRITES, small_files
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.issues.application_issues import ApplicationIssues, by_arrow
from spark_events.listeners.issues.executions import Executions, explained
from spark_events.listeners.issues.findings import Finding, Subjects, call_site, named
from spark_events.listeners.issues.issue_events import IssueEvents
from spark_events.listeners.issues.query_issues import QueryIssues
from spark_events.listeners.issues.stage_findings import StageFindings
from spark_events.listeners.issues.watched_stages import JobFindings, Key, WatchedStage
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.long_texts import LONGEST_TITLE
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    JobEndRecord,
    JobStartRecord,
    LogReadRecord,
    Properties,
    SQLExecutionEndRecord,
    StageCompletedRecord,
    StageSubmittedRecord,
    StageTasksRecord,
)
from spark_events.listeners.run import Execution, Job
from spark_events.listeners.spark_records import stage_attempt
from spark_events.task.local_properties import JOB_DESCRIPTION

_MOST_OF_ONE, _MOST_OF_EXECUTION = 100, 1_000
"""How many issues one job may have, the costliest, and how many an SQL execution."""
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class IssueListener(Timeless):
    """Follows the stages of one application, and reports what makes them slow.

    What a job loses is reported at its end, or at that of its SQL execution, whose plan says why. A
    micro-batch is short, so what a streaming query loses is added up, and reported when it is enough.
    """

    def __init__(self, context: ListenerContext, events: IssueEvents, spark_version: str = "") -> None:
        self._run = context.run
        self._thresholds = context.settings.thresholds
        self._events = events
        self._subjects = Subjects(context)
        self._application = ApplicationIssues(context, events, spark_version)
        self._of_stages = StageFindings(context.run, self._thresholds, self._application)
        self._queries = QueryIssues(context, events, lambda: self._application.cores)
        self._executions = Executions(self._thresholds)
        self._repeated = RepeatedStages()
        self._in_python = StagesInPython()
        self._jobs: dict[int, JobFindings] = {}
        self._stages: dict[Key, WatchedStage] = {}
        # What was found in jobs whose SQL execution runs on.
        self._findings: dict[int, list[Finding]] = {}

    @property
    def application(self) -> ApplicationIssues:
        """What is about the application as a whole."""
        return self._application

    @property
    def queries(self) -> QueryIssues:
        """What is about streaming queries."""
        return self._queries

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.JOB_START: early(self.on_job_start),
            spark_records.JOB_END: early(self.on_job_end),
            spark_records.STAGE_SUBMITTED: self.on_stage_submitted,
            spark_records.STAGE_TASKS: self.on_stage_tasks,
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
            spark_records.APPLICATION_END: early(self.on_application_end),
            spark_records.LOG_READ: early(self.on_log_read),
        }

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd, which comes after the ends of its jobs."""
        number = int(record["executionId"])
        execution = self._run.executions.get(number)
        if execution is None:
            return
        ended, job = self._executions.ended(record, execution.begun_ms, time_ms, self._application.cores)
        findings = self._findings.pop(number, [])
        nodes = ended.nodes_by_stage() if findings else {}
        findings = [
            replace(each, issue=explained(each.issue, nodes.get(each.stage[0], ()), ended))
            if each.stage
            else each
            for each in findings
        ]
        findings += self._of_execution(record, execution, ended, job)
        if execution.batch is not None:
            self._queries.batch_ended(execution.batch.run_id, ended, int(record.get("Parts Time") or 0))
            if any(node.name == IN_MEMORY for node in ended.nodes()):
                self._application.cache_may_be_read()
            self._report(_called_once(findings, ended), ended, time_ms)
            return
        # While a query runs, no time counts as the driver's.
        self._tell_driver_time(findings)
        # What functions take is theirs to lose only where they have to be called.
        repeated = (each.issue.stages for each in findings if is_of_calls(each.issue))
        again = frozenset().union(*repeated)
        called = [_as_share(each, again) for each in findings if each.issue.kind == PYTHON]
        self._report([each for each in findings if each.issue.kind != PYTHON], ended, time_ms)
        self._application.execution_ended(ended, named(call_site(execution.description), job), time_ms)
        self._report(called, ended, time_ms)

    def _tell_driver_time(self, findings: list[Finding]) -> None:
        for each in findings:
            if each.issue.driver_ms and self._events.matters(each.issue, each.whole_ms):
                self._application.driver_time_told(each.issue)

    def on_job_start(self, record: JobStartRecord, time_ms: int) -> None:
        """Handle JobStart."""
        job = self._run.jobs[int(record["Job ID"])]
        properties = record.get("Properties") or {}
        description = str(properties.get(JOB_DESCRIPTION) or "")
        lists = listing(description)
        self._jobs[job.id] = JobFindings(job, lists, _arrow_rows(properties), by_arrow(properties))

    def on_stage_submitted(self, record: StageSubmittedRecord, time_ms: int) -> None:
        """Handle StageSubmitted."""
        info = record["Stage Info"]
        job = self._run.job_of(int(info["Stage ID"]))
        name = place_of_stage(info)[:LONGEST_TITLE]
        of_job = self._jobs.get(job.id) if job else None
        self._stages[stage_attempt(info)] = WatchedStage(of_job, name, time_ms)
        self._of_stages.begun(stage_attempt(info), name, time_ms)

    def on_stage_tasks(self, record: StageTasksRecord, time_ms: int) -> None:
        """Handle what a stage's tasks have measured, which comes right before its end, and what lags."""
        key = stage_attempt(record)
        stage = self._stages.get(key)
        if stage is None:
            return
        if statistics := record.get("Task Statistics"):
            stage.measured = read_tasks_measured(statistics)
        if lagging := record.get("Lagging Task"):
            self._take_lagging(key, stage, lagging, time_ms)

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        info = record["Stage Info"]
        key = stage_attempt(info)
        stage = self._stages.pop(key, None)
        job = stage.job if stage else None
        longest = stage.measured.longest_runs[:1] if stage and stage.measured else ()
        executed = replace(read_stage(info, time_ms), longest_ms=longest[0].run_ms if longest else 0)
        self._application.rdds.reads_checkpoint(info, time_ms)
        told_ms = self._of_stages.take_work(key, stage, executed, info, time_ms)
        if job is not None and job.run.group in self._queries and not job.run.of_broadcast:
            self._queries.stage_ended(job.run.group, executed.collected_bytes)
        if job is not None and (execution := self._run.execution_of(job.run)) is not None:
            self._executions.stage_completed(execution.id, job.run, executed, info)
        kept = [int(rdd["RDD ID"]) for rdd in kept_rdds(info)]
        if (job is None or job.run.execution is None) and kept:
            self._application.cache_may_be_read()
        repeats = self._repeated.ended(*key, bool(info.get("Failure Reason")))
        python = self._in_python.of_stage(info, stage.measured if stage else None)
        if stage is not None and stage.measured is not None:
            stage.python, stage.repeats = python, repeats
            stage.measured = replace(stage.measured, cpu_ms=executed.cpu_ms)
            findings = self._of_stages.take_measured(key, stage, stage.measured, info, kept, told_ms, time_ms)
            self._keep(job, findings, time_ms)
        if kept and not info.get("Failure Reason"):
            self._application.executors.stage_succeeded(kept)

    def on_job_end(self, record: JobEndRecord, time_ms: int) -> None:
        """Handle JobEnd: now it is known how long the job took, and so what matters."""
        job = self._jobs.pop(int(record["Job ID"]), None)
        if job is None:
            return
        if (record.get("Job Result") or {}).get("Result") != "JobSucceeded":
            self._application.cache_may_be_read()  # by what the job was about to do
        lasted_ms = max(0, time_ms - job.run.begun_ms)
        findings = [replace(each, job_ms=lasted_ms) for each in job.issues]
        if job.run.group in self._queries:
            self._queries.job_ended(job.run.group, lasted_ms)
        if (execution := self._run.execution_of(job.run)) is not None:
            of_execution = self._findings.setdefault(execution.id, [])
            of_execution += findings[: _MOST_OF_EXECUTION - len(of_execution)]
        else:
            self._report(findings, None, time_ms)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd: what still runs will say nothing any more."""
        self._report_running(time_ms)
        self._jobs.clear()
        self._findings.clear()
        self._executions.forget()

    def on_log_read(self, record: LogReadRecord, time_ms: int) -> None:
        """Handle LogRead."""
        self._report_running(time_ms)

    def _report_running(self, time_ms: int) -> None:
        """Report what is known of the stages of jobs and SQL executions that run."""
        for job in self._jobs.values():
            lasted_ms = max(0, time_ms - job.run.begun_ms)
            self._report([replace(each, job_ms=lasted_ms) for each in job.issues], None, time_ms)
        for findings in self._findings.values():
            self._report(findings, None, time_ms)

    # -----------------------------------------------------------------------------------------------------

    def _keep(self, job: JobFindings | None, findings: Iterable[Finding], time_ms: int) -> None:
        """Keep what was found in a stage until its job ends, of many the costliest; of no job, report it."""
        for finding in findings:
            if job is None:
                self._report([finding], None, time_ms)
                continue
            job.issues.append(finding)
            if len(job.issues) > _MOST_OF_ONE:
                job.issues.remove(min(job.issues, key=_cost))

    def _take_lagging(self, key: Key, stage: WatchedStage, task: Mapping[str, Any], time_ms: int) -> None:
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
            finding = Finding(issue, key, stage.name, lasted_ms, time_ms, job.run, lasted_ms)
            self._events.warn(issue, self._subjects.of(finding, time_ms), time_ms)

    def _of_execution(
        self, record: SQLExecutionEndRecord, execution: Execution, ended: EndedExecution, job: Job | None
    ) -> list[Finding]:
        """Return what the plan of an execution that has ended says, and the files that it read and wrote."""
        issues: list[Issue] = self._executions.issues(ended)
        issues += heavy_compression(ended, self._application.of_files, self._application.levels_of_orc)
        files = small_files(record.get("Files") or {}, ended, self._thresholds, execution.batch is not None)
        if execution.batch is None:
            issues += files
        else:  # which reads the files that have come
            issues += computed_again(ended)
            issues += own_sink_reads(ended)
            issues += [issue for issue in files if issue.cause == WRITES]
        name = call_site(execution.description)
        return [
            Finding(issue, None, name, ended.lasted_ms, ended.ended_ms, job, 0, execution) for issue in issues
        ]

    def _report(self, findings: Sequence[Finding], ended: EndedExecution | None, time_ms: int) -> None:
        """Report issues of one job, or of one execution, that have cost enough; those of a query add up."""
        wall_ms = {stage.id: stage.wall_ms for stage in ended.stages.values()} if ended else {}
        wall_ms.update((each.stage[0], each.wall_ms) for each in findings if each.stage)
        of_queries: dict[str, list[tuple[Issue, str]]] = {}
        for each, issue in zip(findings, booked([each.issue for each in findings], wall_ms), strict=True):
            run_id = each.job.group if each.job else ""
            if run_id in self._queries:
                of_queries.setdefault(run_id, []).append((issue, each.name))
            elif self._events.matters(issue, each.whole_ms):
                lost_in = each.ended_ms - each.wall_ms, each.ended_ms
                self._events.report(issue, self._subjects.of(each, time_ms, ended), time_ms, lost_in)
        for run_id, issues in of_queries.items():
            self._queries.lost(run_id, issues, time_ms)


def _as_share(finding: Finding, stages: Collection[int]) -> Finding:
    """Return what says how long something takes as no more than that if it is about one of these stages."""
    issue = finding.issue
    if issue.lost_ms is None or issue.stages.isdisjoint(stages):
        return finding
    return replace(finding, issue=replace(issue, lost_ms=None, share_ms=issue.lost_ms))


def _called_once(findings: Sequence[Finding], ended: EndedExecution) -> list[Finding]:
    """Return what was found in a micro-batch without calls of functions that are told as computed again."""
    issues = without_python_again([each.issue for each in findings], ended)
    pairs = zip(findings, issues, strict=True)
    return [replace(each, issue=issue) for each, issue in pairs if issue is not None]


def _cost(finding: Finding) -> tuple[int, int]:
    return finding.issue.lost_ms or 0, finding.issue.lost_bytes or 0


def _arrow_rows(properties: Properties) -> int | None:
    """Return how many rows a batch for Python has at most; None if a job does not say."""
    rows = str(properties.get(_ARROW_ROWS) or "")
    return int(rows) if rows.isdecimal() else None
