"""Hooks that are called as a statement's job goes on (Flink's ``JobStatusHook``)."""

from __future__ import annotations

from spark_events.ctas.two_phase import TwoPhaseCatalogTable


class JobStatusHook:
    """Called by whoever runs the statement, in its thread, and in the order of the methods here.

    Spark's listener bus may drop what it is told, so it never decides what becomes of a table. What
    ``on_created`` or ``on_finished`` raises fails the statement, unless it is committed already; what the
    others raise is logged.
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
    """Joins a statement's job and its table (FLIP-305's ``CtasJobStatusHook``).

    Args:
        table: begins with the job, is committed when it finishes, and aborted when it does not.

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
        self._table.abort(f"{type(error).__name__}: {error}".splitlines()[0])

    def on_canceled(self, job_id: str) -> None:
        """Abort it."""
        self._table.abort("cancelled")
