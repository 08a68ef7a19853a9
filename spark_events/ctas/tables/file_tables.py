"""Tables of Parquet, ORC, CSV, JSON and any other file format, in the session catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.ctas.errors import NotAtomicError
from spark_events.ctas.tables.session_tables import SessionPublisher, described
from spark_events.ctas.transactions.transaction import Level, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.spark.sql_text import quoted

_TYPES_MAY_NOT_CHANGE = "hive.metastore.disallow.incompatible.col.type.changes"
_STANDS_FOR_ALL = "array<string>"


class FilesPublisher(SessionPublisher):
    """Publishes tables with one call that points at files already in place."""

    name = "files"

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        if not definition.fields["is_files"]:
            raise NotAtomicError(
                f"format {definition.fields['provider']!r} is not a file format, so Spark's session catalog "
                "cannot publish it atomically; for a database, configure a JDBC catalog and create it there"
            )
        super().level(definition, previous)
        if previous is None or not self._in_hive:
            return Level.POINTER
        return Level.POINTER if self._may_become(definition, previous) else Level.RENAME

    def _may_become(self, definition: TableDefinition, previous: Mapping[str, Any]) -> bool:
        """Return whether the metastore lets one call turn a table into another.

        The call can change neither the partition columns nor the type of a column. And for a table in one
        of Hive's own formats, Spark would take the columns from the metastore.
        """
        fields = definition.fields
        is_same = all(previous[name] == fields[name] for name in ("partition_by", "partition_types"))
        if not is_same or previous["provider"] == "hive":
            return False
        if self._spark.sparkContext._jsc.hadoopConfiguration().get(_TYPES_MAY_NOT_CHANGE) == "false":
            return True
        new_types = fields["data_types"]
        if fields.get("buckets") or not self._hive_tables.knowsColumns(fields["provider"]):
            new_types = [_STANDS_FOR_ALL]
        path = definition.path
        old_types = orjson.loads(self._hive_tables.columnTypes(path.database, path.name))
        return all(old == new for old, new in zip(old_types, new_types, strict=False))

    def write(self, transaction: Transaction, statement: Any) -> Written:
        return self._written(statement.writeFiles(transaction.stage), transaction)

    def read(self, transaction: Transaction) -> Any:
        from pyspark.sql.types import StructType

        table = transaction.table
        schema = StructType.fromJson(orjson.loads(table["schema"]))
        reader = self._spark.read.format(table["provider"]).options(**table["options"]).schema(schema)
        return reader.load(transaction.stage)

    def _create(self, transaction: Transaction) -> None:
        # For a metastore, a managed table's folder is the default one: data elsewhere is external at first.
        managed = transaction.table["managed"] and not self._in_hive
        self._tables.create(described(transaction), transaction.path.name, transaction.location, managed)

    def _stand_in(self, transaction: Transaction) -> None:
        if self._state(transaction.path, transaction.hidden_name) is None:
            self._tables.create(described(transaction), transaction.hidden_name, transaction.location, False)


class HivePublisher(SessionPublisher):
    """Publishes tables by renaming a complete one."""

    name = "hive"

    def level(self, definition: TableDefinition, previous: Mapping[str, Any] | None) -> Level:
        super().level(definition, previous)
        return Level.RENAME

    def write(self, transaction: Transaction, statement: Any) -> Written:
        metrics = statement.writeHive(transaction.hidden_name, transaction.stage, transaction.txid)
        return self._written(metrics, transaction)

    def read(self, transaction: Transaction) -> Any:
        return self._spark.table(quoted([transaction.path.database, transaction.hidden_name]))

    def _create(self, transaction: Transaction) -> None:
        self._stand_in(transaction)
        self._hive_tables.rename(transaction.path.database, transaction.hidden_name, transaction.path.name)

    def _stand_in(self, transaction: Transaction) -> None:
        """Point the table, which exists since it was written, at the files' new place."""
        if not transaction.moves_files:
            return
        database, name = transaction.path.database, transaction.hidden_name
        state = self._state(transaction.path, name)
        if state is None:
            return
        if state["location"] != transaction.location:
            self._hive_tables.relocate(database, name, transaction.location)
        # A driver that was killed here may have changed the place, and not yet the partitions.
        if transaction.table["partition_by"]:
            self._register_partitions(database, name)

    def _add_partitions(self, transaction: Transaction) -> None:
        """Do nothing: the table already has its partitions."""
