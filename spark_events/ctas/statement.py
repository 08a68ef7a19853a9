"""A CREATE TABLE AS SELECT, parsed by Spark itself, or put together for a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from spark_events.ctas.errors import CtasError
from spark_events.ctas.transaction import Purpose, TablePath
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
    fields = orjson.loads(statement.describe())
    path = TablePath(fields["catalog"], fields["database"], fields["table"])
    return TableDefinition(path, Purpose(fields["purpose"]), fields, statement)


@dataclass(frozen=True, slots=True)
class TableClauses:
    """The clauses of a CREATE TABLE; ``create_table_as`` says what each of them is."""

    table: str
    purpose: Purpose
    format: str | None = None
    partition_by: Sequence[str] = ()
    bucket_by: tuple[int, Sequence[str]] | None = None
    sort_by: Sequence[str] = ()
    options: Mapping[str, str] | None = None
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] | None = None

    def to_sql(self) -> str:
        """Return a statement, in the order of clauses of Spark's grammar; its query is to be replaced.

        Raises:
            CtasError: rows are to be sorted within buckets, and there are none.
        """
        parts = [_BEGINNINGS[self.purpose], self.table]
        if self.format:
            parts.append(f"USING {self.format}")
        if self.options:
            parts.append(f"OPTIONS ({_pairs(self.options)})")
        if self.partition_by:
            parts.append(f"PARTITIONED BY ({_columns(self.partition_by)})")
        parts += self._buckets()
        if self.location:
            parts.append(f"LOCATION {literal(self.location)}")
        if self.comment:
            parts.append(f"COMMENT {literal(self.comment)}")
        if self.properties:
            parts.append(f"TBLPROPERTIES ({_pairs(self.properties)})")
        return " ".join([*parts, "AS SELECT 1"])

    def _buckets(self) -> list[str]:
        if not self.bucket_by:
            if self.sort_by:
                raise CtasError(
                    f"sort_by={list(self.sort_by)!r} sorts the rows of buckets, so it needs bucket_by"
                )
            return []
        number, columns = self.bucket_by
        sorted_by = [f"SORTED BY ({_columns(self.sort_by)})"] if self.sort_by else []
        return [f"CLUSTERED BY ({_columns(columns)})", *sorted_by, f"INTO {int(number)} BUCKETS"]


def _columns(names: Sequence[str]) -> str:
    return ", ".join(quoted([name]) for name in names)


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(str(value))}" for key, value in values.items())
