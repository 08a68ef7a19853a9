"""The heap that the executors of a run held, and what became of it, from its records."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_events.diagnosis.times.heap_ledger import HeapLedger
from spark_events.listeners import spark_records
from spark_events.listeners.executors.executors import DRIVER
from spark_events.listeners.executors.memory_limits import MASTER, memory_limits
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_fields import EXECUTOR_ID
from spark_events.listeners.record_types import (
    EnvironmentUpdateRecord,
    ExecutorAddedRecord,
    ExecutorMetricsRecord,
    ExecutorRemovedRecord,
    StageCompletedRecord,
    StageSubmittedRecord,
)

_HEAP = "JVMHeapMemory"


@dataclass(slots=True)
class HeapUse(Timeless):
    """What becomes of the heap of a run's executors.

    The driver's is none of theirs, in local mode either; nor is that of executors of another resource profile
    than the first, which may have another size.
    """

    _ledger: HeapLedger = field(default_factory=HeapLedger)
    _heap_bytes: int | None = None

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.ENVIRONMENT_UPDATE: self.on_environment,
            spark_records.EXECUTOR_ADDED: self.on_executor_added,
            spark_records.EXECUTOR_REMOVED: self.on_executor_removed,
            spark_records.EXECUTOR_METRICS: self.on_executor_metrics,
            spark_records.STAGE_SUBMITTED: self.on_stage_submitted,
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
        }

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate; executors have the memory of the first."""
        properties = record.get("Spark Properties") or {}
        if self._heap_bytes is None and MASTER in properties:
            self._heap_bytes = memory_limits({key: str(value) for key, value in properties.items()}).heap

    def on_executor_added(self, record: ExecutorAddedRecord, time_ms: int) -> None:
        """Handle ExecutorAdded."""
        executor, info = str(record[EXECUTOR_ID]), record.get("Executor Info") or {}
        if executor != DRIVER and not int(info.get("Resource Profile Id") or 0):
            self._ledger.executor_added(executor, time_ms)

    def on_executor_removed(self, record: ExecutorRemovedRecord, time_ms: int) -> None:
        """Handle ExecutorRemoved."""
        self._ledger.executor_removed(str(record[EXECUTOR_ID]), time_ms)

    def on_executor_metrics(self, record: ExecutorMetricsRecord, time_ms: int) -> None:
        """Handle what executors have measured at the ends of tasks."""
        for executor, values in (record.get("Task Peaks") or {}).items():
            self._ledger.used(executor, int(values.get(_HEAP) or 0))

    def on_stage_submitted(self, record: StageSubmittedRecord, time_ms: int) -> None:
        """Handle StageSubmitted."""
        self._ledger.stages(time_ms, 1)

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        self._ledger.stages(time_ms, -1)

    def booked(self, ended_ms: int) -> dict[str, int]:
        """Return what is booked to each of ``HEAP_ACCOUNTS``, in byte-seconds; empty if nothing is known."""
        return {} if self._heap_bytes is None else self._ledger.booked(self._heap_bytes, ended_ms)
