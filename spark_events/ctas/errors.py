"""The errors of an atomic CREATE TABLE AS SELECT, besides those that Spark raises for the statement."""

from __future__ import annotations

from spark_events.api import SparkEventsError


class CtasError(SparkEventsError):
    """A CREATE TABLE AS SELECT was not committed."""


class NotAtomicError(CtasError):
    """No level, or not the one that is required, can be had for the table; the query was not run."""


class CheckFailedError(CtasError):
    """A check between write and commit failed; the table is as it was."""


class CommitConflictError(CtasError):
    """The table changed while the statement ran; of two writers the first one has won."""


class FencedError(CtasError):
    """Somebody else has ended the transaction: its owner was silent for too long."""


class JournalError(CtasError):
    """The journal cannot be read or written to, or has no such transaction."""
