"""What another process has to know to tell the end of an application: its configuration, and what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.listeners import spark_records
from spark_events.listeners.queries.micro_batch import parse_micro_batch
from spark_events.listeners.record_fields import (
    EXECUTION_ID,
    EXECUTOR_ID,
    JOB_ID,
    PROPERTIES,
    ROOT_EXECUTION_ID,
    RUN_ID,
    STAGE_IDS,
    SUBMISSION_TIME,
)
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.ending.witness import Witness
from spark_events.task.local_properties import BATCH_ID, EXECUTION, JOB_GROUP, ROOT_EXECUTION

Record = dict[str, Any]
_MOST = 2_000
"""How many records it has at most; the oldest are forgotten, but for the application's start."""
HEAD = "head"
"""The place of the configuration."""
_OF_JOB = (
    JOB_GROUP,
    BATCH_ID,
    EXECUTION,
    ROOT_EXECUTION,
)


class Testament:
    """Keeps the records from which listeners know what runs, and tells a witness what has changed.

    It is told after the listeners have handled records, and before the next are fetched: so it knows
    what they knew, or, for a moment, what they knew one batch before.

    Args:
        witness: to tell.
        conf: of the application.
        close_timeout_ms: how long telling the end may take, in ms.
    """

    def __init__(self, witness: Witness, conf: Mapping[str, str], close_timeout_ms: int) -> None:
        self._witness: Witness | None = witness
        self._changed: dict[str, bytes | None] = {
            HEAD: orjson.dumps({"conf": dict(conf), "close_timeout_ms": close_timeout_ms})
        }
        self._known: dict[str, None] = {}
        self._gone: list[object] = []  # executors, since the last ``tell``

    def take(self, record: Record) -> None:
        """Called with each record that the listeners have handled."""
        handler = _HANDLERS.get(str(record.get("Event")))
        if handler is not None and self._witness is not None:
            handler(self, record)

    def tell(self) -> None:
        """Tell the witness what has changed."""
        changed, self._changed = self._changed, {}
        if self._witness is None:
            return
        try:
            if changed:
                self._witness.tell(changed)
        except Exception as error:  # py4j's, or of a socket: this process then tells its end alone
            logger.debug("nobody is left who could tell the end of the application: %r", error)
            self._witness = None
        gone, self._gone = self._gone, []
        for executor in gone:
            self._forget("executor", executor)

    def _keep(self, kind: str, key: object, record: Record) -> None:
        place = f"{kind} {key}"
        if place not in self._known and len(self._known) >= _MOST:
            # Without the application's start, nobody could tell its end.
            oldest = next(each for each in self._known if not each.startswith(f"{HEAD} "))
            self._forget(*oldest.split(" ", 1))
        self._known[place] = None
        self._changed.pop(place, None)  # what begins anew comes last
        self._changed[place] = orjson.dumps(record, default=str)

    def _forget(self, kind: str, key: object) -> None:
        place = f"{kind} {key}"
        if place in self._known:
            del self._known[place]
            self._changed.pop(place, None)
            self._changed[place] = None

    def _on_head(self, record: Record) -> None:
        self._keep(HEAD, record["Event"], record)

    def _on_executor(self, record: Record) -> None:
        self._keep("executor", record[EXECUTOR_ID], record)

    def _on_executor_removed(self, record: Record) -> None:
        # Whoever tells the end may hear once more of what was fetched last, and has to know it then.
        self._gone.append(record[EXECUTOR_ID])

    def _on_query(self, record: Record) -> None:
        self._keep("query", record[RUN_ID], record)

    def _on_progress(self, record: Record) -> None:
        self._at_rest(record["progress"])

    def _on_idle(self, record: Record) -> None:
        self._at_rest(record)

    def _at_rest(self, ids: Mapping[str, Any]) -> None:
        """Note that a query runs, and no micro-batch of it: a QueryIdle says both."""
        run_id = str(ids[RUN_ID])
        self._forget("batch", run_id)
        if f"query {run_id}" in self._known:
            at = ids.get("timestamp")
            idle = {"Event": spark_records.QUERY_IDLE, "id": ids["id"], RUN_ID: run_id, "timestamp": at}
            self._keep("running", run_id, idle)

    def _on_batch(self, record: Record) -> None:
        batch = parse_micro_batch(record.get("description"))
        if batch is not None and f"query {batch.run_id}" in self._known:
            names = ("Event", EXECUTION_ID, ROOT_EXECUTION_ID, "description", "time")
            self._keep("batch", batch.run_id, {name: record.get(name) for name in names})

    def _on_query_ended(self, record: Record) -> None:
        for kind in ("query", "running", "batch"):
            self._forget(kind, record[RUN_ID])

    def _on_job(self, record: Record) -> None:
        properties = record.get(PROPERTIES) or {}
        kept = {name: record.get(name) for name in ("Event", JOB_ID, SUBMISSION_TIME, STAGE_IDS)}
        kept[PROPERTIES] = {name: properties[name] for name in _OF_JOB if name in properties}
        self._keep("job", record[JOB_ID], kept)

    def _on_job_ended(self, record: Record) -> None:
        self._forget("job", record[JOB_ID])


_HANDLERS = {
    spark_records.APPLICATION_START: Testament._on_head,
    spark_records.ENVIRONMENT_UPDATE: Testament._on_head,
    spark_records.EXECUTOR_ADDED: Testament._on_executor,
    spark_records.EXECUTOR_REMOVED: Testament._on_executor_removed,
    spark_records.QUERY_STARTED: Testament._on_query,
    spark_records.QUERY_PROGRESS: Testament._on_progress,
    spark_records.QUERY_IDLE: Testament._on_idle,
    spark_records.QUERY_TERMINATED: Testament._on_query_ended,
    spark_records.SQL_EXECUTION_START: Testament._on_batch,
    spark_records.JOB_START: Testament._on_job,
    spark_records.JOB_END: Testament._on_job_ended,
}
