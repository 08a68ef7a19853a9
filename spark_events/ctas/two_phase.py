"""The interface between a statement and a catalog: a table made in two phases (FLIP-305)."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from spark_events.ctas.transactions.transaction import Level, Purpose, TablePath


@dataclass(frozen=True, slots=True)
class Written:
    """How much was written.

    Attributes:
        rows: how many rows; None if the catalog does not say.
        bytes: the total size of its files; None if there are none, or the catalog does not say.
        files: how many files there are; None as above.
    """

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a statement makes, according to Spark's parser and analyzer (FLIP-305's ``CatalogBaseTable``).

    Attributes:
        path: the table.
        purpose: what to do if there is such a table.
        fields: format, columns, partitions, buckets, options, properties, comment and location.
        statement: ``CreateStatement.java``, which writes the rows; None if no rows are to be written.
    """

    path: TablePath
    purpose: Purpose
    fields: Mapping[str, Any]
    statement: Any = None


class TwoPhaseCatalogTable(abc.ABC):
    """A table that nobody sees until it is committed (FLIP-305's ``TwoPhaseCatalogTable``).

    The order is ``begin_transaction``, ``write``, ``prepare``, then ``commit``. ``abort`` may come at any
    time after the first, even twice, and even in another process that has only the descriptor.
    """

    @property
    @abc.abstractmethod
    def level(self) -> Level:
        """How it is made atomic."""

    @property
    @abc.abstractmethod
    def txid(self) -> str:
        """The transaction's id."""

    @abc.abstractmethod
    def descriptor(self) -> str:
        """Return JSON from which ``spark_events.ctas.table_of`` makes the same table in another process."""

    @abc.abstractmethod
    def begin_transaction(self) -> None:
        """Record the intention in the journal, before anything else is written.

        Raises:
            JournalError: it cannot be recorded.
        """

    @abc.abstractmethod
    def write(self) -> Written:
        """Run the query, once, and write its rows where nobody sees them."""

    @abc.abstractmethod
    def written(self) -> Any:
        """Return what was written as a DataFrame, to be checked before it is published.

        Raises:
            NotAtomicError: the catalog shows nothing before it has committed.
        """

    @abc.abstractmethod
    def prepare(self) -> None:
        """Record that all rows are written and may be published."""

    @abc.abstractmethod
    def commit(self) -> bool:
        """Publish the table. Calling it again changes nothing.

        Returns:
            Whether this transaction published it: False if ``IF NOT EXISTS`` found that somebody else was
            faster.

        Raises:
            FencedError: somebody else has ended the transaction.
            CommitConflictError: the table changed since the beginning.
            pyspark.errors.AnalysisException: there is such a table now.
        """

    @abc.abstractmethod
    def abort(self, reason: str = "") -> None:
        """Remove everything that was written, unless it has been committed."""


class TwoPhaseCatalog(Protocol):
    """What a catalog implements (FLIP-305's ``Catalog.twoPhaseCreateTable``)."""

    def create_two_phase_table(
        self, path: TablePath, table: TableDefinition, ignore_if_exists: bool, is_streaming: bool
    ) -> TwoPhaseCatalogTable | None:
        """Return the table of a new transaction, which has not begun.

        None if there is such a table and that will do. If a catalog has no way to make the table, it does
        not return None, as in FLIP-305, but raises an error that says why.

        Args:
            path: the table.
            table: what it will be.
            ignore_if_exists: whether an existing table of that name will do.
            is_streaming: whether its rows come from a bounded stream.

        Raises:
            NotAtomicError: the catalog has no way to make it.
        """
