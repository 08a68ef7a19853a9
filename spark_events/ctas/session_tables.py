"""Tables of the session catalog: written to a folder of their own, published by one call to the catalog."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.ctas.errors import CommitConflictError, CtasError, NotAtomicError
from spark_events.ctas.publisher import TXID, Publisher
from spark_events.ctas.record import Level, Purpose, TablePath, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.spark.sql_text import quoted

_TYPES_MAY_NOT_CHANGE = "hive.metastore.disallow.incompatible.col.type.changes"
_STANDS_FOR_ALL = "array<string>"
_PARTITIONS_IN_CATALOG = "spark.sql.hive.manageFilesourcePartitions"


class SessionPublisher(Publisher):
    """What tables of files and tables of Hive's own formats have in common.

    Args:
        spark: the session.
        entry: its ``Entry.java``.
    """

    def __init__(self, spark: Any, entry: Any) -> None:
        self._spark = spark
        self._storage = entry.storage()
        self._tables = entry.sessionTables()
        self._in_hive = bool(self._tables.isHive())
        self._application = str(spark.sparkContext.applicationId)

    def catalog_id(self, catalog: str) -> str:
        return "hive" if self._in_hive else f"memory {self._application}"

    def look(self, definition: TableDefinition) -> Mapping[str, Any] | None:
        return self._state(definition.path, definition.path.name)

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

    def publish(self, transaction: Transaction) -> None:
        if self.is_published(transaction):
            return
        if transaction.location != transaction.stage and self._storage.exists(transaction.stage):
            if not self._storage.isEmpty(transaction.location):
                raise CommitConflictError(
                    f"LOCATION {transaction.location!r} got files while the table was written; they are not "
                    "touched, and the table is not published"
                )
            self._storage.rename(transaction.stage, transaction.location)
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
        now = self._state(transaction.path, transaction.path.name)
        if now is not None and now["txid"] == transaction.txid:
            return True
        if transaction.owner.application == self._application:
            return False
        # Where a driver is gone for some time, its table may have been renamed since.
        return self._tables.find(database, transaction.txid, transaction.hidden_name) is not None

    def finish(self, transaction: Transaction) -> None:
        path, name = transaction.path, transaction.path.name
        now = self._state(path, name)
        if now is None or now["txid"] != transaction.txid:
            return  # it was dropped, renamed or replaced since
        if self._in_hive:
            if transaction.table["managed"] and now["type"] != "MANAGED":
                self._tables.setManaged(path.database, name, True)
            self._tables.drop(path.database, transaction.hidden_name)
        if transaction.checkpoint:
            self._storage.delete(transaction.checkpoint)
        if transaction.previous is None:
            self._add_partitions(transaction)
        self._tables.updateStatistics(path.database, name)
        self._tables.refresh(path.database, name)

    def discard(self, transaction: Transaction) -> None:
        if self.is_published(transaction):
            raise CtasError(
                f"a table has the files of transaction {transaction.txid}, so they are not removed; "
                "spark-events ctas recover ends it"
            )
        if self._in_hive and self._tables.hasDatabase(transaction.path.database):
            self._tables.drop(transaction.path.database, transaction.hidden_name)
        moved = transaction.location != transaction.stage and not self._storage.exists(transaction.stage)
        if moved and transaction.written and self._storage.exists(transaction.location):
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
        now = self._state(transaction.path, transaction.path.name)
        if now is not None and now["txid"] == transaction.txid:
            # Who began to read the table before has asked for its partitions by now.
            self._add_partitions(transaction)
        in_use = now is not None and now["location"] == previous.get("location")
        if previous.get("type") == "MANAGED" and not in_use:
            self._storage.delete(previous["location"])

    # -- steps -------------------------------------------------------------------------------------------

    def _create(self, transaction: Transaction) -> None:
        raise NotImplementedError

    def _stand_in(self, transaction: Transaction) -> None:
        """Make the table under its hidden name, where a catalog needs it for the replacement."""
        raise NotImplementedError

    def _replace(self, transaction: Transaction) -> None:
        path, name = transaction.path, transaction.path.name
        if not self._in_hive:
            self._tables.replace(
                _described(transaction), name, transaction.location, transaction.table["managed"]
            )
            return
        self._stand_in(transaction)
        if transaction.level is Level.POINTER:
            self._tables.replaceByRaw(path.database, name, transaction.hidden_name)
            return
        now = self._state(path, name)
        if now is not None:
            if now["type"] == "MANAGED":  # the metastore moves the files of a table that owns them
                self._tables.setManaged(path.database, name, False)
            self._tables.rename(path.database, name, transaction.old_name)
        self._tables.rename(path.database, transaction.hidden_name, name)

    def _add_partitions(self, transaction: Transaction) -> None:
        """Let the catalog know the partitions; until then Spark finds them by their folders."""
        if transaction.table["partition_by"] and self._spark.conf.get(_PARTITIONS_IN_CATALOG) == "true":
            self._tables.dropPartitions(transaction.path.database, transaction.path.name)
            self._tables.addPartitions(quoted([transaction.path.database, transaction.path.name]))

    def _state(self, path: TablePath, name: str) -> dict[str, Any] | None:
        text = self._tables.state(path.database, name) if self._tables.hasDatabase(path.database) else None
        found: dict[str, Any] | None = orjson.loads(text) if text else None
        if found and found["location"]:
            found["location"] = self._storage.qualified(found["location"])
        return found

    def _check_location(self, location: str, previous: Mapping[str, Any] | None) -> None:
        if not self._storage.renames(location):
            raise NotAtomicError(
                f"LOCATION {location!r}: its file system cannot rename a folder in one step, so the table "
                "could not be all or nothing; leave LOCATION out, and it gets a folder of its own"
            )
        if previous is not None and previous["location"] == self._storage.qualified(location):
            raise NotAtomicError(
                f"LOCATION {location!r} is where the table that is to be replaced has its files: both cannot "
                "be there at once; leave LOCATION out, or name another folder"
            )
        if not self._storage.isEmpty(location):
            raise CtasError(
                f"LOCATION {location!r} has files in it, which are not touched; "
                "name a folder that is empty or not there yet"
            )

    def _check_unchanged(self, transaction: Transaction) -> None:
        previous = transaction.previous or {}
        now = self._state(transaction.path, transaction.path.name)
        if now is None:
            if self._state(transaction.path, transaction.old_name) is None:
                raise CommitConflictError(
                    f"{transaction.path} was dropped while its replacement was written; it stays so"
                )
        elif (now["location"], now["txid"]) != (previous["location"], previous["txid"]):
            raise CommitConflictError(
                f"{transaction.path} was replaced while this replacement was written, by "
                f"{now['txid'] or 'a writer without a transaction'}; the first one stays. Run the statement "
                "again if it should win"
            )

    def _move_back(self, transaction: Transaction) -> None:
        """Undo the rename to LOCATION, unless somebody has put more there."""
        files, size = self._storage.amount(transaction.location)
        if (files, size) != (transaction.written.get("files"), transaction.written.get("bytes")):
            raise CtasError(
                f"{transaction.location} has {files} files of {size} bytes, and transaction "
                f"{transaction.txid} wrote {transaction.written.get('files')} of "
                f"{transaction.written.get('bytes')}: somebody else writes there, so nothing of it is "
                "deleted; remove what is not wanted by hand"
            )
        self._storage.rename(transaction.location, transaction.stage)


class FilesPublisher(SessionPublisher):
    """Tables of Parquet, ORC, CSV, JSON and any other format of files."""

    name = "files"

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        if not definition.fields["is_files"]:
            raise NotAtomicError(
                f"format {definition.fields['provider']!r} is no format of files, so Spark's session catalog "
                "cannot publish it at once; for a database, configure a JDBC catalog and create it there"
            )
        super().level(definition, previous)
        if previous is None or not self._in_hive:
            return Level.POINTER
        return Level.POINTER if self._may_become(definition, previous) else Level.RENAME

    def _may_become(self, definition: TableDefinition, previous: Mapping[str, Any]) -> bool:
        """Tell whether the metastore lets a table become another one by one call.

        It does not let it change what it is partitioned by, nor a column take any other type. And of a
        table in a format of Hive's own Spark would take the columns from there.
        """
        fields = definition.fields
        same = all(previous[what] == fields[what] for what in ("partition_by", "partition_types"))
        if not same or previous["provider"] == "hive":
            return False
        if self._spark.sparkContext._jsc.hadoopConfiguration().get(_TYPES_MAY_NOT_CHANGE) == "false":
            return True
        told = fields["data_types"]
        if fields.get("buckets") or not self._tables.isOfHive(fields["provider"]):
            told = [_STANDS_FOR_ALL]
        path = definition.path
        types = orjson.loads(self._tables.metastoreTypes(path.database, path.name))
        return all(old == new for old, new in zip(types, told, strict=False))

    def write(self, transaction: Transaction, statement: Any) -> Written:
        found = orjson.loads(statement.writeFiles(transaction.stage))
        files, size = self._storage.amount(transaction.stage)
        return Written(found.get("rows"), size, files)

    def read(self, transaction: Transaction) -> Any:
        from pyspark.sql.types import StructType

        table = transaction.table
        schema = StructType.fromJson(orjson.loads(table["schema"]))
        reader = self._spark.read.format(table["provider"]).options(**table["options"]).schema(schema)
        return reader.load(transaction.stage)

    def _create(self, transaction: Transaction) -> None:
        # To a metastore, an own folder is the default one: whose data lies elsewhere is external at first.
        managed = transaction.table["managed"] and not self._in_hive
        self._tables.create(_described(transaction), transaction.path.name, transaction.location, managed)

    def _stand_in(self, transaction: Transaction) -> None:
        if self._state(transaction.path, transaction.hidden_name) is None:
            self._tables.create(_described(transaction), transaction.hidden_name, transaction.location, False)


class HivePublisher(SessionPublisher):
    """Tables of Hive's own formats: made under another name, whose partitions the metastore knows."""

    name = "hive"

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        super().level(definition, previous)
        return Level.RENAME

    def write(self, transaction: Transaction, statement: Any) -> Written:
        mark = orjson.dumps({TXID: transaction.txid}).decode()
        found = orjson.loads(statement.writeHive(transaction.hidden_name, transaction.stage, mark))
        files, size = self._storage.amount(transaction.stage)
        return Written(found.get("rows"), size, files)

    def read(self, transaction: Transaction) -> Any:
        return self._spark.table(quoted([transaction.path.database, transaction.hidden_name]))

    def _create(self, transaction: Transaction) -> None:
        self._stand_in(transaction)
        self._tables.rename(transaction.path.database, transaction.hidden_name, transaction.path.name)

    def _stand_in(self, transaction: Transaction) -> None:
        if transaction.location == transaction.stage:
            return
        hidden = self._state(transaction.path, transaction.hidden_name)
        if hidden is not None and hidden["location"] != transaction.location:
            self._tables.dropPartitions(transaction.path.database, transaction.hidden_name)
            self._tables.relocate(transaction.path.database, transaction.hidden_name, transaction.location)
            if transaction.table["partition_by"]:
                self._tables.addPartitions(quoted([transaction.path.database, transaction.hidden_name]))

    def _add_partitions(self, transaction: Transaction) -> None:
        """Do nothing: they came with the table."""


def _described(transaction: Transaction) -> str:
    fields = {**transaction.table, "database": transaction.path.database}
    fields["properties"] = {**fields["properties"], TXID: transaction.txid}
    return orjson.dumps(fields).decode()


def refuse_view(path: TablePath, purpose: Purpose, previous: Mapping[str, Any] | None) -> None:
    """Raise where what is to be replaced is no table.

    Raises:
        CtasError: it is a view.
    """
    if previous is not None and purpose.replaces and previous.get("type") == "VIEW":
        raise CtasError(f"{path} is a view, which REPLACE TABLE does not replace; drop it first")
