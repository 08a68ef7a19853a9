"""Tables of the session catalog: written to a folder of their own, published by one call to the catalog.

``file_tables.py`` and ``hive_tables.py`` contain what depends on the format.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.ctas.errors import CommitConflictError, CtasError, NotAtomicError
from spark_events.ctas.fault_points import reached
from spark_events.ctas.tables.publisher import (
    TXID,
    Publisher,
    dropped_meanwhile,
    not_made_here,
    replaced_meanwhile,
    written_meanwhile,
)
from spark_events.ctas.transactions.transaction import Level, TablePath, Transaction, is_txid
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.spark.sql_text import quoted

_FILES = "files"
"""Of a table that is replaced by what its own rows become: a digest of its files, before these are read."""
_PARTITIONS_IN_CATALOG = "spark.sql.hive.manageFilesourcePartitions"


class SessionPublisher(Publisher):
    """What tables of files and tables of Hive's own formats have in common."""

    def __init__(self, spark: Any, entry: Any) -> None:
        super().__init__(spark, entry)
        self._hive_tables = entry.hiveTables()

    def existing_table(self, definition: TableDefinition) -> Mapping[str, Any] | None:
        path, statement = definition.path, definition.statement
        state = self._state(path, path.name)
        if state is not None and state["location"] and statement and definition.purpose.replaces:
            table = path.database, path.name, state["location"]
            if statement.reads(*table):
                state[_FILES] = self._digest(path)
                statement.refresh(*table)  # now, so that it finds no fewer files than these
        return state

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        if location := definition.fields["location"]:
            self._check_location(location, previous)
        return Level.POINTER

    def stage(self, txid: str, definition: TableDefinition) -> tuple[str, str]:
        if location := definition.fields["location"]:
            parent, name = posixpath.split(self._storage.qualified(location).rstrip("/"))
            return f"{parent}/.{name}-{txid}", self._storage.qualified(location)
        home = self._storage.qualified(self._tables.databaseLocation(definition.path.database))
        stage = f"{home}/{definition.path.name}-{txid}"
        return stage, stage

    def check_own(self, transaction: Transaction) -> None:
        txid, name = transaction.txid, transaction.path.name
        if transaction.moves_files:
            parent, base = posixpath.split(transaction.location.rstrip("/"))
            is_own = transaction.stage == f"{parent}/.{base}-{txid}"
        else:
            is_own = posixpath.basename(transaction.stage) == f"{name}-{txid}"
        if not is_txid(txid) or not is_own:
            raise not_made_here(transaction, "stage", transaction.stage)
        if transaction.checkpoint and posixpath.basename(transaction.checkpoint) != f"{txid}.checkpoint":
            raise not_made_here(transaction, "checkpoint", transaction.checkpoint)

    def publish(self, transaction: Transaction) -> None:
        if self.is_published(transaction):
            return
        if transaction.moves_files and self._storage.exists(transaction.stage):
            self._move_to_location(transaction)
        if transaction.previous is None:
            self._create(transaction)
        else:
            self._check_unchanged(transaction)
            self._replace(transaction)

    def is_published(self, transaction: Transaction) -> bool:
        if transaction.catalog_id != self.catalog_id(transaction.path.catalog):
            return False
        database = transaction.path.database
        if not self._tables.hasDatabase(database):
            return False
        if self._own_state(transaction) is not None:
            return True
        if transaction.owner.application == self._application:
            return False
        # If its driver has been gone for some time, the table may have been renamed since.
        return self._tables.find(database, transaction.txid, transaction.hidden_name) is not None

    def finish(self, transaction: Transaction) -> None:
        database, name = transaction.path.database, transaction.path.name
        state = self._own_state(transaction)
        if state is None:
            return  # it was dropped, renamed or replaced since
        if self._in_hive:
            if transaction.table["managed"] and state["type"] != "MANAGED":
                self._hive_tables.setManaged(database, name, True)
            self._tables.drop(database, transaction.hidden_name)
        if transaction.checkpoint:
            self._storage.delete(transaction.checkpoint)
        if transaction.previous is None:
            self._add_partitions(transaction)
        self._tables.updateStatistics(database, name)
        self._tables.refresh(database, name)

    def discard(self, transaction: Transaction) -> None:
        if self.is_published(transaction):
            raise CtasError(
                f"a table uses the files of transaction {transaction.txid}, so they are not removed; "
                "spark-events ctas recover ends the transaction"
            )
        if self._in_hive and self._tables.hasDatabase(transaction.path.database):
            self._tables.drop(transaction.path.database, transaction.hidden_name)
        was_moved = transaction.moves_files and not self._storage.exists(transaction.stage)
        if was_moved and transaction.written and self._storage.exists(transaction.location):
            self._move_back(transaction)
        self._storage.delete(transaction.stage)
        if transaction.checkpoint:
            self._storage.delete(transaction.checkpoint)

    def has_leftovers(self, transaction: Transaction) -> bool:
        previous = transaction.previous
        if previous is None:
            return False
        return bool(
            previous["type"] == "MANAGED" or previous["partition_by"] or transaction.level is Level.RENAME
        )

    def collect(self, transaction: Transaction) -> None:
        previous = transaction.previous or {}
        if transaction.level is Level.RENAME and self._tables.hasDatabase(transaction.path.database):
            self._tables.drop(transaction.path.database, transaction.old_name)
        state = self._state(transaction.path, transaction.path.name)
        if state is not None and state["txid"] == transaction.txid:
            # Those who began to read the previous table have asked for its partitions by now.
            self._add_partitions(transaction)
        is_used = state is not None and state["location"] == previous.get("location")
        if previous.get("type") == "MANAGED" and not is_used:
            self._check_managed(transaction, previous["location"])
            self._storage.delete(previous["location"])

    def lacks_partitions(self, transaction: Transaction) -> bool:
        is_here = transaction.catalog_id == self.catalog_id(transaction.path.catalog)
        has_partitions = is_here and transaction.table.get("partition_by")
        state = self._own_state(transaction) if has_partitions else None
        if state is None or not self._tables.lacksPartitions(
            transaction.path.database, transaction.path.name
        ):
            return False
        files, _ = self._storage.amount(state["location"])
        return bool(files)

    def repair(self, transaction: Transaction) -> None:
        self._tables.addPartitions(quoted([transaction.path.database, transaction.path.name]))

    # -- steps -------------------------------------------------------------------------------------------

    def _create(self, transaction: Transaction) -> None:
        raise NotImplementedError

    def _stand_in(self, transaction: Transaction) -> None:
        """Make the table under its hidden name if the catalog needs it for the replacement."""
        raise NotImplementedError

    def _replace(self, transaction: Transaction) -> None:
        path, name = transaction.path, transaction.path.name
        if not self._in_hive:
            managed = transaction.table["managed"]
            self._tables.replace(described(transaction), name, transaction.location, managed)
            return
        self._stand_in(transaction)
        if transaction.level is Level.POINTER:
            self._hive_tables.replace(path.database, name, transaction.hidden_name)
            return
        state = self._state(path, name)
        if state is not None:
            if state["type"] == "MANAGED":  # the metastore moves the files of a table that owns them
                self._hive_tables.setManaged(path.database, name, False)
            self._hive_tables.rename(path.database, name, transaction.old_name)
        self._hive_tables.rename(path.database, transaction.hidden_name, name)

    def _add_partitions(self, transaction: Transaction) -> None:
        """Register the partitions with the catalog; until then, Spark finds them by their folders.

        A second time it changes nothing.
        """
        if transaction.table["partition_by"] and self._spark.conf.get(_PARTITIONS_IN_CATALOG) == "true":
            self._register_partitions(transaction.path.database, transaction.path.name)

    def _register_partitions(self, database: str, name: str) -> None:
        self._tables.dropStalePartitions(database, name, self._storage)
        reached("before_partitions")
        self._tables.addPartitions(quoted([database, name]))

    def _written(self, metrics: str, transaction: Transaction) -> Written:
        files, size = self._storage.amount(transaction.stage)
        return Written(orjson.loads(metrics).get("rows"), size, files)

    # -- what the catalog has ----------------------------------------------------------------------------

    def _state(self, path: TablePath, name: str) -> dict[str, Any] | None:
        if not self._tables.hasDatabase(path.database):
            return None
        state: dict[str, Any] | None = orjson.loads(self._tables.state(path.database, name))
        if state and state["location"]:
            state["location"] = self._storage.qualified(state["location"])
        return state

    def _digest(self, path: TablePath) -> str:
        digest: str = self._tables.digest(path.database, path.name, self._storage)
        return digest

    def _own_state(self, transaction: Transaction) -> dict[str, Any] | None:
        """Return what is known about a transaction's table; None if its name is free or another table's."""
        state = self._state(transaction.path, transaction.path.name)
        return state if state is not None and state["txid"] == transaction.txid else None

    def _check_unchanged(self, transaction: Transaction) -> None:
        previous = transaction.previous or {}
        state = self._state(transaction.path, transaction.path.name)
        if state is None:
            if self._state(transaction.path, transaction.old_name) is None:
                raise dropped_meanwhile(transaction.path)
        elif (state["location"], state["txid"]) != (previous["location"], previous["txid"]):
            raise replaced_meanwhile(transaction.path, state["txid"] or "a writer without a transaction")
        elif _FILES in previous and previous[_FILES] != self._digest(transaction.path):
            raise written_meanwhile(transaction.path)

    def _check_managed(self, transaction: Transaction, location: str) -> None:
        """Raise if the files of the previous table are not where a catalog keeps those of its own tables."""
        database = transaction.path.database
        homes = [str(self._spark.conf.get("spark.sql.warehouse.dir"))]
        if self._tables.hasDatabase(database):
            homes.append(str(self._tables.databaseLocation(database)))
        below = tuple(self._storage.qualified(home).rstrip("/") + "/" for home in homes)
        if not self._storage.qualified(location).startswith(below):
            raise not_made_here(transaction, "location of the previous table", location)

    # -- LOCATION ----------------------------------------------------------------------------------------

    def _check_location(self, location: str, previous: Mapping[str, Any] | None) -> None:
        if not self._storage.renames(location):
            raise NotAtomicError(
                f"LOCATION {location!r}: its file system cannot rename a folder atomically, so it cannot "
                "publish the table atomically; leave out LOCATION, and the table gets a folder of its own"
            )
        if previous is not None and previous["location"] == self._storage.qualified(location):
            raise NotAtomicError(
                f"LOCATION {location!r} has the files of the table to replace, and both tables cannot be "
                "there at once; leave out LOCATION, or name another folder"
            )
        if not self._storage.isEmpty(location):
            raise CtasError(
                f"LOCATION {location!r} is not empty, and its files are not touched; "
                "name an empty or a new folder"
            )

    def _move_to_location(self, transaction: Transaction) -> None:
        if not self._storage.isEmpty(transaction.location):
            raise CommitConflictError(
                f"files appeared in LOCATION {transaction.location!r} while the table was written; they are "
                "not touched, and the table is not published"
            )
        self._storage.rename(transaction.stage, transaction.location)

    def _move_back(self, transaction: Transaction) -> None:
        """Undo the rename to LOCATION, unless somebody has put more there."""
        files, size = self._storage.amount(transaction.location)
        if (files, size) != (transaction.written.get("files"), transaction.written.get("bytes")):
            raise CtasError(
                f"{transaction.location} has {files} files of {size} bytes, and transaction "
                f"{transaction.txid} wrote {transaction.written.get('files')} of "
                f"{transaction.written.get('bytes')}: another writer uses the folder, so nothing "
                "in it is deleted; remove unwanted files by hand"
            )
        self._storage.rename(transaction.location, transaction.stage)


def described(transaction: Transaction) -> str:
    """Return the table of a transaction in the form that ``SessionTables.java`` takes."""
    fields = {**transaction.table, "database": transaction.path.database}
    fields["properties"] = {**fields["properties"], TXID: transaction.txid}
    return orjson.dumps(fields).decode()
