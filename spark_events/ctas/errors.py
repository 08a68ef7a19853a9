"""The errors of an atomic CREATE TABLE AS SELECT, besides those that Spark raises for the statement."""

from __future__ import annotations

from spark_events.api import SparkEventsError


class CtasError(SparkEventsError):
    """The error of a CREATE TABLE AS SELECT that was not committed."""


class NotAtomicError(CtasError):
    """The error of a table that cannot have any level, or the required one; the query was not run."""


class CheckFailedError(CtasError):
    """The error of a failed check between write and commit; the table is unchanged."""


class CommitConflictError(CtasError):
    """The error of a table that changed while the statement ran; of two writers, the first wins."""


class FencedError(CtasError):
    """The error of a transaction that somebody else ended, because its owner was silent for too long."""


class JournalError(CtasError):
    """The journal cannot be read or written to, or has no such transaction."""
