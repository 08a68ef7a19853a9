"""What executors run and have measured, from a log's task records; live, the driver bridge knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from spark_events.listeners.record_fields import EXECUTOR_ID, STAGE_IDS
from spark_events.listeners.spark_records import EXECUTOR_METRICS, EXECUTOR_TASKS

Record = dict[str, Any]
HEAP = "JVMHeapMemory"
_NOTHING = (b'"JVMHeapMemory":0', b'"JVMHeapMemory":-1')
_NOT_ASKED = b"]},"
"""What is before a task's metrics in logs of Spark before 3.0, whose executors measure nothing."""
_HEAP = b'"JVMHeapMemory":'


class ExecutorState:
    """One executor: how many tasks of each stage it runs or lost when it went, and its shuffle output."""

    __slots__ = ("lost", "running", "shuffle_bytes")

    def __init__(self) -> None:
        self.running: dict[bytes, int] = {}
        self.lost: dict[bytes, int] = {}
        self.shuffle_bytes = 0


class ExecutorStates:
    """Follows the executors of one log. Stages are known by the bytes with which a task record names them.

    Attributes:
        states: one for each executor, by the bytes of its id.
        zeros: how an executor that has measured nothing says so in a task's end, right before its metrics.
    """

    def __init__(self) -> None:
        self.states: dict[bytes, ExecutorState] = {}
        self._peaks: dict[str, dict[str, int]] = {}
        self.zeros = b"{"  # which never stands right before the metrics

    def started(self, executor: bytes, stage: bytes) -> None:
        """Called when an executor begins a task."""
        state = self.states.get(executor)
        if state is None:
            state = self.states[executor] = ExecutorState()
        state.running[stage] = state.running.get(stage, 0) + 1

    def ended(self, executor: bytes, stage: bytes, shuffle_bytes: int = 0, lost: bool = False) -> None:
        """Called when a task has ended; ``lost``, because the executor did."""
        state = self.states.get(executor)
        if state is None:
            return
        running = state.running.get(stage, 0)
        if running > 1:
            state.running[stage] = running - 1
        elif running:
            del state.running[stage]
        if lost:
            state.lost[stage] = state.lost.get(stage, 0) + 1
        state.shuffle_bytes += shuffle_bytes

    def measured_before(self, executor: bytes, line: bytes, end: int) -> None:
        """Called with a task's end, and where in its line the executor's measurements are over."""
        begin = line.rfind(b"{", 0, end)
        if line.startswith(_NOTHING, begin + 1):
            self.zeros = line[begin:end]
        elif line.endswith(_NOT_ASKED, 0, end):
            self.zeros = _NOT_ASKED
        elif line.startswith(_HEAP, begin + 1):
            metrics = orjson.loads(line[begin : line.index(b"}", begin) + 1])
            self.measured_by(executor.decode("utf-8", "replace"), metrics)

    def measured_by(self, executor: str, metrics: Mapping[str, int]) -> None:
        """Called with what an executor has measured; no heap means that nobody has measured anything."""
        if int(metrics.get(HEAP) or 0) <= 0:
            return
        before = self._peaks.setdefault(executor, {})
        for name, value in metrics.items():
            if value > before.get(name, -1):
                before[name] = value

    def measured(self) -> Record | None:
        """Return what was measured since the last call; None where nothing was."""
        if not self._peaks:
            return None
        record = {"Event": EXECUTOR_METRICS, "Task Peaks": self._peaks}
        self._peaks = {}
        return record

    def removed(self, record: Record) -> Record:
        """Return what an executor ran when it went, by its ExecutorRemoved, and forget it."""
        executor = str(record[EXECUTOR_ID])
        state = self.states.pop(executor.encode(), None) or ExecutorState()
        return {
            "Event": EXECUTOR_TASKS,
            EXECUTOR_ID: executor,
            "Running Tasks": sum(state.running.values()) + sum(state.lost.values()),
            STAGE_IDS: sorted({int(stage.partition(b",")[0]) for stage in (*state.running, *state.lost)}),
            "Shuffle Bytes Written": state.shuffle_bytes,
        }
