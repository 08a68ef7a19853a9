"""The data of a query: SQL or code as a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_events.spark.sql_text import quoted
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.manifest_code import run_code
from spark_events.sql_runner.analysis.query_error import QueryError, analysis_error
from spark_events.sql_runner.manifest.manifest import Manifest

WATERMARK_COLUMN, WATERMARK_DELAY = "watermark.column", "watermark.delay"
"""The properties of a table whose rows have a time: which column it is, and how late rows may come."""
OWN_SCHEMA = ("kafka", "rate", "rate-micro-batch", "socket")
"""Sources that know their columns; Spark does not read tables of them as streams by their names."""


def query_data(session: Any, manifest: Manifest) -> Any:
    """Return the streaming DataFrame of a manifest's query.

    Raises:
        QueryError: its SQL does not parse or analyze, its code fails, or it reads no stream.
    """
    data = _of_sql(session, manifest) if manifest.sql is not None else run_code(session, manifest)
    if not data.isStreaming:
        raise QueryError(
            "reads no stream, so it has nothing to wait for: views and the tables under "
            "static-tables are read whole; name a table that Spark can read as a stream"
        )
    return data


def _of_sql(session: Any, manifest: Manifest) -> Any:
    from pyspark.sql import DataFrame

    entry = entry_of(session)
    try:
        parsed = entry.parse(manifest.sql)
        if entry.isCommand(parsed):
            raise QueryError(
                "is not a query, and is not run; expected a SELECT, whose rows go to target-table"
            )
        streams = session.sparkContext._gateway.jvm.java.util.HashMap()
        for name in streams_of(session, entry, manifest, entry.relations(parsed)):
            streams.put(name, _stream(session, entry, list(name)))
        return DataFrame(entry.read(parsed, streams), session)
    except QueryError:
        raise
    except Exception as error:  # including those of catalogs and connectors
        raise analysis_error(error) from error


def streams_of(session: Any, entry: Any, manifest: Manifest, relations: Any) -> list[Any]:
    """Return the names, as lists of parts, of the relations that a query reads as streams.

    These are its tables except ``static-tables``; none if the query itself contains STREAM.
    """
    if list(relations.declared()):
        return []
    static = {table_name(session, list(entry.nameParts(name))) for name in manifest.static_tables}
    tables = ((name, table_name(session, list(name))) for name in relations.batches())
    return [name for name, table in tables if table is not None and table not in static]


def _stream(session: Any, entry: Any, parts: list[str]) -> Any:
    """Return the plan that reads a table as a stream; None where its name alone is enough for Spark."""
    name = quoted(parts)
    table = entry.source(name)
    properties = dict(table["properties"])
    column, delay = (properties.get(key) for key in (WATERMARK_COLUMN, WATERMARK_DELAY))
    if (column is None) != (delay is None):
        raise QueryError(
            f"table {name}: expected both TBLPROPERTIES, {WATERMARK_COLUMN} and {WATERMARK_DELAY}"
        )
    reader = session.readStream
    if str(table["provider"]).lower() in OWN_SCHEMA:
        data = reader.format(table["provider"]).options(**dict(table["options"])).load()
    elif column is None:
        return None
    else:
        data = reader.table(name)
    if column is not None:
        data = data.withWatermark(column, delay)
    return data.alias(parts[-1])._jdf.queryExecution().logical()


def table_name(session: Any, parts: Sequence[str]) -> tuple[str, ...] | None:
    """Return the full name of a table; None for a view, a name from WITH, or one that does not exist."""
    from pyspark.errors import PySparkException

    try:
        table = session.catalog.getTable(quoted(parts))
    except PySparkException:  # analyzing the query gives a better message
        return None
    if table.tableType in ("TEMPORARY", "VIEW"):
        return None
    return tuple(part.lower() for part in (table.catalog or "", *(table.namespace or ()), table.name))
