"""Tables of a database: written under another name, then published in one database transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.ctas.errors import CtasError, NotAtomicError
from spark_events.ctas.tables.publisher import Publisher, dropped_meanwhile, replaced_meanwhile
from spark_events.ctas.transactions.transaction import Level, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.spark.sql_text import quoted

_TRANSACTIONAL = {"jdbc:postgresql:": "PostgreSQL", "jdbc:derby:": "Derby"}


class JdbcPublisher(Publisher):
    """Tables of Spark's JDBC catalogs.

    The database itself records how a transaction ended (in ``spark_events_ctas``, in the table's schema), so
    that a commit and an abort of the same transaction cannot both succeed.
    """

    name = "jdbc"

    def catalog_id(self, catalog: str) -> str:
        if not self._entry.catalogTables().has(catalog):
            return ""
        # What follows the database's name in a URL may be a password.
        return hashlib.sha256(str(self._database(catalog).url()).split("?")[0].encode()).hexdigest()[:16]

    def existing_table(self, definition: TableDefinition) -> Mapping[str, Any] | None:
        path = definition.path
        database = self._database(path.catalog)
        if not database.exists(path.database, path.name):
            return None
        return {"type": "TABLE", "location": "", "txid": database.maker(path.database, path.name)}

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        url = str(self._database(definition.path.catalog).url())
        if not url.startswith(tuple(_TRANSACTIONAL)):
            kind = ":".join(url.split(":")[:2])
            raise NotAtomicError(
                f"{definition.path}: publishing renames the table in a transaction, which is known "
                f"to work for {' and '.join(_TRANSACTIONAL.values())}, but not for {kind}; use spark.sql "
                "or another catalog"
            )
        return Level.TRANSACTIONAL

    def stage(self, txid: str, definition: TableDefinition) -> tuple[str, str]:
        return "", ""

    def write(self, transaction: Transaction, statement: Any) -> Written:
        return Written(orjson.loads(statement.writeTable(transaction.hidden_name, None)).get("rows"))

    def read(self, transaction: Transaction) -> Any:
        path = transaction.path
        names = (path.catalog, *path.database.split("."), transaction.hidden_name)
        return self._spark.table(quoted(name for name in names if name))

    def publish(self, transaction: Transaction) -> None:
        if self.is_published(transaction):
            return
        path, previous = transaction.path, transaction.previous
        database = self._database(path.catalog)
        if not database.exists(path.database, transaction.hidden_name):
            raise CtasError(f"{path}: its new data, in table {transaction.hidden_name}, no longer exists")
        is_there = database.exists(path.database, path.name)
        if previous is not None:
            if not is_there:
                raise dropped_meanwhile(path)
            if database.maker(path.database, path.name) != previous["txid"]:
                raise replaced_meanwhile(path)
        elif is_there:
            self._entry.alreadyExists(path.database, path.name)
        database.publish(
            path.database, transaction.hidden_name, path.name, previous is not None, transaction.txid
        )

    def is_published(self, transaction: Transaction) -> bool:
        path = transaction.path
        return bool(self._database(path.catalog).mark(path.database, transaction.txid) == "COMMITTED")

    def discard(self, transaction: Transaction) -> None:
        path = transaction.path
        self._database(path.catalog).discard(
            path.database, transaction.hidden_name, path.name, transaction.txid
        )

    def _database(self, catalog: str) -> Any:
        return self._entry.database(catalog)
