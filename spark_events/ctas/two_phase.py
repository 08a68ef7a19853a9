"""The interface between a statement and a catalog: a table that comes to be in two phases (FLIP-305)."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from spark_events.ctas.transaction import Level, Purpose, TablePath


@dataclass(frozen=True, slots=True)
class Written:
    """How much was written.

    Attributes:
        rows: how many rows; None where the catalog does not tell.
        bytes: how large its files are together; None where there are none, or it does not tell.
        files: how many files there are; None as above.
    """

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a statement makes, as Spark's parser and analyser have it (FLIP-305's ``CatalogBaseTable``).

    Attributes:
        path: the table.
        purpose: what is to be done where there is such a table.
        fields: format, columns, partitions, buckets, options, properties, comment and location.
        statement: ``CreateStatement.java``, which writes the rows; None where none are to be written.
    """

    path: TablePath
    purpose: Purpose
    fields: Mapping[str, Any]
    statement: Any = None


class TwoPhaseCatalogTable(abc.ABC):
    """A table that nobody sees until it is committed (FLIP-305's ``TwoPhaseCatalogTable``).

    The order is ``begin_transaction``, ``write``, ``prepare``, then ``commit``; ``abort`` may come at any
    time after the first, also twice, and also in another process that has the descriptor alone.
    """

    @property
    @abc.abstractmethod
    def level(self) -> Level:
        """How it is all or nothing."""

    @property
    @abc.abstractmethod
    def txid(self) -> str:
        """The transaction's id."""

    @abc.abstractmethod
    def descriptor(self) -> str:
        """Return JSON from which ``spark_events.ctas.table_of`` makes the same table in another process."""

    @abc.abstractmethod
    def begin_transaction(self) -> None:
        """Write down what is intended; nothing is written before.

        Raises:
            JournalError: it cannot be written down.
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
        """Write down that all rows are there, and may be published."""

    @abc.abstractmethod
    def commit(self) -> bool:
        """Publish the table. Calling it again changes nothing.

        Returns:
            Whether it is there because of this transaction: False where IF NOT EXISTS found that somebody
            else was faster.

        Raises:
            FencedError: somebody else has ended the transaction.
            CommitConflictError: the table changed since the beginning.
            pyspark.errors.AnalysisException: there is such a table now.
        """

    @abc.abstractmethod
    def abort(self, reason: str = "") -> None:
        """Remove all that was written. What has been committed stays."""


class TwoPhaseCatalog(Protocol):
    """What a catalog implements (FLIP-305's ``Catalog.twoPhaseCreateTable``)."""

    def create_two_phase_table(
        self, path: TablePath, table: TableDefinition, ignore_if_exists: bool, is_streaming: bool
    ) -> TwoPhaseCatalogTable | None:
        """Return the table of a new transaction, which has not begun.

        None where there is such a table, and that is as good. A catalog that has no way to make it does not
        answer with None, as FLIP-305 has it, but says why.

        Args:
            path: the table.
            table: what it will be.
            ignore_if_exists: whether a table of that name that is there is as good.
            is_streaming: whether its rows come of a stream that ends.

        Raises:
            NotAtomicError: the catalog has no way to make it.
        """
