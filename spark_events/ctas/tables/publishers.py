"""The publishers of a session: one for each kind of catalog."""

from __future__ import annotations

from typing import Any

from spark_events.ctas.errors import CtasError
from spark_events.ctas.tables.file_tables import FilesPublisher, HivePublisher
from spark_events.ctas.tables.jdbc_tables import JdbcPublisher
from spark_events.ctas.tables.native_tables import NativePublisher
from spark_events.ctas.tables.publisher import Publisher
from spark_events.ctas.two_phase import TableDefinition

_JDBC_CATALOG = ".JDBCTableCatalog"
_CLASSES: tuple[type[Publisher], ...] = (FilesPublisher, HivePublisher, JdbcPublisher, NativePublisher)


def publishers_of(spark: Any, entry: Any) -> dict[str, Publisher]:
    """Return the publishers by their names in the journal."""
    return {publisher.name: publisher(spark, entry) for publisher in _CLASSES}


def publisher_name(definition: TableDefinition) -> str:
    """Return the name of the publisher that can make a table.

    Raises:
        CtasError: none can.
    """
    kind = str(definition.fields["kind"])
    if kind == "v2":
        return "jdbc" if definition.fields["catalog_class"].endswith(_JDBC_CATALOG) else "native"
    if kind not in ("files", "hive"):
        raise CtasError(
            f"Spark parses the statement as {kind}, which is not a supported CREATE TABLE AS SELECT"
        )
    return kind
