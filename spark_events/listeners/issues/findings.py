"""What was found about a stage or an SQL execution, until it is known what that cost the whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spark_events.api.event import AttributeValue
from spark_events.api.toolkit.formatting import counted
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.issues.issue_events import Subject
from spark_events.listeners.run import Execution, Job

_MOST_READ = 3
_NOWHERE = re.compile(r"NativeMethodAccessorImpl\.java|\$anonfun\$|CompletableFuture\.java|<unknown>")
"""What Spark calls the place of an action of PySpark's DataFrames, and of a stage of adaptive execution."""
_CALL_SITE = re.compile(r"\w+ at [^\s']+:\d+")


@dataclass(frozen=True, slots=True)
class Finding:
    """An issue with what it is about.

    Attributes:
        stage: the stage and the number of its attempt; None if it is about the execution as a whole.
        name: of the stage, as Spark calls it.
        wall_ms: how long the stage or the execution took, in ms.
        ended_ms: when it ended, in ms since the epoch.
        job: that of the stage; None if unknown.
        job_ms: how long that took, in ms; 0 if it has not ended.
        execution: the SQL execution; None if it is none's.
    """

    issue: Issue
    stage: tuple[int, int] | None
    name: str
    wall_ms: int
    ended_ms: int
    job: Job | None = None
    job_ms: int = 0
    execution: Execution | None = None

    @property
    def whole_ms(self) -> int:
        """What its cost is compared with, in ms."""
        return self.job_ms or self.wall_ms


class Subjects:
    """Says of each issue whose it is, by the name that people know it by."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._thresholds = context.settings.thresholds

    def of(self, finding: Finding, time_ms: int, ended: EndedExecution | None = None) -> Subject:
        """Return the subject of an issue.

        Args:
            finding: the issue.
            time_ms: how long its job has run, at least, in ms since the epoch.
            ended: its SQL execution, if that has ended.
        """
        if finding.stage is None:
            return self._of_execution(finding, ended)
        return self._of_stage(finding, finding.stage, time_ms, ended)

    def _of_stage(
        self, finding: Finding, at: tuple[int, int], time_ms: int, ended: EndedExecution | None
    ) -> Subject:
        (stage, attempt), job = at, finding.job
        of_query = job.query if job else {}
        name = named(finding.name, job, ended)
        title = f"stage {stage}.{attempt}" + (f" ({name})" if name else "")
        return Subject(
            Entity("stage", f"{stage}.{attempt}", title, of_query.get("query_name", "")),
            self._context.scopes.stage(stage, attempt, of_query),
            f"job {job.id}" if job and finding.job_ms else "the stage",
            finding.whole_ms,
            {
                "stageName": finding.name or None,
                "job_id": str(job.id) if job else None,
                "sql_execution_id": str(job.execution) if job and job.execution is not None else None,
                "description": self._described(job) if job else None,
                **_code(job, time_ms),
            },
        )

    def _of_execution(self, finding: Finding, ended: EndedExecution | None) -> Subject:
        execution = finding.execution
        assert execution is not None  # it is about this
        name = named(finding.name, finding.job, ended)
        title = f"SQL execution {execution.id}" + (f" ({name})" if name else "")
        return Subject(
            Entity("sql_execution", str(execution.id), title),
            self._context.scopes.sql_execution(execution.id),
            "its time",
            finding.wall_ms,
            {
                "description": self._tellable(execution.description),
                **_code(finding.job, execution.begun_ms + finding.wall_ms),
            },
        )

    def _described(self, job: Job) -> str | None:
        """Return what a job is, by its description or that of its execution."""
        execution = self._context.run.execution_of(job)
        of_execution = execution.description if execution is not None and execution.batch is None else ""
        return self._tellable(job.description or of_execution)

    def _tellable(self, description: str) -> str | None:
        """Return a description, unless it must not be told: it may be a statement's text."""
        return description if description and self._thresholds.tell_sql else None


def call_site(description: str) -> str:
    """Return the call site that an SQL execution's description is; empty if it is a text of somebody's own.

    Such a text may be a statement, which is told only where that is allowed.
    """
    first = description.partition("\n")[0]
    return first if _CALL_SITE.fullmatch(first) else ""


def named(spark_name: str, job: Job | None, ended: EndedExecution | None = None) -> str:
    """Return the name of a stage by which people know it: the place in their code, or else its tables.

    A place that the live driver alone has seen is not a part of the name, which is the same in a replay.

    Args:
        spark_name: Spark's own, such as ``count at NativeMethodAccessorImpl.java:0``.
        job: that it works for; None if unknown.
        ended: its SQL execution, if that has ended.
    """
    if spark_name and not _NOWHERE.search(spark_name):
        return spark_name
    verb, _, where = spark_name.partition(" at ")
    verb = verb if where and "$" not in verb and verb.isidentifier() else ""
    action = job.action if job is not None and job.action_seen_ms is None else None
    if action is not None:
        return f"{verb or 'action'} at {action.file_path.rpartition('/')[2]}:{action.line_number}"
    written = ended.written() if ended is not None else []
    read = [table for table in ended.tables() if table not in written] if ended is not None else []
    others = f" and {counted(len(read) - _MOST_READ, 'other')}" if len(read) > _MOST_READ else ""
    of = f" of {', '.join(read[:_MOST_READ])}{others}" if read else ""
    into = f" into {written[0]}" if written else ""
    return f"{verb or 'query'}{of}{into}" if of or into else verb


def _code(job: Job | None, time_ms: int) -> dict[str, AttributeValue]:
    action = job.action_until(time_ms) if job is not None else None
    return action.attributes if action is not None else {}
