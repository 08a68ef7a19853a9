"""Events of tables that are created atomically (``spark_events.ctas``)."""

from __future__ import annotations

from spark_events.api import Event, Severity
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_types import TableTransitionRecord
from spark_events.runtime import event_names

CLASS_SCOPE = "spark_events.listeners.TableTransaction"
_ABORTED = "ABORTED"
_REPORTED = ("level", "purpose", "reason", "durationMs", "rows", "bytes", "files")


class TableTransactionListener(Timeless):
    """Reports how far each table transaction has come."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.TABLE_TRANSITION: self.on_transition,
        }

    def on_transition(self, record: TableTransitionRecord, time_ms: int) -> None:
        """Called when a transaction has come to another state."""
        transaction = record["transaction"]
        txid, table, status = str(transaction["txid"]), str(transaction["table"]), str(transaction["state"])
        reason = transaction.get("reason") or None
        reported = {**transaction, "reason": reason}
        event = (
            Event.builder(CLASS_SCOPE, event_names.TABLE_TRANSACTION)
            .set_severity(Severity.WARN if status == _ABORTED else Severity.INFO)
            .set_body(f"Table {table}: {status}" + (f" ({reason})" if reason else ""))
            .set_attribute("transactionId", txid)
            .set_attribute("table", table)
            .set_attribute("transactionStatus", status)
            .set_attributes({name: reported.get(name) for name in _REPORTED})
        )
        entity = Entity("statement", txid, f"Table {table}")
        group = self._context.scopes.application_run()
        self._context.emitter.emit(event, entity, group, time_ms, (status,), status)
