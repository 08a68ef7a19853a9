"""Lineage out of an event log: its records as those that come of a driver, as far as they carry it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.jobs.job_events import (
    QUERY_LINEAGE,
    STATEMENT_CREATED,
    STATEMENT_ENDED,
    STATEMENT_LINEAGE,
    JobListeners,
)
from spark_events.lineage.plan_info import found_in, found_in_progress
from spark_events.listeners.spark_records import (
    NESTED_EXECUTION,
    QUERY_PROGRESS,
    SQL_EXECUTION_END,
    SQL_EXECUTION_START,
)
from spark_events.listeners.translator import Handler

_RUN_OF_BATCH = re.compile(r"\nrunId = (?P<run>\S+)")


@dataclass(slots=True)
class _Query:
    """A run of a streaming query.

    Attributes:
        found: what its first progress says; None before that.
        sinks: what its function of foreachBatch writes.
    """

    found: dict[str, Any] | None = None
    sinks: list[dict[str, Any]] = field(default_factory=list)


class LoggedPlans:
    """Takes the plans of a log, and gives them to the job listeners.

    Args:
        jobs: take what was found.
    """

    def __init__(self, jobs: JobListeners) -> None:
        self._jobs = jobs
        self._statements: dict[int, dict[str, Any]] = {}
        self._held: dict[int, tuple[dict[str, Any], int]] = {}
        self._batches: dict[int, str] = {}
        self._queries: dict[str, _Query] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What takes a record, by its name: the job listeners' own, too."""
        return {
            **self._jobs.handlers,
            SQL_EXECUTION_START: self._on_start,
            NESTED_EXECUTION: self._on_start,
            SQL_EXECUTION_END: self._on_end,
            QUERY_PROGRESS: self._on_progress,
        }

    def tick(self, now_ms: int) -> None:
        """Let time pass."""
        self._jobs.tick(now_ms)

    def _on_start(self, record: dict[str, Any], time_ms: int) -> None:
        execution = int(record["executionId"])
        given = record.get("rootExecutionId")
        root = execution if given is None else int(given)
        found = found_in(record.get("sparkPlanInfo") or {})
        batch = _RUN_OF_BATCH.search(str(record.get("description") or ""))
        if root == execution and batch is not None:
            self._batches[execution] = batch["run"]
        elif root == execution:
            self._statements[execution] = found
            self._held[execution] = (record, time_ms)
            if found["sinks"] or not str(record["sparkPlanInfo"].get("nodeName")).startswith("Execute "):
                self._create(execution)
        elif root in self._batches:
            self._write_in_batch(self._batches[root], found["sinks"], time_ms)
        elif root in self._statements:
            whole = self._statements[root]
            whole["sources"] += found["sources"]
            whole["sinks"] += [sink for sink in found["sinks"] if sink not in whole["sinks"]]
            if root in self._held:
                if whole["sinks"]:
                    self._create(root)
            else:
                self._give(STATEMENT_LINEAGE, time_ms, whole, executionId=root)

    def _create(self, execution: int) -> None:
        """Tell of a statement; one whose command says nothing itself has waited for its first part."""
        held = self._held.pop(execution, None)
        if held is not None:
            record, time_ms = held
            self._give(STATEMENT_CREATED, time_ms, self._statements[execution], **record)

    def _on_end(self, record: dict[str, Any], time_ms: int) -> None:
        execution = int(record["executionId"])
        self._batches.pop(execution, None)
        self._create(execution)
        if self._statements.pop(execution, None) is not None:
            error = record.get("errorMessage")
            failure = {"text": error} if error else None
            self._give(STATEMENT_ENDED, time_ms, None, executionId=execution, failure=failure)

    def _write_in_batch(self, run: str, sinks: list[dict[str, Any]], time_ms: int) -> None:
        """Take what a function of foreachBatch writes; the query's progress says where that comes from."""
        known = self._queries.setdefault(run, _Query())
        new = [sink for sink in sinks if sink not in known.sinks]
        known.sinks += new
        if new and known.found is not None:
            self._tell(run, known, time_ms)

    def _on_progress(self, record: dict[str, Any], time_ms: int) -> None:
        progress = record["progress"]
        run = str(progress["runId"])
        known = self._queries.setdefault(run, _Query())
        if known.found is None:
            known.found = found_in_progress(progress)
            self._tell(run, known, time_ms)

    def _tell(self, run: str, known: _Query, time_ms: int) -> None:
        found = known.found or {}
        self._give(QUERY_LINEAGE, time_ms, {**found, "sinks": [*found["sinks"], *known.sinks]}, runId=run)

    def _give(self, name: str, time_ms: int, lineage: dict[str, Any] | None, **more: Any) -> None:
        self._jobs.handlers[name]({**more, "lineage": lineage}, time_ms)
