"""What another process has to know to tell the end of an application: its configuration, and what runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.listeners import spark_records
from spark_events.listeners.micro_batch import parse_micro_batch
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.witness import Witness

Record = dict[str, Any]
_MOST = 1_000
"""How many jobs, and how many executors, it has at most; the oldest are forgotten."""
_EVERY_S = 1.0
_OF_JOB = (
    "spark.jobGroup.id",
    "streaming.sql.batchId",
    "spark.sql.execution.id",
    "spark.sql.execution.root.id",
)


class Testament:
    """Keeps the records from which listeners know what runs, and hands them to a witness when they change.

    Args:
        witness: to tell.
        conf: of the application.
        close_timeout_ms: how long telling the end may take, in ms.
    """

    def __init__(self, witness: Witness, conf: Mapping[str, str], close_timeout_ms: int) -> None:
        self._witness: Witness | None = witness
        self._head = orjson.dumps({"conf": dict(conf), "close_timeout_ms": close_timeout_ms})
        self._kept: dict[tuple[str, str], Record] = {}
        self._changed = True
        self._told_at = 0.0

    def take(self, record: Record) -> None:
        """Called with each record that the listeners have handled."""
        handler = _HANDLERS.get(str(record.get("Event")))
        if handler is not None and self._witness is not None:
            handler(self, record)

    def tell(self, *, at_once: bool = False) -> None:
        """Tell the witness what has changed, at most once a second.

        Args:
            at_once: even if it was told a moment ago.
        """
        now = time.monotonic()
        if self._witness is None or not self._changed or not (at_once or now >= self._told_at + _EVERY_S):
            return
        self._told_at, self._changed = now, False
        records = orjson.dumps(list(self._kept.values()), default=str)
        try:
            self._witness.tell(self._head[:-1] + b',"records":' + records + b"}")
        except Exception as error:  # py4j's, or of a socket: this process then tells its end alone
            logger.debug("nobody is left who could tell the end of the application: %r", error)
            self._witness = None

    def _keep(self, kind: str, key: object, record: Record) -> None:
        self._kept[kind, str(key)] = record
        self._changed = True
        of_kind = [place for place in self._kept if place[0] == kind] if len(self._kept) > _MOST else ()
        for place in of_kind[:-_MOST]:
            del self._kept[place]

    def _forget(self, kind: str, key: object) -> None:
        if self._kept.pop((kind, str(key)), None) is not None:
            self._changed = True

    def _on_head(self, record: Record) -> None:
        self._keep(record["Event"], "", record)

    def _on_executor(self, record: Record) -> None:
        self._keep("executor", record["Executor ID"], record)

    def _on_executor_removed(self, record: Record) -> None:
        self._forget("executor", record["Executor ID"])

    def _on_query(self, record: Record) -> None:
        self._keep("query", record["runId"], record)

    def _on_progress(self, record: Record) -> None:
        self._at_rest(record["progress"])

    def _on_idle(self, record: Record) -> None:
        self._at_rest(record)

    def _at_rest(self, ids: Mapping[str, Any]) -> None:
        """Note that a query runs, and no micro-batch of it: a QueryIdle says both."""
        run_id = str(ids["runId"])
        self._forget("batch", run_id)
        if ("query", run_id) in self._kept:
            at = ids.get("timestamp")
            idle = {"Event": spark_records.QUERY_IDLE, "id": ids["id"], "runId": run_id, "timestamp": at}
            self._keep("running", run_id, idle)

    def _on_batch(self, record: Record) -> None:
        batch = parse_micro_batch(record.get("description"))
        if batch is not None and ("query", batch.run_id) in self._kept:
            names = ("Event", "executionId", "rootExecutionId", "description", "time")
            self._keep("batch", batch.run_id, {name: record.get(name) for name in names})

    def _on_query_ended(self, record: Record) -> None:
        for kind in ("query", "running", "batch"):
            self._forget(kind, record["runId"])

    def _on_job(self, record: Record) -> None:
        properties = record.get("Properties") or {}
        kept = {name: record.get(name) for name in ("Event", "Job ID", "Submission Time", "Stage IDs")}
        kept["Properties"] = {name: properties[name] for name in _OF_JOB if name in properties}
        self._keep("job", record["Job ID"], kept)

    def _on_job_ended(self, record: Record) -> None:
        self._forget("job", record["Job ID"])


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
