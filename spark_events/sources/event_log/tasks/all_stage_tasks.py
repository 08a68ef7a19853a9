"""The tasks of all stage attempts that run, from a log's lines; live, the driver bridge counts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_events.listeners.record_fields import (
    COMPLETION_TIME,
    EXECUTOR_ID,
    NUMBER_OF_TASKS,
    PROPERTIES,
    STAGE_INFO,
    SUBMISSION_TIME,
    TIMESTAMP,
)
from spark_events.listeners.spark_records import (
    ALL_RUNNING,
    stage_attempt,
)
from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.event_log.tasks.stage_tasks import StageTasks
from spark_events.sources.event_log.tasks.task_lines import (
    SHUFFLE_KEY,
    TaskLines,
    match_details,
    match_info,
)
from spark_events.sources.event_log.tasks.task_statistics import (
    FETCH_FAILED,
    RESUBMITTED,
    SUCCESS,
    UnexpectedForm,
)
from spark_events.sources.record_json import load
from spark_events.task.local_properties import QUERY_ID

Record = dict[str, Any]
NOT_ALL_RUNNING = "NOT_ALL_RUNNING_OR_FINISHED"
_MOST_TASKS_HELD = 4_096
_ENOUGH_LINES = 32
_END = b"}\n"
_MOST_LATE = 100


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
