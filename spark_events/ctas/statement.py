"""A CREATE TABLE AS SELECT, parsed by Spark itself, or assembled for a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from spark_events.ctas.errors import CtasError
from spark_events.ctas.transaction import Purpose, TablePath
from spark_events.ctas.two_phase import TableDefinition
from spark_events.spark.sql_text import literal, quoted

BEGINNINGS = {
    Purpose.CREATE: "CREATE TABLE",
    Purpose.CREATE_IF_NOT_EXISTS: "CREATE TABLE IF NOT EXISTS",
    Purpose.REPLACE: "REPLACE TABLE",
    Purpose.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
}


def parse(entry: Any, text: str, data: Any = None) -> TableDefinition:
    """Return what a statement makes, without running anything.

    Args:
        entry: ``Entry.java`` of the session.
        text: the statement.
        data: a DataFrame that replaces the statement's own query.

    Raises:
        CtasError: it is a different kind of statement.
        pyspark.errors.ParseException: it is not SQL.
        pyspark.errors.AnalysisException: it names something that does not exist.
    """
    query = None if data is None else data._jdf.queryExecution().analyzed()
    statement = entry.parse(text, query)
    if statement is None:
        shown = " ".join(text.split())[:60]
        raise CtasError(
            f"{shown!r} is not a CREATE [OR REPLACE] TABLE [IF NOT EXISTS] … AS SELECT …; "
            "use spark.sql for other statements"
        )
    fields = orjson.loads(statement.describe())
    path = TablePath(fields["catalog"], fields["database"], fields["table"])
    return TableDefinition(path, Purpose(fields["purpose"]), fields, statement)


def buckets_clause(bucket_by: tuple[int, Sequence[str]] | None, sort_by: Sequence[str]) -> str:
    """Return the clause for buckets; empty if there are none.

    Raises:
        CtasError: rows are to be sorted within buckets, but there are none.
    """
    if not bucket_by:
        if sort_by:
            raise CtasError(f"sort_by={list(sort_by)!r} sorts the rows of buckets, so it needs bucket_by")
        return ""
    number, names = bucket_by
    sorted_by = f"SORTED BY ({columns(sort_by)}) " if sort_by else ""
    return f"CLUSTERED BY ({columns(names)}) {sorted_by}INTO {int(number)} BUCKETS"


def columns(names: Sequence[str]) -> str:
    """Return a list of columns; a text is one column."""
    names = [names] if isinstance(names, str) else names
    return ", ".join(quoted([name]) for name in names)


def pairs(values: Mapping[str, str]) -> str:
    """Return a list of keys and values."""
    return ", ".join(f"{literal(key)} = {literal(str(value))}" for key, value in values.items())
