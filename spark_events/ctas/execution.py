"""A statement as one SQL execution of Spark, from before its transaction to after its commit."""

from __future__ import annotations

from typing import Any

from spark_events.ctas.jvm import leave_call
from spark_events.ctas.transactions.journaled_table import JournaledTable
from spark_events.ctas.transactions.session_transactions import Transactions
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.listeners.failures import failures
from spark_events.runtime.foreign_errors import with_type
from spark_events.runtime.log_once import logger

_ROOT = "spark.sql.execution.root.id"
_MOST_CAUSES = 5


class StatementExecution:
    """The SQL execution of a statement, which Spark's listeners see, and which its jobs and checks belong to.

    Attributes:
        job_id: as job status listeners have it, ``<application id>/<execution id>``.
    """

    def __init__(self, transactions: Transactions, definition: TableDefinition) -> None:
        self._context = transactions.spark.sparkContext
        self._entry = transactions.entry
        self._stragglers_ms = transactions.settings.stragglers_ms
        self._plan = definition.statement.execution()
        self._is_interrupted = False
        self.job_id = ""

    def __enter__(self) -> StatementExecution:
        context = self._context
        self._java_execution = self._entry.begin(self._plan)
        self._outer_root = context.getLocalProperty(_ROOT)
        context.setLocalProperty(_ROOT, self._java_execution.root())
        self._tasks = self._entry.tasks(self._java_execution.root())
        self._caller = self._entry.caller()
        self.job_id = f"{context.applicationId}/{self._java_execution.root()}"
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or self.is_over:
            self._tasks.close()  # otherwise it cancels what is yet to begin
        self._context.setLocalProperty(_ROOT, self._outer_root)
        if error is None:
            self._java_execution.end(None)
        elif (thrown := _thrown(error)) is not None:
            self._java_execution.end(thrown)
        else:
            self._java_execution.fail(_sentence(error))

    def write(self, table: JournaledTable) -> Written:
        """Run the statement's query, and write its rows."""
        return table.write()

    @property
    def is_over(self) -> bool:
        """Whether no call of the statement runs in the JVM any more, so that nothing changes the table.

        After Ctrl-C, Python no longer waits for the call that writes or publishes it, which continues.
        """
        return not self._is_interrupted or bool(self._caller.awaitReturn(0))

    def stop(self, error: BaseException) -> None:
        """Wait until what the statement runs has ended: nobody would remove what it writes.

        Args:
            error: what ends it. If that interrupted a call, Spark is still at it, and its jobs are cancelled.
        """
        self._is_interrupted = was_interrupted(error)
        if self._is_interrupted:
            leave_call(self._context._gateway)
            self._tasks.cancel()
            self._caller.awaitReturn(self._stragglers_ms)
        has_heard_all = self._tasks.awaitEvents(self._stragglers_ms)
        if not self._tasks.awaitEnd(self._stragglers_ms) or not has_heard_all:
            logger.warning(
                "tasks of a failed statement are still running after %d ms; the next statement, or "
                "spark-events ctas recover, removes what they leave behind",
                self._stragglers_ms,
            )


def was_cancelled(error: BaseException) -> bool:
    """Return whether a statement ended because somebody wanted it to."""
    if was_interrupted(error):
        return True
    thrown = _thrown(error)
    for _ in range(_MOST_CAUSES):
        if thrown is None:
            return False
        if failures.was_cancelled(failures.parse_failure(str(thrown.toString()))):
            return True
        thrown = thrown.getCause()
    return False


def was_interrupted(error: BaseException) -> bool:
    """Return whether a signal has interrupted a statement, as Ctrl-C does, maybe in a call of the JVM.

    Of what a handler raises in the middle of a call, such as PySpark's own, Py4J makes an error that says no
    more than that. A JVM that is gone is another error; so is what the JVM cannot call, which has a trace.
    """
    from py4j.protocol import Py4JError

    if not isinstance(error, Exception):  # SystemExit, say, of a handler of SIGTERM
        return True
    return type(error) is Py4JError and "Trace:" not in str(error)


def _sentence(error: BaseException) -> str:
    if was_interrupted(error):
        return f"the statement was cancelled: {with_type(error)}"
    return with_type(error)


def _thrown(error: BaseException) -> Any:
    """Return what the JVM threw; None if the error comes from Python itself."""
    return getattr(error, "_origin", None) or getattr(error, "java_exception", None)
