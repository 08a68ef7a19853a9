"""A CREATE TABLE AS SELECT, parsed by Spark itself, or put together for a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from spark_events.ctas.errors import CtasError
from spark_events.ctas.record import Purpose, TablePath
from spark_events.ctas.two_phase import TableDefinition
from spark_events.spark.sql_text import literal, quoted

_BEGINNINGS = {
    Purpose.CREATE: "CREATE TABLE",
    Purpose.CREATE_IF_NOT_EXISTS: "CREATE TABLE IF NOT EXISTS",
    Purpose.REPLACE: "REPLACE TABLE",
    Purpose.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
}


def parse(entry: Any, text: str, data: Any = None) -> TableDefinition:
    """Return what a statement makes; nothing is run.

    Args:
        entry: ``Entry.java`` of the session.
        text: the statement.
        data: a DataFrame whose rows are taken, in place of those of the statement's own query.

    Raises:
        CtasError: it is another statement.
        pyspark.errors.ParseException: it is no SQL.
        pyspark.errors.AnalysisException: it names what is not there.
    """
    query = None if data is None else data._jdf.queryExecution().analyzed()
    statement = entry.parse(text, query)
    if statement is None:
        shown = " ".join(text.split())[:60]
        raise CtasError(
            f"{shown!r} is no CREATE [OR REPLACE] TABLE [IF NOT EXISTS] … AS SELECT …; "
            "spark.sql runs all other statements"
        )
    found = orjson.loads(statement.describe())
    path = TablePath(found["catalog"], found["database"], found["table"])
    return TableDefinition(path, Purpose(found["purpose"]), found, statement)


def create_text(
    table: str,
    *,
    purpose: Purpose = Purpose.CREATE,
    format: str | None = None,  # noqa: A002 - as DataFrameWriter has it
    partition_by: Sequence[str] = (),
    bucket_by: tuple[int, Sequence[str]] | None = None,
    sort_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    location: str | None = None,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> str:
    """Return a statement in SQL, in the order of clauses of Spark's grammar; its query is to be replaced."""
    parts = [_BEGINNINGS[purpose], table]
    if format:
        parts.append(f"USING {format}")
    if options:
        parts.append(f"OPTIONS ({_pairs(options)})")
    if partition_by:
        parts.append(f"PARTITIONED BY ({_columns(partition_by)})")
    if bucket_by:
        number, columns = bucket_by
        parts.append(f"CLUSTERED BY ({_columns(columns)})")
        if sort_by:
            parts.append(f"SORTED BY ({_columns(sort_by)})")
        parts.append(f"INTO {int(number)} BUCKETS")
    elif sort_by:
        raise CtasError(f"sort_by={list(sort_by)!r} sorts the rows of buckets, so it needs bucket_by")
    if location:
        parts.append(f"LOCATION {literal(location)}")
    if comment:
        parts.append(f"COMMENT {literal(comment)}")
    if properties:
        parts.append(f"TBLPROPERTIES ({_pairs(properties)})")
    return " ".join([*parts, "AS SELECT 1"])


def _columns(names: Sequence[str]) -> str:
    return ", ".join(quoted([name]) for name in names)


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(str(value))}" for key, value in values.items())
