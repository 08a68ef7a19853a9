"""The state of the tasks of stage attempts, from a log's lines; live, the driver bridge counts them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_events.listeners.spark_records import ALL_RUNNING, STAGE_TASKS
from spark_events.listeners.work import SUMS
from spark_events.sources.event_log.executor_states import ExecutorStates
from spark_events.sources.record_json import load

Record = dict[str, Any]
NOT_ALL_RUNNING = "NOT_ALL_RUNNING_OR_FINISHED"
_MOST_TASKS = 16 << 20
_FINISHED = 0x80
_RUNNING = 0x7F

TASK_START = b'{"Event":"SparkListenerTaskStart",'
TASK_END = b'{"Event":"SparkListenerTaskEnd",'
# The form in which Spark has written them since 1.2, with later additions in parentheses. A record that looks
# different, such as that of a failed task, is parsed as a whole.
_ATTEMPT = rb'"Stage ID":(\d+,"Stage Attempt ID":\d+),'
_INFO = (
    rb'"Task Info":\{"Task ID":\d+,"Index":(\d+),"Attempt":\d+,(?:"Partition ID":\d+,)?'
    rb'"Launch Time":\d+,"Executor ID":"([^"\\]*)"'
)
_match_start = re.compile(re.escape(TASK_START) + _ATTEMPT + _INFO).match
_match_end = re.compile(
    re.escape(TASK_END) + _ATTEMPT + rb'"Task Type":"\w+","Task End Reason":\{"Reason":"Success"\},' + _INFO
).match
_LAUNCHED = re.compile(rb'"Launch Time":(\d+)')
_CLOSING = ord("}")
_METRICS_KEY = b'"Task Metrics":{'
_METRICS = re.compile(
    rb'"Task Metrics":\{(?:"Host Name":"[^"\\]*",)?"Executor Deserialize Time":\d+,'
    rb'(?:"Executor Deserialize CPU Time":\d+,)?"Executor Run Time":(\d+),(?:"Executor CPU Time":(\d+),)?'
    rb'(?:"Peak[^"]*":\d+,)*"Result Size":\d+,"JVM GC Time":(\d+),"Result Serialization Time":\d+,'
    rb'"Memory Bytes Spilled":(\d+),"Disk Bytes Spilled":(\d+),"Shuffle Read Metrics":\{'
    rb'"Remote Blocks Fetched":\d+,"Local Blocks Fetched":\d+,"Fetch Wait Time":\d+,'
    rb'"Remote Bytes Read":(\d+),'
    rb'(?:"Remote Bytes Read To Disk":\d+,)?"Local Bytes Read":(\d+),'
)
_WRITTEN = re.compile(
    rb'"Shuffle Write Metrics":\{"Shuffle Bytes Written":(\d+),[^{}]*\},"Input Metrics":\{"Bytes Read":(\d+),'
    rb'"Records Read":\d+\},"Output Metrics":\{"Bytes Written":(\d+),'
)


class StageTasks:
    """The tasks of one stage attempt, by index, for several attempts of a task may run at once."""

    __slots__ = (
        "_all", "_changes", "_covered", "_ids", "_reported", "_tasks", "_total",
        "failed", "finished", "running", "sums",
    )  # fmt: skip

    def __init__(self, stage: int, attempt: int, total: int) -> None:
        self._ids = {"Stage ID": stage, "Stage Attempt ID": attempt, "Number of Tasks": total}
        self._total = total
        # One byte per task: how many attempts run now, and whether it has finished.
        self._tasks = bytearray(min(max(total, 0), _MOST_TASKS))
        self._covered = self._changes = 0
        self._all = False
        self.running = self.finished = self.failed = 0
        self.sums = [0] * len(SUMS)
        self._reported = (0, 0, 0)

    @property
    def changed(self) -> bool:
        """Whether a task has begun or ended since the last ``record``."""
        return self._reported != (self.running, self.finished, self.failed)

    def start(self, index: int) -> bool:
        """Called with a task's start; returns whether this makes all tasks running or finished."""
        tasks = self._tasks
        if index >= len(tasks):
            return False
        state = tasks[index]
        if state & _RUNNING == _RUNNING:
            return False
        tasks[index] = state + 1
        self.running += 1
        if state:
            return False
        self._covered += 1
        if self._all or self._covered < self._total:
            return False
        self._all = True
        self._changes += 1
        return True

    def end(self, index: int, succeeded: bool) -> bool:
        """Called with a task's end; returns whether by that not all are running or finished any longer."""
        tasks = self._tasks
        if index >= len(tasks):
            return False
        state = tasks[index]
        if not state & _RUNNING:
            return False
        self.running -= 1
        if succeeded:
            if not state & _FINISHED:
                self.finished += 1
            tasks[index] = state - 1 | _FINISHED
            return False
        self.failed += 1
        tasks[index] = state - 1
        return self._uncover(index)

    def resubmit(self, index: int) -> bool:
        """Called when a finished task's output is lost; returns the same as ``end``."""
        if index >= len(self._tasks) or not self._tasks[index] & _FINISHED:
            return False
        self._tasks[index] &= _RUNNING
        self.finished -= 1
        return self._uncover(index)

    def add(self, line: bytes, begin: int) -> int | None:
        """Add the metrics in the line of a TaskEnd, which begin there.

        Returns:
            How many bytes the task wrote for a shuffle; None if the metrics are not where they should be.
        """
        metrics = _METRICS.match(line, begin)
        written = _WRITTEN.search(line, metrics.end()) if metrics else None
        if metrics is None or written is None:
            return None
        run, cpu, gc, in_memory, on_disk, remote, local = metrics.groups(b"0")
        shuffled, read, wrote = written.groups()
        sums = self.sums
        sums[0] += int(run)
        sums[1] += int(cpu)
        sums[2] += int(gc)
        sums[3] += int(read)
        sums[4] += int(wrote)
        sums[5] += int(remote) + int(local)
        sums[6] += int(shuffled)
        sums[7] += int(in_memory)
        sums[8] += int(on_disk)
        return int(shuffled)

    def record(self, status: str | None, time_ms: int) -> Record:
        """Return their state as a record like the driver bridge's."""
        self._reported = (self.running, self.finished, self.failed)
        return {
            "Event": STAGE_TASKS,
            **self._ids,
            "Change": self._changes,
            "Running": self.running,
            "Finished": self.finished,
            "Failed": self.failed,
            **dict(zip((task_sum.field for task_sum in SUMS), self.sums, strict=True)),
            "Status": status,
            "Timestamp": time_ms,
        }

    def _uncover(self, index: int) -> bool:
        if self._tasks[index]:
            return False
        self._covered -= 1
        ceased, self._all = self._all, False
        self._changes += ceased
        return ceased


class AllStageTasks:
    """The tasks of all stage attempts that run.

    Args:
        executors: learns which executor runs what, and what it has measured.

    Attributes:
        sum_metrics: whether the metrics of tasks are summed, for spans and metrics; events have no sums.
    """

    def __init__(self, executors: ExecutorStates) -> None:
        self._executors = executors
        # Keyed by the bytes that name the attempt in task records, so that a lookup needs no parsing.
        self._stages: dict[bytes, StageTasks] = {}
        self.sum_metrics = True

    def submitted(self, record: Record) -> None:
        """Called with a StageSubmitted."""
        stage, attempt, info = _stage_of(record)
        self._stages[_key(stage, attempt)] = StageTasks(stage, attempt, int(info.get("Number of Tasks") or 0))

    def completed(self, record: Record) -> Record | None:
        """Called with a StageCompleted; returns the final state of its tasks."""
        stage, attempt, info = _stage_of(record)
        tasks = self._stages.pop(_key(stage, attempt), None)
        return tasks.record(None, int(info.get("Completion Time") or 0)) if tasks else None

    def changed(self, now_ms: int) -> list[Record]:
        """Return the state of each attempt in which a task has begun or ended since the last call."""
        return [tasks.record(None, now_ms) for tasks in self._stages.values() if tasks.changed]

    def started(self, line: bytes) -> Record | None:
        """Called with the line of a TaskStart; returns a record if it changes the attempt's status.

        Raises:
            ValueError: it is not such a line.
        """
        match = _match_start(line)
        if match is None or line[-1] != _CLOSING:
            return self.on_start(load(line))
        attempt, index, executor = match.groups()
        self._executors.started(executor, attempt)
        tasks = self._stages.get(attempt)
        if tasks is not None and tasks.start(int(index)):
            launched = _LAUNCHED.search(line, match.end(2))
            return tasks.record(ALL_RUNNING, int(launched.group(1)) if launched else 0)
        return None

    def ended(self, line: bytes) -> Record | None:
        """Called with the line of a TaskEnd; returns a record if it changes the attempt's status.

        Raises:
            ValueError: it is not such a line.
        """
        match = _match_end(line)
        if match is None or line[-1] != _CLOSING:
            return self.on_end(load(line))
        attempt, index, executor = match.groups()
        tasks = self._stages.get(attempt)
        metrics = line.rfind(_METRICS_KEY)
        shuffle_bytes = 0
        if tasks is not None and self.sum_metrics:
            added = tasks.add(line, metrics)
            if added is None:
                return self.on_end(load(line))
            shuffle_bytes = added
        self._executors.measured_before(executor, line, metrics)
        self._executors.ended(executor, attempt, shuffle_bytes)
        if tasks is not None:
            tasks.end(int(index), True)  # a task that succeeded stays covered
        return None

    def on_start(self, record: Record) -> Record | None:
        """Called with a TaskStart."""
        tasks, info = self._stage_tasks_of(record), record["Task Info"]
        self._executors.started(str(info.get("Executor ID") or "").encode(), _attempt_of(record))
        if tasks is not None and tasks.start(int(info["Index"])):
            return tasks.record(ALL_RUNNING, int(info["Launch Time"]))
        return None

    def on_end(self, record: Record) -> Record | None:
        """Called with a TaskEnd."""
        tasks, info = self._stage_tasks_of(record), record["Task Info"]
        reason = (record.get("Task End Reason") or {}).get("Reason")
        self._end_on_executor(record, str(info.get("Executor ID") or ""), reason == "ExecutorLostFailure")
        if tasks is None:
            return None
        index = int(info["Index"])
        if self.sum_metrics:
            for position, value in enumerate(_sums(record.get("Task Metrics") or {})):
                tasks.sums[position] += value
        ceased = tasks.resubmit(index) if reason == "Resubmitted" else tasks.end(index, reason == "Success")
        return tasks.record(NOT_ALL_RUNNING, int(info.get("Finish Time") or 0)) if ceased else None

    def _stage_tasks_of(self, record: Record) -> StageTasks | None:
        return self._stages.get(_attempt_of(record))

    def _end_on_executor(self, record: Record, executor: str, lost: bool) -> None:
        written = (record.get("Task Metrics") or {}).get("Shuffle Write Metrics") or {}
        shuffle_bytes = int(written.get("Shuffle Bytes Written") or 0)
        self._executors.measured_by(executor, record.get("Task Executor Metrics") or {})
        self._executors.ended(executor.encode(), _attempt_of(record), shuffle_bytes, lost)


def _attempt_of(record: Record) -> bytes:
    return _key(int(record["Stage ID"]), int(record.get("Stage Attempt ID") or 0))


def _key(stage: int, attempt: int) -> bytes:
    return b'%d,"Stage Attempt ID":%d' % (stage, attempt)


def _stage_of(record: Record) -> tuple[int, int, Mapping[str, Any]]:
    info = record["Stage Info"]
    return int(info["Stage ID"]), int(info.get("Stage Attempt ID") or 0), info


def _sums(metrics: Mapping[str, Any]) -> tuple[int, ...]:
    """Return a task's metrics in the order of ``SUMS``; those that its Spark version lacks are 0."""

    def value(name: str, group: str = "") -> int:
        values = metrics.get(group) or {} if group else metrics
        return int(values.get(name) or 0)

    return (
        value("Executor Run Time"),
        value("Executor CPU Time"),
        value("JVM GC Time"),
        value("Bytes Read", "Input Metrics"),
        value("Bytes Written", "Output Metrics"),
        value("Remote Bytes Read", "Shuffle Read Metrics")
        + value("Local Bytes Read", "Shuffle Read Metrics"),
        value("Shuffle Bytes Written", "Shuffle Write Metrics"),
        value("Memory Bytes Spilled"),
        value("Disk Bytes Spilled"),
    )
