"""The listeners of an application: which there are, and what each needs of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spark_events.listeners.application.application import ApplicationListener
from spark_events.listeners.application.heartbeat import HeartbeatListener
from spark_events.listeners.application.table_transaction import TableTransactionListener
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Place
from spark_events.listeners.executors.executors import ExecutorListener
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.issues.issue_events import IssueEvents
from spark_events.listeners.issues.issues import IssueListener
from spark_events.listeners.issues.regressions import RegressionListener
from spark_events.listeners.listener import Listener
from spark_events.listeners.queries.query import QueryListener
from spark_events.listeners.run import Job
from spark_events.listeners.spark_receiver.series import ReceiverListener
from spark_events.listeners.tasks.task_reports import TaskReportListener
from spark_events.listeners.work.job import SparkJobListener
from spark_events.listeners.work.sql_execution import SqlExecutionListener
from spark_events.listeners.work.stage import StageListener
from spark_events.task.local_properties import BATCH_ID, JOB_GROUP


class Wanted(NamedTuple):
    """What reporters there are for.

    Attributes:
        spans, metrics: whether there are any for them.
    """

    spans: bool
    metrics: bool


def listeners_of_queries(context: ListenerContext) -> list[Listener]:
    """Return the listeners of a process that runs streaming queries alone, as with Spark Connect."""
    queries = QueryListener(context, IssueEvents(context))
    return [context.run, queries, HeartbeatListener(context, lambda: 0, queries.running)]


def listeners_of_application(
    context: ListenerContext, spark_version: str, wanted: Wanted
) -> tuple[ApplicationListener, list[Listener]]:
    """Return the listener of the application itself, and all listeners with it.

    Those of one phase are called in this order, what is within before what is around it: at the end of the
    application, it is told last that it has ended.

    Args:
        context: what they share.
        spark_version: of the application; empty if unknown.
        wanted: what they shall give.
    """
    context.work.register(context.scopes.application())
    issue_events = IssueEvents(context)
    timeline = ApplicationTimeline(bounded=True) if wanted.spans else None
    application = ApplicationListener(context, spark_version, timeline)
    queries, executions = QueryListener(context, issue_events), SqlExecutionListener(context)
    places = _Places(context, queries, executions, wanted.spans)
    jobs = SparkJobListener(context, places.of_job)
    stages = StageListener(context, jobs)
    places.stages = stages
    issues = IssueListener(context, issue_events, spark_version)
    of_application = issues.application
    listeners: list[Listener] = [
        context.run,
        ExecutorListener(context, wanted.metrics),
        stages,
        jobs,
        queries,
        executions,
        context.work,
        TaskReportListener(context, places.of_tasks),
        issues,
        issues.queries,
        of_application,
        HeartbeatListener(context, lambda: jobs.running, queries.running),
        TableTransactionListener(context),
        application,
    ]
    if timeline is not None:
        listeners.insert(0, timeline)
    if context.settings.thresholds.compares_runs:
        listeners.insert(
            0,
            RegressionListener(
                context, issue_events, application, lambda: of_application.cores, spark_version
            ),
        )
    if context.settings.receiver_names:
        listeners.append(ReceiverListener(context))
    return application, listeners


class _Places:
    """Where in a trace jobs and tasks have their spans.

    Attributes:
        stages: set once the listener of stages is there, which needs that of jobs.
    """

    stages: StageListener

    def __init__(
        self,
        context: ListenerContext,
        queries: QueryListener,
        executions: SqlExecutionListener,
        wanted: bool,
    ) -> None:
        self._context = context
        self._queries = queries
        self._executions = executions
        self._wanted = wanted

    def of_job(self, job: Job) -> Place | None:
        """Return the parent of a job's span; None if it has none."""
        if not self._wanted:
            return None
        of_query, place = self._queries.place_of_job(job)
        if of_query:
            return place
        return self._executions.place_of_job(job) or self._context.traces.application

    def of_tasks(self, stage: int, properties: Mapping[str, str | None]) -> Place:
        """Return the parent of a task's spans, by its stage and its local properties."""
        run_id, batch = str(properties.get(JOB_GROUP)), properties.get(BATCH_ID)
        of_batch = self._queries.place_of_batch(run_id, batch)
        place = self.stages.place_of(stage) or of_batch
        if place is None and batch is None and not self.stages.runs(stage):
            place = self.stages.place_of_first_attempt(stage)
        return place or self._context.traces.application
