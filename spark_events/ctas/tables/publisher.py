"""What a catalog does for a transaction, in steps that whoever recovers it can repeat."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from spark_events.ctas.errors import CommitConflictError, JournalError
from spark_events.ctas.transactions.transaction import Level, TablePath, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written

TXID = "ctas.txid"
"""The property of a table that tells which transaction made it."""


class Publisher(abc.ABC):
    """Writes, publishes and removes the table of a transaction in one kind of catalog.

    Args:
        spark: the session.
        entry: its ``Entry.java``.

    Attributes:
        name: its name in the journal.
        commits_on_write: whether its catalog publishes what it writes at once.
    """

    name = ""
    commits_on_write = False

    def __init__(self, spark: Any, entry: Any) -> None:
        self._spark = spark
        self._entry = entry
        self._storage = entry.storage()
        self._tables = entry.sessionTables()
        self._in_hive = bool(self._tables.isHive())
        self._application = str(spark.sparkContext.applicationId)

    def catalog_id(self, catalog: str) -> str:
        """Return what distinguishes a catalog from others of its name; empty if this session lacks it."""
        return "hive" if self._in_hive else f"memory {self._application}"

    @abc.abstractmethod
    def existing_table(self, definition: TableDefinition) -> Mapping[str, Any] | None:
        """Return what is known about the existing table; None if there is none."""

    @abc.abstractmethod
    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        """Return how the table can be made atomically.

        Raises:
            NotAtomicError: it cannot be made, and why.
            CtasError: something is in its way.
        """

    @abc.abstractmethod
    def stage(self, txid: str, definition: TableDefinition) -> tuple[str, str]:
        """Return where the rows are written to, and where the table's files will lie."""

    @abc.abstractmethod
    def write(self, transaction: Transaction, statement: Any) -> Written:
        """Run the query and write its rows."""

    @abc.abstractmethod
    def read(self, transaction: Transaction) -> Any:
        """Return what was written, as a DataFrame."""

    @abc.abstractmethod
    def publish(self, transaction: Transaction) -> None:
        """Publish the table; a second call changes nothing."""

    @abc.abstractmethod
    def is_published(self, transaction: Transaction) -> bool:
        """Return whether the catalog has the table of this transaction."""

    def check_own(self, transaction: Transaction) -> None:
        """Check that the folders of a transaction are such as this publisher makes.

        They are deleted and moved with the rights of whoever recovers it, and others may have written to the
        journal.

        Raises:
            JournalError: one is not.
        """

    def finish(self, transaction: Transaction) -> None:
        """Do what can wait until the table is there."""

    @abc.abstractmethod
    def discard(self, transaction: Transaction) -> None:
        """Remove what was written for a table that was not published."""

    def has_leftovers(self, transaction: Transaction) -> bool:
        """Return whether anything of the previous table is left for those who still read it."""
        return False

    def collect(self, transaction: Transaction) -> None:
        """Remove the remains of the previous table."""

    def lacks_partitions(self, transaction: Transaction) -> bool:
        """Return whether readers see none of the partitions that the published table has files of."""
        return False

    def repair(self, transaction: Transaction) -> None:
        """Register the partitions that the table has files of."""


def not_made_here(transaction: Transaction, what: str, folder: str) -> JournalError:
    """Return the error for a transaction with a folder that no transaction has."""
    return JournalError(
        f"transaction {transaction.txid} of {transaction.path}: its entry in the journal has the {what} "
        f"{folder!r}, which is not where transactions have one, so nothing is moved or deleted; whoever can "
        "write to the journal may have put it there: look at its entries and remove them by hand"
    )


def dropped_meanwhile(path: TablePath) -> CommitConflictError:
    """Return the error for a table that was to be replaced and is gone."""
    return CommitConflictError(f"{path} was dropped while its replacement was written; it stays dropped")


def created_meanwhile(path: TablePath) -> CommitConflictError:
    """Return the error for a table that was not there, and that somebody else has created."""
    return CommitConflictError(
        f"{path} was created by another writer while its replacement was written; that one stays; run the "
        "statement again to replace it"
    )


def replaced_meanwhile(path: TablePath, winner: str = "") -> CommitConflictError:
    """Return the error for a table that somebody else has replaced."""
    by = f", by {winner}" if winner else ""
    return CommitConflictError(
        f"{path} was replaced while this replacement was written{by}; the first one stays; run the "
        "statement again to replace it"
    )


def written_meanwhile(path: TablePath) -> CommitConflictError:
    """Return the error for a table that a query reads and replaces, and others have written to."""
    return CommitConflictError(
        f"{path} stays as it is: its replacement reads it, and its files have changed since then, as by an "
        "INSERT; run the statement again"
    )
