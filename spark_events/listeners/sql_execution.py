"""SQL executions, each an action on a DataFrame: the spans between an application and its jobs."""

from __future__ import annotations

from typing import Any

from spark_events.api import Failure
from spark_events.listeners import spark_records
from spark_events.listeners.application_outcome import outcome_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.failures import parse_failure
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.micro_batch import parse_micro_batch
from spark_events.listeners.traces import Place, ended_span

_LONGEST = 200


class SqlExecutionListener(Timeless):
    """Follows SQL executions, except those of streaming queries, whose spans are the checkpoints."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._running: dict[int, tuple[int, str]] = {}

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.SQL_EXECUTION_START: self.on_start,
            spark_records.SQL_EXECUTION_END: self.on_end,
            spark_records.APPLICATION_END: self.on_application_end,
        }

    def on_start(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle SQLExecutionStart; a nested execution, such as a subquery's, is part of the outer one."""
        execution, root = int(record["executionId"]), record.get("rootExecutionId")
        description = str(record.get("description") or "")
        if root in (None, execution) and parse_micro_batch(description) is None:
            self._running[execution] = (time_ms, description[:_LONGEST])

    def on_end(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle SQLExecutionEnd, which contains what was thrown."""
        error = record.get("errorMessage")
        self._end(int(record["executionId"]), time_ms, parse_failure(error) if error else None)

    def on_application_end(self, record: dict[str, Any], time_ms: int) -> None:
        """End the executions that still ran when the application ended."""
        failure = outcome_of(record, self._context.settings.stop_signals).failure
        for execution in list(self._running):
            self._end(execution, time_ms, failure)

    def place_of_job(self, properties: dict[str, Any]) -> Place | None:
        """Return the place of the execution that a job belongs to; None if there is none."""
        given = properties.get("spark.sql.execution.root.id") or properties.get("spark.sql.execution.id")
        execution = int(given) if given is not None else -1
        return self._place(execution) if execution in self._running else None

    def _end(self, execution: int, time_ms: int, failure: Failure | None) -> None:
        begun = self._running.pop(execution, None)
        if begun is None:
            return
        start_ms, description = begun
        span = (
            ended_span("SQL execution", start_ms, time_ms, failure)
            .set_attribute("executionId", execution)
            .set_attribute("description", description)
        )
        group = self._context.scopes.sql_execution(execution)
        self._context.traces.report(span, self._place(execution), _entity(execution), group)

    def _place(self, execution: int) -> Place:
        traces = self._context.traces
        return traces.below(traces.application, "SQL execution", _entity(execution))


def _entity(execution: int) -> Entity:
    return Entity("sql_execution", str(execution), f"SQL execution {execution}")
