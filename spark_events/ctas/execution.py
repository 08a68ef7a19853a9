"""A statement as one SQL execution of Spark, from before its transaction to after its commit."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from spark_events.ctas.transactions import Transactions
from spark_events.ctas.two_phase import TableDefinition
from spark_events.listeners import failures
from spark_events.runtime.log_once import logger

_ROOT = "spark.sql.execution.root.id"
_CAUSES = 5


class StatementExecution:
    """Spark's own listeners see the statement begin and end with it; its jobs and checks belong to it.

    Args:
        spark: the session.
        transactions: of the session.
        definition: what is made.

    Attributes:
        job_id: as job status listeners have it, ``<application id>/<execution id>``.
    """

    def __init__(self, spark: Any, transactions: Transactions, definition: TableDefinition) -> None:
        self._spark = spark
        self._entry = transactions.entry
        self._stragglers_ms = transactions.settings.stragglers_ms
        self._plan = definition.statement.execution()
        self.job_id = ""

    def __enter__(self) -> StatementExecution:
        context = self._spark.sparkContext
        self._java = self._entry.begin(self._plan)
        self._outer = context.getLocalProperty(_ROOT)
        context.setLocalProperty(_ROOT, self._java.root())
        self._tasks = self._entry.tasks(self._java.root())
        self.job_id = f"{context.applicationId}/{self._java.root()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.close()
        self._spark.sparkContext.setLocalProperty(_ROOT, self._outer)
        if error is None:
            self._java.end(None)
        elif (thrown := _thrown(error)) is not None:
            self._java.end(thrown)
        else:
            self._java.fail(_sentence(error))

    def await_tasks(self) -> None:
        """Wait until no task of the statement runs any longer: it might write what nobody removes then."""
        told = self._tasks.settle(self._stragglers_ms)
        if not getattr(self._tasks, "await")(self._stragglers_ms) or not told:
            logger.warning(
                "tasks of a statement that failed still run after %d ms; what they leave is removed by "
                "the next statement, or by spark-events ctas recover",
                self._stragglers_ms,
            )


def was_cancelled(error: BaseException) -> bool:
    """Tell whether a statement ended because somebody wanted it to."""
    if isinstance(error, KeyboardInterrupt):
        return True
    thrown = _thrown(error)
    for _ in range(_CAUSES):
        if thrown is None:
            return False
        if failures.was_cancelled(failures.parse_failure(str(thrown.toString()))):
            return True
        thrown = thrown.getCause()
    return False


def _sentence(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "the statement was cancelled: KeyboardInterrupt"
    return f"{type(error).__name__}: {error}"


def _thrown(error: BaseException) -> Any:
    """Return what the JVM threw; None where Python itself raised."""
    return getattr(error, "_origin", None) or getattr(error, "java_exception", None)
