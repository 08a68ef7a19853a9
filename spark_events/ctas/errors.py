"""What an atomic CREATE TABLE AS SELECT raises, besides what Spark raises for the statement itself.

* SparkEventsError
    * CtasError
        * NotAtomicError       no level, or not the one that was required, can be had for this table
        * CheckFailedError     what was written is not what it should be
        * CommitConflictError  somebody else changed the table since the statement began
        * FencedError          somebody else has ended this transaction: its owner was silent for too long
        * JournalError         the journal cannot be read, or has no such transaction
"""

from __future__ import annotations

from spark_events.api import SparkEventsError


class CtasError(SparkEventsError):
    """A CREATE TABLE AS SELECT was not committed."""


class NotAtomicError(CtasError):
    """The table cannot be made as the statement demands; the query was not run."""


class CheckFailedError(CtasError):
    """A check between write and commit failed; the table is as it was."""


class CommitConflictError(CtasError):
    """The table changed while the statement ran; of two writers the first one has won."""


class FencedError(CtasError):
    """The transaction was ended by somebody else, who had to think that its driver is dead."""


class JournalError(CtasError):
    """The journal cannot be used, or knows no such transaction."""
