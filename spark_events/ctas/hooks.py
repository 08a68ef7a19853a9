"""Hooks called as a statement's job progresses (Flink's ``JobStatusHook``)."""

from __future__ import annotations

from spark_events.ctas.two_phase import TwoPhaseCatalogTable


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
        self._table.abort(f"{type(error).__name__}: {error}".splitlines()[0])

    def on_canceled(self, job_id: str) -> None:
        """Abort it."""
        self._table.abort("cancelled")
