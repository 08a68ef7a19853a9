"""The publishers of a session: one for each kind of catalog."""

from __future__ import annotations

from typing import Any

from spark_events.ctas.errors import CtasError
from spark_events.ctas.file_tables import FilesPublisher
from spark_events.ctas.hive_tables import HivePublisher
from spark_events.ctas.jdbc_tables import JdbcPublisher
from spark_events.ctas.native_tables import NativePublisher
from spark_events.ctas.publisher import Publisher
from spark_events.ctas.two_phase import TableDefinition

_JDBC_CATALOG = ".JDBCTableCatalog"


class Publishers:
    """Finds publishers.

    Args:
        spark: the session.
        entry: its ``Entry.java``.
    """

    def __init__(self, spark: Any, entry: Any) -> None:
        publishers: tuple[Publisher, ...] = (
            FilesPublisher(spark, entry),
            HivePublisher(spark, entry),
            JdbcPublisher(spark, entry),
            NativePublisher(spark, entry),
        )
        self._by_name = {publisher.name: publisher for publisher in publishers}

    def __getitem__(self, name: str) -> Publisher:
        """Return a publisher by its name in the journal."""
        return self._by_name[name]

    def choose(self, definition: TableDefinition) -> Publisher:
        """Return the publisher that can make a table.

        Raises:
            CtasError: none can.
        """
        kind = definition.fields["kind"]
        if kind == "v2":
            is_jdbc = definition.fields["catalog_class"].endswith(_JDBC_CATALOG)
            return self._by_name["jdbc" if is_jdbc else "native"]
        if kind not in self._by_name:
            raise CtasError(
                f"Spark makes {kind} of the statement, which is no CREATE TABLE AS SELECT known here"
            )
        return self._by_name[kind]
