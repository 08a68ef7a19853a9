"""Tables made from a bounded stream, whose files and checkpoint belong to one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from spark_events.ctas.errors import NotAtomicError
from spark_events.ctas.execution import was_interrupted
from spark_events.ctas.jvm import leave_call
from spark_events.ctas.transactions.journaled_table import JournaledTable
from spark_events.ctas.transactions.session_transactions import Transactions
from spark_events.ctas.transactions.transaction import Transaction
from spark_events.ctas.two_phase import TableDefinition, Written

_BOUNDED = ("availableNow", "once")
_SINK_LOG = "_spark_metadata"


class BoundedStream:
    """Runs a stream to its end, into the folder of a transaction.

    Raises:
        NotAtomicError: the trigger has no end.

    Attributes:
        job_id: the run id of the query; empty before it runs.
    """

    def __init__(self, transactions: Transactions, data: Any, trigger: Mapping[str, Any] | None) -> None:
        trigger = dict(trigger or {})
        if not any(trigger.get(name) for name in _BOUNDED):
            shown = ", ".join(f"{name}={value!r}" for name, value in trigger.items()) or "none"
            raise NotAtomicError(
                f"the rows come from a stream whose trigger ({shown}) never ends, so the table is never "
                'complete; give trigger={"availableNow": True} for the data available now, or use '
                "writeStream.toTable for a table that grows"
            )
        self._data = data
        self._entry = transactions.entry
        self._storage = transactions.entry.storage()
        self._stragglers_ms = transactions.settings.stragglers_ms
        self._trigger = trigger
        self._query: Any = None
        self._is_interrupted = False
        self.job_id = ""

    def write(self, table: JournaledTable) -> Written:
        """Run the stream from its checkpoint to its end.

        Raises:
            pyspark.errors.StreamingQueryException: it failed.
        """
        return table.write_by(lambda: self._write(table.transaction))

    def __enter__(self) -> BoundedStream:
        self._caller = self._entry.caller()
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: the query itself informs Spark's listeners."""

    @property
    def is_over(self) -> bool:
        """Whether no call of the statement runs in the JVM any more; see ``StatementExecution``."""
        return not self._is_interrupted or bool(self._caller.awaitReturn(0))

    def stop(self, error: BaseException) -> None:
        """Stop the query if it still runs, for whose tasks Spark waits, and wait for the call under way.

        Args:
            error: what ends the statement.
        """
        self._is_interrupted = was_interrupted(error)
        if self._is_interrupted:
            leave_call(self._data.sparkSession.sparkContext._gateway)
        if self._query is not None:
            self._query.stop()
        if self._is_interrupted:
            self._caller.awaitReturn(self._stragglers_ms)

    def _write(self, transaction: Transaction) -> Written:
        table = transaction.table
        writer = (
            self._data.writeStream.format(table["provider"])
            .queryName(f"ctas {transaction.path}")
            .options(**table["options"])
            .option("path", transaction.stage)
            .option("checkpointLocation", transaction.checkpoint)
            .trigger(**self._trigger)
        )
        if table["partition_by"]:
            writer = writer.partitionBy(*table["partition_by"])
        self._query = writer.start()
        self.job_id = str(self._query.runId)
        self._query.awaitTermination()
        self._keep_committed_files(transaction.stage, table["provider"])
        files, size = self._storage.amount(transaction.stage)
        return Written(None, size, files)

    def _keep_committed_files(self, stage: str, provider: str) -> None:
        """Turn the stream's folder into a table's by removing uncommitted files and the sink's log.

        As long as the log exists, Spark reads only the files in it, so none that are inserted later.
        """
        log = f"{stage}/{_SINK_LOG}"
        if not self._storage.exists(log):
            return
        spark = self._data.sparkSession
        committed = {_normalized(path) for path in spark.read.format(provider).load(stage).inputFiles()}
        for path in self._storage.files(stage):
            if _normalized(path) not in committed:
                self._storage.delete(path)
        self._storage.delete(log)


def _normalized(path: str) -> str:
    """Return a path in a form that is the same for all spellings of one file's path."""
    return unquote(path.partition(":")[2] or path).lstrip("/")


def refuse_stream(definition: TableDefinition, stream: BoundedStream | None) -> None:
    """Raise NotAtomicError if a stream cannot make a table."""
    fields = definition.fields
    if stream is None:
        if fields.get("is_streaming"):
            raise NotAtomicError(
                f"{definition.path}: its query reads a stream, which has no end in SQL; use "
                'spark_events.ctas.create_table_as(data, table, trigger={"availableNow": True})'
            )
        return
    if fields["kind"] != "files" or fields.get("buckets") or fields.get("location"):
        raise NotAtomicError(
            f"{definition.path}: a stream can only create a table of files in a folder of its own, without "
            "buckets; leave out LOCATION and buckets; name a table of the session catalog and a file format"
        )
