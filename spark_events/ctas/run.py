"""Runs a CREATE TABLE AS SELECT: all of it becomes visible at once, or nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from spark_events.ctas.checks import Check, run_checks
from spark_events.ctas.errors import CtasError, NotAtomicError
from spark_events.ctas.execution import StatementExecution, was_cancelled
from spark_events.ctas.hooks import CtasJobStatusHook, JobStatusHook
from spark_events.ctas.record import Level, Purpose, Transaction
from spark_events.ctas.statement import create_text, parse
from spark_events.ctas.streams import BoundedStream, refuse_stream
from spark_events.ctas.transaction import JournaledTable
from spark_events.ctas.transactions import Transactions, transactions_of
from spark_events.ctas.two_phase import TableDefinition
from spark_events.runtime.log_once import logger

ATOMIC = "atomic"


@dataclass(frozen=True, slots=True)
class CtasResult:
    """What became of a statement.

    Attributes:
        table: the table's full name.
        created: whether it is there because of this statement: False where IF NOT EXISTS found one.
        replaced: whether it took the place of another table.
        level: how it was all or nothing; None where nothing was done.
        txid: the transaction's id, which stands in the table's properties too; empty where there was none.
        rows: how many rows were written; None where the catalog does not tell.
        bytes: how large its files are together; None as above.
        files: how many files it has; None as above.
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
            return f"{self.table} was there already"
        rows = "" if self.rows is None else f" with {self.rows} rows"
        level = self.level.value if self.level else ""
        done = "replaced" if self.replaced else "created"
        return f"{self.table} was {done}{rows} ({level}, transaction {self.txid})"


def sql(
    spark: Any,
    statement: str,
    *,
    checks: Iterable[Check] = (),
    require: str | Level | None = None,
    hooks: Sequence[JobStatusHook] = (),
) -> CtasResult:
    """Run a ``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] … AS SELECT …`` so that it is all or nothing.

    Spark itself parses it, so all that Spark allows in it holds. The query runs once. Until the end nobody
    sees the table, or everybody sees the one before; what fails, is cancelled or killed leaves nothing.

    Args:
        spark: a SparkSession whose driver is in reach.
        statement: the statement.
        checks: of what was written, before it is published: ``row_count``, ``each_row``, or your own.
        require: ``atomic``, or a level's name: what the table must not be made without; by default, the
            best that its catalog can do is done, and said.
        hooks: told of the statement's job, besides the one that commits the table.

    Raises:
        NotAtomicError: the catalog cannot do what is required; nothing was run.
        CheckFailedError: a check failed; nothing was published.
        CommitConflictError: the table changed meanwhile.
        FencedError: the driver was silent for so long that somebody else ended the transaction.
        CtasError: it is another statement, or LOCATION has files.
        ConfigError: a key below ``spark.events.ctas.`` has a wrong value.
        pyspark.errors.AnalysisException: as Spark raises it for the same statement.
    """
    transactions = transactions_of(spark)
    definition = parse(transactions.entry, statement)
    return _run(spark, transactions, definition, checks, require, hooks)


def create_table_as(
    data: Any,
    table: str,
    *,
    mode: str | Purpose = Purpose.CREATE,
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
    """Make a table of a DataFrame's rows, all or nothing; ``sql`` says more, and what is raised.

    Args:
        data: a DataFrame.
        table: its name, with database and catalog where they are not the current ones.
        mode: what is done where there is such a table: ``create``, ``create_if_not_exists``, ``replace``
            or ``create_or_replace``.
        format: such as ``parquet``; Spark's default where it is None.
        partition_by: columns.
        bucket_by: the number of buckets, and columns.
        sort_by: columns that the rows of a bucket are sorted by.
        options: of the format.
        location: a folder that is empty or not there yet; one of the table's own where it is None.
        comment: of the table.
        properties: of the table.
        trigger: of a stream: ``{"availableNow": True}`` reads what there is, and ends. Where its driver was
            killed, the same call goes on from the checkpoint.
        checks: as of ``sql``.
        require: as of ``sql``.
        hooks: as of ``sql``.
    """
    purpose = _purpose(mode)
    spark = data.sparkSession
    transactions = transactions_of(spark)
    text = create_text(
        table,
        purpose=purpose,
        format=format,
        partition_by=partition_by,
        bucket_by=bucket_by,
        sort_by=sort_by,
        options=options,
        location=location,
        comment=comment,
        properties=properties,
    )
    stream = BoundedStream(data, trigger, transactions.entry.storage()) if data.isStreaming else None
    definition = parse(transactions.entry, text, data)
    return _run(spark, transactions, definition, checks, require, hooks, stream)


def _run(
    spark: Any,
    transactions: Transactions,
    definition: TableDefinition,
    checks: Iterable[Check],
    require: str | Level | None,
    hooks: Sequence[JobStatusHook],
    stream: BoundedStream | None = None,
) -> CtasResult:
    refuse_stream(definition, stream)
    table = transactions.resumed(definition) if stream else None
    transactions.sweep()
    if table is None:
        if_not_exists = definition.purpose is Purpose.CREATE_IF_NOT_EXISTS
        table = transactions.create_two_phase_table(
            definition.path, definition, if_not_exists, stream is not None
        )
    if table is None:
        return CtasResult(str(definition.path), False)
    _demand(table.transaction, require)
    checks = list(checks)
    if checks and table.publishes_by_itself:
        table.written()  # which says why there is nothing to check
    execution = stream or StatementExecution(spark, transactions, definition)
    own = CtasJobStatusHook(table)
    with execution, _told((own, *hooks), execution, table):
        written = stream.write(table) if stream else table.write()
        run_checks(checks, table, written)
        table.prepare()
    transactions.collect_later(table.transaction)
    if own.committed is False:
        return CtasResult(str(definition.path), False, table.level, table.txid)
    sizes = (written.rows, written.bytes, written.files)
    replaced = table.transaction.previous is not None
    return CtasResult(str(definition.path), True, table.level, table.txid, *sizes, replaced)


@contextmanager
def _told(
    hooks: Sequence[JobStatusHook], execution: StatementExecution | BoundedStream, table: JournaledTable
) -> Iterator[None]:
    """Tell hooks how a job begins and ends; the first of them is the table's own."""
    own, *others = hooks
    job = execution.job_id
    try:
        own.on_created(job)
        for hook in others:
            hook.on_created(job)
        yield
        own.on_finished(job)
    except BaseException as error:
        cancelled = was_cancelled(error)
        try:
            execution.await_tasks()
        finally:
            for hook in hooks:
                _tell_end(hook, job, None if cancelled else error)
        raise
    for hook in others:
        try:
            hook.on_finished(job)
        except Exception:
            logger.exception("%s raised after %s was committed", type(hook).__name__, table.transaction.path)


def _tell_end(hook: JobStatusHook, job: str, error: BaseException | None) -> None:
    try:
        if error is None:
            hook.on_canceled(job)
        else:
            hook.on_failed(job, error)
    except Exception:
        logger.exception("%s raised while a statement was ended", type(hook).__name__)


def _demand(transaction: Transaction, require: str | Level | None) -> None:
    """Raise where a table cannot be made as it is required."""
    if require is None:
        return
    level = transaction.level
    gap = level is Level.RENAME and transaction.previous is not None
    atomic = level is not Level.RECOVERABLE and not gap
    wanted = require.value if isinstance(require, Level) else require
    if wanted not in (ATOMIC, *(one.value for one in Level)):
        allowed = ", ".join((ATOMIC, *(one.value for one in Level)))
        raise CtasError(f"require={require!r} is not allowed; expected one of {allowed}")
    if atomic if wanted == ATOMIC else wanted == level.value:
        return
    why = (
        "its name is free for a moment while it is replaced" if gap else "that is all that its catalog can do"
    )
    raise NotAtomicError(
        f"{transaction.path} can be made at level {level.value!r}, and require={wanted!r} demands another: "
        f"{why}. Nothing was run"
    )


def _purpose(mode: str | Purpose) -> Purpose:
    try:
        return Purpose(mode.upper() if isinstance(mode, str) else mode)
    except ValueError:
        allowed = ", ".join(purpose.value.lower() for purpose in Purpose)
        raise CtasError(f"mode={mode!r} is not allowed; expected one of {allowed}") from None
