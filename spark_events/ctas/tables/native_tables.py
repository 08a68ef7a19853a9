"""Tables of catalogs that write and publish by themselves, atomically (like Delta and Iceberg) or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.ctas.errors import CtasError, NotAtomicError
from spark_events.ctas.tables.publisher import Publisher, not_made_here
from spark_events.ctas.transactions.transaction import Level, State, TablePath, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.runtime.log_once import logger

_SESSION_CATALOG = "spark_catalog"
_DELTA_LOG = "_delta_log"


class NativePublisher(Publisher):
    """Tables written by connectors' catalogs in their own way, with the transaction's id as a property."""

    name = "native"
    commits_on_write = True

    def __init__(self, spark: Any, entry: Any) -> None:
        super().__init__(spark, entry)
        self._catalogs = entry.catalogTables()

    def catalog_id(self, catalog: str) -> str:
        if catalog == _SESSION_CATALOG:
            return super().catalog_id(catalog)
        return f"catalog {catalog}" if self._catalogs.has(catalog) else ""

    def existing_table(self, definition: TableDefinition) -> Mapping[str, Any] | None:
        return self._state(definition.path)

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        return Level.NATIVE if _is_staged(definition.fields) else Level.RECOVERABLE

    def stage(self, txid: str, definition: TableDefinition) -> tuple[str, str]:
        fields = definition.fields
        if definition.path.catalog != _SESSION_CATALOG or fields["location"]:
            return "", fields["location"] or ""
        path = definition.path
        folder = self._storage.qualified(self._tables.defaultLocation(path.database, path.name))
        # Only a folder that does not exist yet can belong to this transaction, and be removed with it.
        return ("" if self._storage.exists(folder) else folder), folder

    def check_own(self, transaction: Transaction) -> None:
        if not transaction.stage:
            return
        database, name = transaction.path.database, transaction.path.name
        is_own = self._tables.hasDatabase(database) and (
            transaction.stage == self._storage.qualified(self._tables.defaultLocation(database, name))
        )
        if not is_own:
            raise not_made_here(transaction, "stage", transaction.stage)

    def write(self, transaction: Transaction, statement: Any) -> Written:
        return Written(**orjson.loads(statement.writeTable(None, transaction.txid)))

    def read(self, transaction: Transaction) -> Any:
        raise NotAtomicError(
            f"{transaction.path}: its catalog writes and publishes in one step, so nothing can be checked in "
            "between; leave out the checks, or create the table in the session catalog"
        )

    def publish(self, transaction: Transaction) -> None:
        if not self.is_published(transaction):
            raise CtasError(
                f"{transaction.path}: its catalog does not have the table of transaction {transaction.txid}"
            )

    def is_published(self, transaction: Transaction) -> bool:
        if transaction.level is Level.RECOVERABLE and transaction.state in (State.INTENT, State.ABORTING):
            return False  # the table may exist, half filled
        return self._is_there(transaction)

    def discard(self, transaction: Transaction) -> None:
        path = transaction.path
        if transaction.level is Level.RECOVERABLE and self._is_there(transaction):
            self._catalogs.drop(path.catalog, path.database, path.name)
        self._remove_files(transaction)

    def _is_there(self, transaction: Transaction) -> bool:
        if self.catalog_id(transaction.path.catalog) != transaction.catalog_id:
            return False
        state = self._state(transaction.path)
        return state is not None and state["txid"] == transaction.txid

    def _remove_files(self, transaction: Transaction) -> None:
        """Remove what a killed driver left in a folder that did not exist when it began."""
        folder = transaction.stage
        if not folder or not self._storage.exists(folder):
            return
        log = self._storage.list(f"{folder}/{_DELTA_LOG}")
        if any(name.endswith(".json") for name in log):
            logger.warning(
                "%s contains a Delta table, so the files of transaction %s stay", folder, transaction.txid
            )
            return
        if self._storage.newest(folder) > transaction.at_ms:
            logger.warning(
                "%s was written to after transaction %s ended, so its files stay", folder, transaction.txid
            )
            return
        self._storage.delete(folder)

    def _state(self, path: TablePath) -> dict[str, Any] | None:
        state: dict[str, Any] | None = orjson.loads(
            self._catalogs.state(path.catalog, path.database, path.name)
        )
        return state


def _is_staged(fields: Mapping[str, Any]) -> bool:
    """Return whether the catalog stages the table; one that extends Spark's does so only for its own."""
    if not fields["staging"]:
        return False
    if fields["catalog"] != _SESSION_CATALOG:
        return True
    provider = str(fields["provider"] or "").lower()
    return bool(provider) and provider in fields["catalog_class"].lower()
