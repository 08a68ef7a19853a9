"""The state of the tasks of a stage attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.listeners.failures.failures import CAUSED_BY
from spark_events.listeners.record_fields import (
    EXECUTOR_ID,
    NUMBER_OF_TASKS,
    STAGE_ATTEMPT_ID,
    STAGE_ID,
    TIMESTAMP,
)
from spark_events.listeners.spark_records import (
    LATE_TASKS,
    STAGE_TASKS,
    THROWN_BY_TASK,
)
from spark_events.listeners.work.work import SUMS
from spark_events.sources.event_log.tasks.task_statistics import (
    KILLED,
    SUCCESS,
    TaskStatistics,
)

Record = dict[str, Any]
_MOST_TASKS = 16 << 20
_MOST_THROWN = 8
_STOPPED_BY_SPARK = (KILLED, "TaskCommitDenied")
"""Reasons of tasks that have not failed, by Spark's own count."""
_COMPARED = 1_000
"""By this many first characters of what it says, a stage's failure is recognized as that of its task."""
_MOST_OF_CAUSES = 8_000
FINISHED = 0x80
RUNNING = 0x7F


class StageTasks:
    """The tasks of one stage attempt, by index, for several attempts of a task may run at once.

    Attributes:
        first_launch_ms: when the first of them was launched, in ms since the epoch; 0 before that.
    """

    __slots__ = (
        "_all", "_changes", "_covered", "_ids", "_most_running", "_reported", "_thrown", "_told", "_total",
        "failed", "finished", "first_launch_ms", "running", "states", "statistics",
    )  # fmt: skip

    def __init__(self, stage: int, attempt: int, total: int) -> None:
        self._ids = {STAGE_ID: stage, STAGE_ATTEMPT_ID: attempt, NUMBER_OF_TASKS: total}
        self._total = total
        # One byte per task: how many attempts run now, and whether it has finished.
        self.states = bytearray(min(max(total, 0), _MOST_TASKS))
        self._covered = self._changes = 0
        self._all = False
        self.first_launch_ms = 0
        self.running = self.finished = self.failed = self._most_running = 0
        self.statistics = TaskStatistics()
        self._thrown: dict[str, Record] = {}
        self._reported = (0, 0, 0)
        self._told: tuple[int, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a task has begun or ended since the last ``record``."""
        return self._reported != (self.running, self.finished, self.failed)

    def start(self, index: int) -> bool:
        """Called with a task's start; returns whether this makes all tasks running or finished."""
        tasks = self.states
        if not 0 <= index < len(tasks):
            return False
        state = tasks[index]
        if state & RUNNING == RUNNING:
            return False
        tasks[index] = state + 1
        self.running += 1
        if self.running > self._most_running:
            self._most_running = self.running
        if state:
            return False
        self._covered += 1
        if self._all or self._covered < self._total:
            return False
        self._all = True
        self._changes += 1
        return True

    def end(self, index: int, reason: str | None) -> bool:
        """Called with a task's end; returns whether by that not all are running or finished any longer."""
        tasks = self.states
        if not 0 <= index < len(tasks):
            return False
        state = tasks[index]
        if not state & RUNNING:
            return False
        self.running -= 1
        if reason == SUCCESS:
            if not state & FINISHED:
                self.finished += 1
            tasks[index] = state - 1 | FINISHED
            return False
        if reason not in _STOPPED_BY_SPARK:
            self.failed += 1
        tasks[index] = state - 1
        return self._uncover(index)

    def resubmit(self, index: int) -> bool:
        """Called when a finished task's output is lost; returns the same as ``end``."""
        if not 0 <= index < len(self.states) or not self.states[index] & FINISHED:
            return False
        self.states[index] &= RUNNING
        self.finished -= 1
        return self._uncover(index)

    def record(self, status: str | None, time_ms: int) -> Record:
        """Return their state as a record like the driver bridge's, with the sums of what has been read."""
        self._reported = (self.running, self.finished, self.failed)
        return {
            "Event": STAGE_TASKS,
            **self._ids,
            "Change": self._changes,
            "Running": self.running,
            "Finished": self.finished,
            "Failed": self.failed,
            "First Launch Time": self.first_launch_ms,
            **dict(zip((task_sum.field for task_sum in SUMS), self.statistics.sums, strict=True)),
            "Status": status,
            TIMESTAMP: time_ms,
        }

    def last_record(self, time_ms: int, measured: bool, failure_reason: str | None) -> Record:
        """Return their state at the stage's end; with all that they measured, if that is wanted."""
        record = self.record(None, time_ms)
        self._told = self._so_far()
        if measured:
            record["Task Statistics"] = self.measured()
        if failure_reason:
            record[THROWN_BY_TASK] = self._thrown.get(failure_reason[:_COMPARED])
        return record

    def measured(self) -> Record:
        """Return all that they have measured."""
        return self.statistics.record(self._most_running)

    def late_record(self) -> Record:
        """Return what its tasks have taken since the last record, after their stage has ended."""
        before, self._told = self._told, self._so_far()
        fields = ("Finished", "Failed", *(task_sum.field for task_sum in SUMS))
        more = {field: now - then for field, now, then in zip(fields, self._told, before, strict=True)}
        return {"Event": LATE_TASKS, **self._ids, **more}

    def _so_far(self) -> tuple[int, ...]:
        return (self.finished, self.failed, *self.statistics.sums)

    def keep_thrown(self, reason: Mapping[str, Any]) -> None:
        """Called with why a task has failed."""
        causes: Record = {}
        if reason.get("Reason") == "ExceptionFailure":
            said, thrown = reason.get("Description"), {"Class": reason.get("Class Name")}
            causes = {"Causes": _causes(reason.get("Full Stack Trace"))}
        else:
            said = reason.get("Message")
            thrown = {"Fetched From": (reason.get("Block Manager Address") or {}).get(EXECUTOR_ID)}
        if not isinstance(said, str) or None in thrown.values():
            return
        self._thrown[said[:_COMPARED]] = thrown | causes
        if len(self._thrown) > _MOST_THROWN:
            del self._thrown[next(iter(self._thrown))]

    def _uncover(self, index: int) -> bool:
        if self.states[index]:
            return False
        self._covered -= 1
        ceased, self._all = self._all, False
        self._changes += ceased
        return ceased


def _causes(stack_trace: object) -> str | None:
    """Return what caused an exception, of its stack trace; None where nothing did."""
    begin = stack_trace.find(CAUSED_BY) if isinstance(stack_trace, str) else -1
    return str(stack_trace)[begin : begin + _MOST_OF_CAUSES] if begin >= 0 else None
