"""SQL executions, each an action on a DataFrame: the spans between an application and its jobs."""

from __future__ import annotations

from spark_events.api import Failure
from spark_events.listeners import spark_records
from spark_events.listeners.application.application import outcome_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity, Place, ended_span
from spark_events.listeners.failures.failures import parse_failure, unless_cancelled
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_types import ApplicationEndRecord, SQLExecutionEndRecord
from spark_events.listeners.run import Execution, Job


class SqlExecutionListener(Timeless):
    """Follows SQL executions, except those of streaming queries, whose spans are the checkpoints."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.SQL_EXECUTION_END: self.on_end,
            spark_records.APPLICATION_END: self.on_application_end,
        }

    def on_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd, which contains what was thrown."""
        error = record.get("errorMessage")
        execution = self._context.run.executions.get(int(record["executionId"]))
        if execution is not None:
            self._end(execution, time_ms, unless_cancelled(parse_failure(error) if error else None))

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """End the executions that still ran when the application ended."""
        failure = outcome_of(record, self._context.settings.stop_signals).failure
        for execution in self._context.run.executions.values():
            self._end(execution, time_ms, failure)

    def place_of_job(self, job: Job) -> Place | None:
        """Return the place of the execution that a job belongs to; None if there is none."""
        execution = self._context.run.execution_of(job)
        return self._place(execution.id) if execution is not None and execution.batch is None else None

    def _end(self, execution: Execution, time_ms: int, failure: Failure | None) -> None:
        if execution.batch is not None:
            return
        number = execution.id
        span = ended_span("SQL execution", execution.begun_ms, time_ms, failure).set_attribute(
            "description", execution.description
        )
        group = self._context.scopes.sql_execution(number)
        self._context.traces.report(span, self._place(number), _entity(number), group)

    def _place(self, execution: int) -> Place:
        traces = self._context.traces
        return traces.below(traces.application, "SQL execution", _entity(execution))


def _entity(execution: int) -> Entity:
    return Entity("sql_execution", str(execution), f"SQL execution {execution}")
