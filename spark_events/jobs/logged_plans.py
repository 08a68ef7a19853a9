"""Makes records of plans, like those that a driver sends, from what an event log says about plans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.jobs.job_events import JobEvents
from spark_events.jobs.plan_records import (
    QUERY_LINEAGE,
    STATEMENT_CREATED,
    STATEMENT_ENDED,
    STATEMENT_LINEAGE,
)
from spark_events.lineage.plan_info import read_plan_info, read_progress
from spark_events.listeners.listener import Handler, early
from spark_events.listeners.record_types import (
    QueryProgressRecord,
    QueryTerminatedRecord,
    SQLExecutionEndRecord,
    SQLExecutionStartRecord,
)
from spark_events.listeners.spark_records import (
    NESTED_EXECUTION,
    QUERY_PROGRESS,
    QUERY_TERMINATED,
    SQL_EXECUTION_END,
    SQL_EXECUTION_START,
)

_RUN_OF_BATCH = re.compile(r"\nrunId = (?P<run>\S+)")


class PlanRecord(NamedTuple):
    """A record as a driver sends it: one of ``plan_records``, with its time in ms since the epoch."""

    name: str
    fields: dict[str, Any]
    time_ms: int


@dataclass(slots=True)
class LoggedStatement:
    """A statement in a log; its methods return the records to send now.

    Attributes:
        start_ms: when it started, in ms since the epoch.
        lineage: what it is known to read and write, in the form of ``Statement.java``.
    """

    start: Mapping[str, Any]
    start_ms: int
    lineage: dict[str, Any]
    created: bool = False

    def begin(self) -> list[PlanRecord]:
        """Return its creation, unless it is a command that does not itself say what it writes."""
        node = str((self.start.get("sparkPlanInfo") or {}).get("nodeName"))
        waits_for_part = node.startswith("Execute ") and not self.lineage["sinks"]
        return [] if waits_for_part else self.create()

    def create(self) -> list[PlanRecord]:
        """Return its creation, the first time this is called."""
        if self.created:
            return []
        self.created = True
        return [PlanRecord(STATEMENT_CREATED, {**self.start, "lineage": self.lineage}, self.start_ms)]

    def add_part(self, part: Mapping[str, Any], time_ms: int) -> list[PlanRecord]:
        """Add what a nested execution reads and writes."""
        self.lineage["sources"] += part["sources"]
        self.lineage["sinks"] += [sink for sink in part["sinks"] if sink not in self.lineage["sinks"]]
        if self.created:
            execution = int(self.start["executionId"])
            fields = {"executionId": execution, "lineage": self.lineage}
            return [PlanRecord(STATEMENT_LINEAGE, fields, time_ms)]
        return self.create() if self.lineage["sinks"] else []

    def end(self, record: Mapping[str, Any], time_ms: int) -> list[PlanRecord]:
        """Return its end, preceded by its creation if that is still due."""
        error = record.get("errorMessage")
        failure = {"text": error} if error else None
        fields = {"executionId": int(record["executionId"]), "failure": failure}
        return [*self.create(), PlanRecord(STATEMENT_ENDED, fields, time_ms)]


@dataclass(slots=True)
class LoggedQueryRun:
    """A run of a streaming query in a log; its methods return the records to send now.

    Attributes:
        lineage: what its first progress says; None before that.
        batch_sinks: what its foreachBatch function writes.
    """

    run_id: str
    lineage: dict[str, Any] | None = None
    batch_sinks: list[dict[str, Any]] = field(default_factory=list)

    def add_part(self, part: Mapping[str, Any], time_ms: int) -> list[PlanRecord]:
        """Add what its foreachBatch function writes; the progress says where the data comes from."""
        new = [sink for sink in part["sinks"] if sink not in self.batch_sinks]
        self.batch_sinks += new
        return self._lineage_records(time_ms) if new else []

    def add_progress(self, progress: Mapping[str, Any], time_ms: int) -> list[PlanRecord]:
        """Called with the first progress; those after it say the same."""
        if self.lineage is not None:
            return []
        self.lineage = read_progress(progress)
        return self._lineage_records(time_ms)

    def _lineage_records(self, time_ms: int) -> list[PlanRecord]:
        if self.lineage is None:
            return []
        lineage = {**self.lineage, "sinks": [*self.lineage["sinks"], *self.batch_sinks]}
        return [PlanRecord(QUERY_LINEAGE, {"runId": self.run_id, "lineage": lineage}, time_ms)]


class LoggedPlans:
    """Turns a log's records of executions and progress into records of plans for the job events."""

    def __init__(self, job_events: JobEvents) -> None:
        self._job_events = job_events
        self._running: dict[int, LoggedStatement | LoggedQueryRun] = {}
        self._query_runs: dict[str, LoggedQueryRun] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What it hears, including what the job events do."""
        return {
            **self._job_events.handlers,
            SQL_EXECUTION_START: early(self._on_start),
            NESTED_EXECUTION: early(self._on_start),
            SQL_EXECUTION_END: early(self._on_end),
            QUERY_PROGRESS: early(self._on_progress),
            QUERY_TERMINATED: early(self._on_terminated),
        }

    def tick(self, now_ms: int) -> None:
        """Let time pass."""
        self._job_events.tick(now_ms)

    def _on_start(self, record: SQLExecutionStartRecord, time_ms: int) -> None:
        """Take the start of an execution: part of another one, a streaming query's batch, or a statement."""
        execution = int(record["executionId"])
        root = record.get("rootExecutionId")
        lineage = read_plan_info(record.get("sparkPlanInfo") or {})
        if root is not None and int(root) != execution:
            whole = self._running.get(int(root))
            if whole is not None:
                self._send(whole.add_part(lineage, time_ms))
            return
        batch = _RUN_OF_BATCH.search(str(record.get("description") or ""))
        if batch is not None:
            self._running[execution] = self._query_run(batch["run"])
        else:
            statement = self._running[execution] = LoggedStatement(record, time_ms, lineage)
            self._send(statement.begin())

    def _on_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        ended = self._running.pop(int(record["executionId"]), None)
        if isinstance(ended, LoggedStatement):
            self._send(ended.end(record, time_ms))

    def _on_progress(self, record: QueryProgressRecord, time_ms: int) -> None:
        progress = record["progress"]
        self._send(self._query_run(str(progress["runId"])).add_progress(progress, time_ms))

    def _on_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        self._query_runs.pop(str(record["runId"]), None)

    def _query_run(self, run_id: str) -> LoggedQueryRun:
        return self._query_runs.setdefault(run_id, LoggedQueryRun(run_id))

    def _send(self, records: list[PlanRecord]) -> None:
        for record in records:
            self._job_events.handlers[record.name].handle(record.fields, record.time_ms)
