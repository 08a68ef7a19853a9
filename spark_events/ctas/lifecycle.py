"""The life of a transaction: it begins, its rows are written and checked, it is published, and it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_events.ctas.checks import Check, run_checks
from spark_events.ctas.errors import CtasError, NotAtomicError
from spark_events.ctas.execution import StatementExecution, was_cancelled
from spark_events.ctas.streams import BoundedStream
from spark_events.ctas.transactions.journaled_table import JournaledTable, first_line
from spark_events.ctas.transactions.transaction import Level, Transaction
from spark_events.ctas.two_phase import TwoPhaseCatalogTable, Written
from spark_events.runtime.foreign_errors import with_type
from spark_events.runtime.log_once import logger


class JobStatusHook:
    """A hook, called in the thread that runs the statement, in the order of the methods here.

    Spark's listener bus may drop events, so it never decides the fate of a table. An error in ``on_created``
    or ``on_finished`` fails the statement, unless that is already committed; errors in the other methods
    are logged.
    """

    def on_created(self, job_id: str) -> None:
        """Called when the statement begins; nothing has run yet."""

    def on_finished(self, job_id: str) -> None:
        """Called when all rows are written and have passed their checks."""

    def on_failed(self, job_id: str, error: BaseException) -> None:
        """Called when the statement failed."""

    def on_canceled(self, job_id: str) -> None:
        """Called when the statement was cancelled."""


class CtasJobStatusHook(JobStatusHook):
    """Ties a table to its statement's job (FLIP-305's ``CtasJobStatusHook``).

    Args:
        table: begun with the job, committed when the job finishes, aborted when it fails or is cancelled.

    Attributes:
        committed: what ``commit`` returned; None before.
    """

    def __init__(self, table: TwoPhaseCatalogTable) -> None:
        self._table = table
        self.committed: bool | None = None

    def on_created(self, job_id: str) -> None:
        """Begin the transaction."""
        self._table.begin_transaction()

    def on_finished(self, job_id: str) -> None:
        """Commit it."""
        self.committed = self._table.commit()

    def on_failed(self, job_id: str, error: BaseException) -> None:
        """Abort it."""
        self._table.abort(with_type(error).splitlines()[0])

    def on_canceled(self, job_id: str) -> None:
        """Abort it."""
        self._table.abort("cancelled")


_ATOMIC = "atomic"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a caller demands of a statement besides its table; see ``sql`` for details."""

    checks: Sequence[Check]
    require: str | Level | None
    hooks: Sequence[JobStatusHook]

    def check_table(self, table: JournaledTable) -> None:
        """Raise if a table cannot be made as demanded; nothing has run yet.

        Raises:
            NotAtomicError: its catalog cannot do it; the message says why.
            CtasError: there is no such level.
        """
        if self.require is not None:
            _check_level(table.transaction, self.require)
        if self.checks and table.publishes_by_itself:
            table.written()  # raises an error that says why nothing can be checked


class Lifecycle:
    """Takes one transaction from its beginning to its end.

    The first hook is FLIP-305's, which begins, commits and aborts the table; the caller's hooks follow. The
    execution is the statement's job, which has already begun and writes the rows.
    """

    def __init__(
        self, table: JournaledTable, execution: StatementExecution | BoundedStream, conditions: Conditions
    ) -> None:
        self._table = table
        self._execution = execution
        self._checks = conditions.checks
        self._hooks = conditions.hooks
        self._job_id = execution.job_id
        self._table_hook = CtasJobStatusHook(table)

    def run(self) -> tuple[Written, bool]:
        """Make the table; whatever happens, it ends up complete, or as it was before.

        Returns:
            How much was written, and whether this transaction made the table: False if ``IF NOT EXISTS``
            found that somebody else was faster.
        """
        try:
            for hook in (self._table_hook, *self._hooks):
                hook.on_created(self._job_id)
            written = self._execution.write(self._table)
            run_checks(self._checks, self._table, written)
            self._table.prepare()
            self._table_hook.on_finished(self._job_id)  # this commits the table
        except BaseException as error:
            self._roll_back(error)
            raise
        self._report_commit()
        return written, bool(self._table_hook.committed)

    def _roll_back(self, error: BaseException) -> None:
        from py4j.protocol import Py4JJavaError

        is_cancelled = was_cancelled(error)
        try:
            self._execution.stop(error)
        finally:
            for hook in (*self._table_hooks(), *self._hooks):
                try:
                    hook.on_canceled(self._job_id) if is_cancelled else hook.on_failed(self._job_id, error)
                except Py4JJavaError as reason:
                    logger.error(
                        "%s: the end of the statement could not be recorded: %s; the next statement, or "
                        "spark-events ctas recover, ends its transaction",
                        self._table.transaction.path,
                        first_line(reason),
                    )
                except Exception:
                    logger.exception("%s raised while a statement was ending", type(hook).__name__)

    def _table_hooks(self) -> Sequence[JobStatusHook]:
        """Return the hook that rolls the table back, unless something may still write or publish it."""
        if self._execution.is_over:
            return (self._table_hook,)
        logger.error(
            "%s: the statement was cancelled, but Spark is still busy with it; its transaction stays "
            "open until the next statement, or spark-events ctas recover, after the end of this application",
            self._table.transaction.path,
        )
        return ()

    def _report_commit(self) -> None:
        for hook in self._hooks:
            try:
                hook.on_finished(self._job_id)
            except Exception:
                path = self._table.transaction.path
                logger.exception("%s raised after %s was committed", type(hook).__name__, path)


def _check_level(transaction: Transaction, require: str | Level) -> None:
    required = require.value if isinstance(require, Level) else require
    allowed = (_ATOMIC, *(level.value for level in Level))
    if required not in allowed:
        raise CtasError(f"require={require!r} is not valid; expected one of {', '.join(allowed)}")
    level = transaction.level
    has_gap = level is Level.RENAME and transaction.previous is not None
    is_atomic = level is not Level.RECOVERABLE and not has_gap
    if is_atomic if required == _ATOMIC else required == level.value:
        return
    reason = (
        "for a moment during the replacement, no table has its name"
        if has_gap
        else "its catalog supports no other level"
    )
    raise NotAtomicError(
        f"{transaction.path} can only be created at level {level.value!r}, but require={required!r}: "
        f"{reason}; nothing was run"
    )
