"""Tables of Hive's own formats: written under another name, including their partitions, then renamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.ctas.session_tables import SessionPublisher
from spark_events.ctas.transaction import Level, Transaction
from spark_events.ctas.two_phase import TableDefinition, Written
from spark_events.spark.sql_text import quoted


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
        if state is not None and state["location"] != transaction.location:
            self._tables.dropPartitions(database, name)
            self._hive_tables.relocate(database, name, transaction.location)
            if transaction.table["partition_by"]:
                self._tables.addPartitions(quoted([database, name]))

    def _add_partitions(self, transaction: Transaction) -> None:
        """Do nothing: the table already has its partitions."""
