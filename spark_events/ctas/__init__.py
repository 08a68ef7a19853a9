"""Atomic CREATE TABLE AS SELECT (FLIP-305)."""

from __future__ import annotations

from typing import Any

from spark_events.ctas.checks import Check, each_row, row_count
from spark_events.ctas.errors import (
    CheckFailedError,
    CommitConflictError,
    CtasError,
    FencedError,
    JournalError,
    NotAtomicError,
)
from spark_events.ctas.lifecycle import CtasJobStatusHook, JobStatusHook
from spark_events.ctas.statement import CtasResult, create_table_as, sql
from spark_events.ctas.transactions.recovery import Recovered
from spark_events.ctas.transactions.session_transactions import Transactions, transactions_of
from spark_events.ctas.transactions.transaction import Level, Purpose, State, TablePath, Transaction
from spark_events.ctas.two_phase import TableDefinition, TwoPhaseCatalog, TwoPhaseCatalogTable, Written

__all__ = [
    "Check",
    "CheckFailedError",
    "CommitConflictError",
    "CtasError",
    "CtasJobStatusHook",
    "CtasResult",
    "FencedError",
    "JobStatusHook",
    "JournalError",
    "Level",
    "NotAtomicError",
    "Purpose",
    "Recovered",
    "State",
    "TableDefinition",
    "TablePath",
    "Transaction",
    "Transactions",
    "TwoPhaseCatalog",
    "TwoPhaseCatalogTable",
    "Written",
    "create_table_as",
    "each_row",
    "row_count",
    "sql",
    "table_of",
    "transactions_of",
]


def table_of(spark: Any, descriptor: str) -> TwoPhaseCatalogTable:
    """Return the table of a descriptor, in a process that may be another one than began it.

    Args:
        spark: a SparkSession with the same catalogs and journal.
        descriptor: what ``TwoPhaseCatalogTable.descriptor`` returned.

    Raises:
        ValueError: it is not a descriptor.
        JournalError: the journal does not know the transaction.
    """
    return transactions_of(spark).table_of(descriptor)
