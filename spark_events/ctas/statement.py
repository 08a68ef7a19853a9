"""Runs a CREATE TABLE AS SELECT: all of it becomes visible at once, or nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import orjson

from spark_events.ctas.checks import Check
from spark_events.ctas.errors import CtasError
from spark_events.ctas.execution import StatementExecution
from spark_events.ctas.lifecycle import Conditions, JobStatusHook, Lifecycle
from spark_events.ctas.streams import BoundedStream, refuse_stream
from spark_events.ctas.transactions.journaled_table import JournaledTable
from spark_events.ctas.transactions.session_transactions import Transactions, transactions_of
from spark_events.ctas.transactions.transaction import Level, Purpose, TablePath
from spark_events.ctas.two_phase import TableDefinition
from spark_events.spark.sql_text import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Mode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]


@dataclass(frozen=True, slots=True)
class CtasResult:
    """What became of a statement.

    Attributes:
        table: the table's full name.
        created: whether this statement created it: False if ``IF NOT EXISTS`` found an existing one.
        replaced: whether it replaced another table.
        level: how it was made atomic; None if nothing was done.
        txid: the transaction's id, which is also in the table's properties; empty if there was none.
        rows: how many rows were written; None if the catalog does not say.
        bytes: the total size of its files; None if the catalog does not say.
        files: how many files it has; None if the catalog does not say.
    """

    table: str
    created: bool
    level: Level | None = None
    txid: str = ""
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    replaced: bool = False

    def __str__(self) -> str:
        if not self.created:
            return f"{self.table} already existed"
        rows = "" if self.rows is None else f" with {self.rows} rows"
        level = self.level.value if self.level else ""
        done = "replaced" if self.replaced else "created"
        return f"{self.table} was {done}{rows} ({level}, transaction {self.txid})"


def sql(
    spark: SparkSession,
    statement: str,
    *,
    checks: Iterable[Check] = (),
    require: str | Level | None = None,
    hooks: Sequence[JobStatusHook] = (),
) -> CtasResult:
    """Run a ``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] … AS SELECT …`` so that it is all or nothing.

    Spark itself parses it, so everything that Spark allows is allowed. The query runs once. Until the end,
    the table does not exist for others, or is the previous one; a failed, canceled or killed statement leaves
    nothing behind.

    Args:
        spark: a SparkSession whose driver is in reach.
        statement: the statement.
        checks: of what was written, before it is published: ``row_count``, ``each_row``, or your own.
        require: the minimum for the table to be made: ``atomic``, or a level's name. By default, the best
            level that its catalog supports is used, and reported.
        hooks: called for the statement's job, in addition to the one that commits the table.

    Example::

        result = sql(spark, "CREATE OR REPLACE TABLE totals AS SELECT name, sum(x) FROM orders GROUP BY name")
        print(result.rows, result.level)

    Raises:
        NotAtomicError: the catalog cannot do what is required; nothing was run.
        CheckFailedError: a check failed; nothing was published.
        CommitConflictError: the table changed meanwhile.
        FencedError: the driver was silent for so long that another process ended the transaction.
        CtasError: it is another statement, or LOCATION has files.
        ConfigError: a key below ``spark.events.ctas.`` has an invalid value.
        pyspark.errors.AnalysisException: as Spark raises it for the same statement.
    """
    if not isinstance(statement, str):
        raise CtasError(
            f"statement={statement!r} is not valid; expected a text such as 'CREATE TABLE … AS SELECT …'"
        )
    conditions = _conditions(checks, require, hooks)
    transactions = transactions_of(spark)
    definition = parse(transactions.entry, statement)
    return _run(transactions, definition, conditions)


def create_table_as(
    data: DataFrame,
    table: str,
    *,
    mode: Mode | Purpose = Purpose.CREATE,
    format: str | None = None,  # noqa: A002 - as DataFrameWriter has it
    partition_by: Sequence[str] = (),
    bucket_by: tuple[int, Sequence[str]] | None = None,
    sort_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    location: str | None = None,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
    require: str | Level | None = None,
    hooks: Sequence[JobStatusHook] = (),
) -> CtasResult:
    """Make a table from a DataFrame's rows, all or nothing; see ``sql`` for details and errors.

    Args:
        data: a DataFrame.
        table: its name, with database and catalog unless they are the current ones.
        mode: what to do if there is such a table: ``create``, ``create_if_not_exists``, ``replace`` or
            ``create_or_replace``.
        format: such as ``parquet``; None for Spark's default.
        partition_by: columns.
        bucket_by: the number of buckets, and columns.
        sort_by: columns that the rows of a bucket are sorted by.
        options: of the format.
        location: a folder that is empty or does not exist yet; None for a folder of the table's own.
        comment: of the table.
        properties: of the table.
        trigger: of a stream: ``{"availableNow": True}`` reads what there is, and ends. If its driver is
            killed, the same call continues from the checkpoint.
        checks: of what was written, before it is published: ``row_count``, ``each_row``, or your own.
        require: the minimum for the table to be made: ``atomic``, or a level's name.
        hooks: called for the statement's job.

    Example::

        create_table_as(frame, "shop.daily", mode="create_or_replace", partition_by=["day"])
    """
    if not hasattr(data, "sparkSession"):
        raise CtasError(f"data={data!r} is not valid; expected a DataFrame, as spark.sql(…) returns one")
    if not isinstance(table, str) or not table:
        raise CtasError(f"table={table!r} is not valid; expected a name such as 'shop.daily'")
    conditions = _conditions(checks, require, hooks)
    _check_types(
        format=format,
        partition_by=partition_by,
        bucket_by=bucket_by,
        sort_by=sort_by,
        options=options,
        location=location,
        comment=comment,
        properties=properties,
    )
    clauses = [  # in the order of Spark's grammar
        f"{BEGINNINGS[_purpose(mode)]} {table}",
        f"USING {format}" if format else "",
        f"OPTIONS ({pairs(options)})" if options else "",
        f"PARTITIONED BY ({columns(partition_by)})" if partition_by else "",
        buckets_clause(bucket_by, sort_by),
        f"LOCATION {literal(location)}" if location else "",
        f"COMMENT {literal(comment)}" if comment else "",
        f"TBLPROPERTIES ({pairs(properties)})" if properties else "",
        "AS SELECT 1",  # the DataFrame replaces this
    ]
    transactions = transactions_of(data.sparkSession)
    stream = BoundedStream(transactions, data, trigger) if data.isStreaming else None
    statement = " ".join(clause for clause in clauses if clause)
    definition = parse(transactions.entry, statement, data)
    return _run(transactions, definition, conditions, stream)


def _run(
    transactions: Transactions,
    definition: TableDefinition,
    conditions: Conditions,
    stream: BoundedStream | None = None,
) -> CtasResult:
    refuse_stream(definition, stream)
    table = _new_table(transactions, definition, stream is not None)
    if table is None:
        return CtasResult(str(definition.path), created=False)
    conditions.check_table(table)
    with stream or StatementExecution(transactions, definition) as execution:
        written, is_created = Lifecycle(table, execution, conditions).run()
    transactions.collect_later(table.transaction)
    if not is_created:
        return CtasResult(str(definition.path), False, table.level, table.txid)
    replaced = table.transaction.previous is not None
    name = str(definition.path)
    return CtasResult(name, True, table.level, table.txid, **asdict(written), replaced=replaced)


def _new_table(
    transactions: Transactions, definition: TableDefinition, is_streaming: bool
) -> JournaledTable | None:
    """Return the table of a new transaction, or of a resumed stream; None if none is needed."""
    resumed = transactions.resumed(definition) if is_streaming else None
    transactions.sweep()
    if resumed is not None:
        return resumed
    if_not_exists = definition.purpose is Purpose.CREATE_IF_NOT_EXISTS
    return transactions.create_two_phase_table(definition.path, definition, if_not_exists, is_streaming)


def _purpose(mode: str | Purpose) -> Purpose:
    try:
        return Purpose(mode.upper() if isinstance(mode, str) else mode)
    except ValueError:
        allowed = ", ".join(purpose.value.lower() for purpose in Purpose)
        raise CtasError(f"mode={mode!r} is not valid; expected one of {allowed}") from None


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
            shown = sort_by if isinstance(sort_by, str) else list(sort_by)
            raise CtasError(f"sort_by={shown!r} sorts the rows of buckets, so it needs bucket_by")
        return ""
    number, names = bucket_by
    sorted_by = f"SORTED BY ({columns(sort_by)}) " if sort_by else ""
    return f"CLUSTERED BY ({columns(names)}) {sorted_by}INTO {number} BUCKETS"


_EXPECTED: dict[str, tuple[type, str]] = {
    "format": (str, "a text such as 'parquet'"),
    "partition_by": (Sequence, "columns such as ['day']"),
    "bucket_by": (Sequence, "a number and columns such as (4, ['id'])"),
    "sort_by": (Sequence, "columns such as ['id']"),
    "options": (Mapping, "texts by their names such as {'compression': 'zstd'}"),
    "location": (str, "a text such as 's3a://lake/daily'"),
    "comment": (str, "a text"),
    "properties": (Mapping, "texts by their names such as {'owner': 'shop'}"),
}


def _check_types(**given: object) -> None:
    """Check the arguments that a statement is made of.

    Raises:
        CtasError: one is of another type.
    """
    for name, value in given.items():
        of_type, expected = _EXPECTED[name]
        is_right = value is None or isinstance(value, of_type)
        if is_right and name == "bucket_by":
            is_right = value is None or _is_number_and_columns(value)
        elif is_right and isinstance(value, Sequence):
            is_right = all(isinstance(each, str) for each in value)
        if not is_right:
            raise CtasError(f"{name}={value!r} is not valid; expected {expected}")


def _is_number_and_columns(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        return False
    number, names = value
    return (
        type(number) is int and isinstance(names, Sequence) and all(isinstance(each, str) for each in names)
    )


def _conditions(
    checks: Iterable[Check], require: str | Level | None, hooks: Sequence[JobStatusHook]
) -> Conditions:
    """Return what a statement has to fulfill.

    Raises:
        CtasError: checks are no functions.
    """
    is_several = isinstance(checks, Iterable) and not isinstance(checks, str)
    functions = tuple(checks) if is_several else ()
    if not is_several or not all(map(callable, functions)):
        raise CtasError(f"checks={checks!r} is not valid; expected functions such as [row_count(least=1)]")
    return Conditions(functions, require, tuple(hooks))


def columns(names: Sequence[str]) -> str:
    """Return a list of columns; a text is one column."""
    names = [names] if isinstance(names, str) else names
    return ", ".join(quoted([name]) for name in names)


def pairs(values: Mapping[str, str]) -> str:
    """Return a list of keys and values."""
    return ", ".join(f"{literal(key)} = {literal(str(value))}" for key, value in values.items())
