"""The state of the tasks of stage attempts, from a log's lines; live, the driver bridge counts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_events.listeners.failures.failures import CAUSED_BY
from spark_events.listeners.record_fields import (
    COMPLETION_TIME,
    EXECUTOR_ID,
    NUMBER_OF_TASKS,
    PROPERTIES,
    STAGE_ATTEMPT_ID,
    STAGE_ID,
    STAGE_INFO,
    SUBMISSION_TIME,
    TIMESTAMP,
)
from spark_events.listeners.spark_records import (
    ALL_RUNNING,
    LATE_TASKS,
    STAGE_TASKS,
    THROWN_BY_TASK,
    stage_attempt,
)
from spark_events.listeners.work.work import SUMS
from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.event_log.tasks.task_lines import (
    SHUFFLE_KEY,
    TaskLines,
    match_details,
    match_info,
)
from spark_events.sources.event_log.tasks.task_statistics import (
    FETCH_FAILED,
    KILLED,
    RESUBMITTED,
    SUCCESS,
    TaskStatistics,
    UnexpectedForm,
)
from spark_events.sources.record_json import load
from spark_events.task.local_properties import QUERY_ID

Record = dict[str, Any]
NOT_ALL_RUNNING = "NOT_ALL_RUNNING_OR_FINISHED"
_MOST_TASKS = 16 << 20
_MOST_TASKS_HELD = 4_096
_ENOUGH_LINES = 32
_END = b"}\n"
_MOST_THROWN = 8
_MOST_LATE = 100
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


class AllStageTasks:
    """The tasks of all stage attempts that run.

    Args:
        executors: learns which executor runs what, and what it has measured.

    Attributes:
        sum_metrics: whether the metrics of tasks are summed, for spans and metrics; events have no sums.
        statistics_from_ms: how long a stage lasts at least whose tasks' statistics are wanted without sums. A
            streaming query's are wanted however short a stage is, for they add up.
        unread: how many lines of tasks could not be read, though they seemed right.
    """

    def __init__(self, executors: ExecutorStates) -> None:
        self._executors = executors
        self.lines = TaskLines()
        self.attempts: dict[bytes, StageTasks] = {}
        self.sum_metrics = True
        self.statistics_from_ms = 0
        self.unread = 0
        # Those that have ended, and of which tasks run on: they were cancelled, or have failed.
        self._late: dict[bytes, StageTasks] = {}
        self._streaming: set[bytes] = set()

    @property
    def match_end(self) -> Callable[[bytes, int], re.Match[bytes] | None]:
        """What matches the end of a task: all its details only if they are certain to be needed."""
        return match_details if self.sum_metrics else match_info

    def submitted(self, record: Record) -> None:
        """Called with a StageSubmitted."""
        stage, attempt, info = _stage_of(record)
        key = _key(stage, attempt)
        self.attempts[key] = StageTasks(stage, attempt, int(info.get(NUMBER_OF_TASKS) or 0))
        if QUERY_ID in (record.get(PROPERTIES) or {}):
            self._streaming.add(key)

    def completed(self, record: Record) -> Record | None:
        """Called with a StageCompleted; returns the final state of its tasks."""
        stage, attempt, info = _stage_of(record)
        key = _key(stage, attempt)
        tasks = self.attempts.pop(key, None)
        if tasks is None:
            return None
        end_ms = int(info.get(COMPLETION_TIME) or 0)
        lasted_ms = end_ms - int(info.get(SUBMISSION_TIME) or end_ms)
        measured = self.sum_metrics or key in self._streaming or lasted_ms >= self.statistics_from_ms
        self._streaming.discard(key)
        if measured:
            self._read(tasks)
        else:
            tasks.statistics.forget()
        if tasks.running and self.sum_metrics:
            self._late[key] = tasks
            if len(self._late) > _MOST_LATE:
                del self._late[next(iter(self._late))]
        return tasks.last_record(end_ms, measured, info.get("Failure Reason"))

    def unfinished(self) -> Iterator[Record]:
        """Yield what the tasks of each attempt without an end have measured, at the end of its log."""
        for tasks in self.attempts.values():
            self._read(tasks)
            record = tasks.last_record(tasks.first_launch_ms, measured=True, failure_reason=None)
            last_ms = int(record["Task Statistics"].get("Last Finish") or 0)
            yield record | {TIMESTAMP: max(last_ms, tasks.first_launch_ms)}

    def changed(self, now_ms: int) -> list[Record]:
        """Return the state of each attempt in which a task has begun or ended since the last call."""
        return [self.record(tasks, None, now_ms) for tasks in self.attempts.values() if tasks.changed]

    def started(self, line: bytes) -> Record | None:
        """Called with the line of a TaskStart; returns a record if it changes the attempt's status.

        Raises:
            ValueError: it is not such a line.
        """
        head = self.lines.head_of(line)
        info = match_info(line, head.length) if head else None
        if head is None or info is None or not line.endswith(_END):
            return self.on_start(load(line))
        index, executor = info.group(1, 3)
        self._executors.started(executor, head.attempt)
        tasks = self.attempts.get(head.attempt)
        return None if tasks is None else self._start(tasks, int(index), int(info[2]))

    def ended(self, line: bytes) -> Record | None:
        """Called with the line of a TaskEnd; returns a record if it changes the attempt's status.

        Raises:
            ValueError: it is not such a line.
        """
        head, metrics = self.lines.head_of(line), self.lines.learn_metrics(line)
        info = self.match_end(line, head.length) if head else None
        if head is None or info is None or not line.endswith(_END) or head.attempt in self._late:
            return self.on_end(load(line))
        shuffled = b"0"
        if head.writes_shuffle:
            key = line.rfind(SHUFFLE_KEY)
            shuffled = line[key + len(SHUFFLE_KEY) : line.find(b",", key + len(SHUFFLE_KEY))]
            if key < 0 or not shuffled.isdigit():
                return self.on_end(load(line))
        tasks = self.attempts.get(head.attempt)
        index, executor = info.group(1, 3)
        if tasks is not None:
            try:
                tasks.statistics.keep(info, metrics)
            except UnexpectedForm:
                return self.on_end(load(line))
            tasks.end(int(index), SUCCESS)  # a task that succeeded stays covered
        self._executors.measured_before(executor, line, metrics)
        self._executors.ended(executor, head.attempt, int(shuffled))
        return None

    def on_start(self, record: Record) -> Record | None:
        """Called with a TaskStart."""
        tasks, info = self._stage_tasks_of(record), record["Task Info"]
        self._executors.started(str(info.get(EXECUTOR_ID) or "").encode(), _attempt_of(record))
        return None if tasks is None else self._start(tasks, int(info["Index"]), int(info["Launch Time"]))

    def on_end(self, record: Record) -> Record | None:
        """Called with a TaskEnd."""
        tasks, info = self._stage_tasks_of(record), record["Task Info"]
        ended = record.get("Task End Reason") or {}
        reason = ended.get("Reason")
        self._end_on_executor(record, str(info.get(EXECUTOR_ID) or ""), reason == "ExecutorLostFailure")
        if tasks is None:
            return self._end_late(record, int(info["Index"]), reason)
        index = int(info["Index"])
        tasks.statistics.ended(record, reason)
        if reason in ("ExceptionFailure", FETCH_FAILED):
            tasks.keep_thrown(ended)
        ceased = tasks.resubmit(index) if reason == RESUBMITTED else tasks.end(index, reason)
        return self.record(tasks, NOT_ALL_RUNNING, int(info.get("Finish Time") or 0)) if ceased else None

    def record(self, tasks: StageTasks, status: str | None, time_ms: int) -> Record:
        """Return the state of an attempt as a record; with the sums so far, if they are wanted."""
        if self.sum_metrics:
            self._read(tasks)
        return tasks.record(status, time_ms)

    def read_waiting(self) -> None:
        """Read the lines that wait, if there are enough of them, or too many.

        They will be read anyway if sums are wanted, and are then read best right away, from the core's cache.
        """
        if sum(tasks.statistics.held for tasks in self.attempts.values()) >= _MOST_TASKS_HELD:
            for tasks in self.attempts.values():
                self._read(tasks)
        elif self.sum_metrics:
            for tasks in self.attempts.values():
                if len(tasks.statistics.waiting) >= _ENOUGH_LINES:
                    self.unread += tasks.statistics.read_waiting()

    def _start(self, tasks: StageTasks, index: int, launched_ms: int) -> Record | None:
        tasks.first_launch_ms = tasks.first_launch_ms or launched_ms
        return self.record(tasks, ALL_RUNNING, launched_ms) if tasks.start(index) else None

    def _end_late(self, record: Record, index: int, reason: str | None) -> Record | None:
        """Take the end of a task whose stage has ended before."""
        key = _attempt_of(record)
        tasks = self._late.get(key)
        if tasks is None:
            return None
        tasks.statistics.ended(record, reason)
        tasks.end(index, reason)
        self._read(tasks)
        late = tasks.late_record()
        if not tasks.running:
            del self._late[key]
            late["Task Statistics"] = tasks.measured()
        return late

    def _read(self, tasks: StageTasks) -> None:
        self.unread += tasks.statistics.read_all()

    def _stage_tasks_of(self, record: Record) -> StageTasks | None:
        return self.attempts.get(_attempt_of(record))

    def _end_on_executor(self, record: Record, executor: str, lost: bool) -> None:
        written = (record.get("Task Metrics") or {}).get("Shuffle Write Metrics") or {}
        shuffle_bytes = 0 if lost else int(written.get("Shuffle Bytes Written") or 0)
        self._executors.measured_by(executor, record.get("Task Executor Metrics") or {})
        self._executors.ended(executor.encode(), _attempt_of(record), shuffle_bytes, lost)


def _attempt_of(record: Record) -> bytes:
    return _key(*stage_attempt(record))


def _key(stage: int, attempt: int) -> bytes:
    return b'%d,"Stage Attempt ID":%d' % (stage, attempt)


def _stage_of(record: Record) -> tuple[int, int, Mapping[str, Any]]:
    info = record[STAGE_INFO]
    return *stage_attempt(info), info
