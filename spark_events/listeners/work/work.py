"""The progress of stages and jobs, and what they have cost so far."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from spark_events.api import Counter, JobStatus, MetricGroup
from spark_events.listeners import spark_records
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.record_types import SQLExecutionEndRecord
from spark_events.runtime.scope import Reading, register_gauges


class Sum(NamedTuple):
    """One sum over tasks: a metric, an attribute of spans, and a field of the bridge's record."""

    name: str
    field: str
    unit: str
    description: str


SUMS = (
    Sum("executorRunTime", "Executor Run Time", "ms", "Run time of tasks."),
    Sum("executorCpuTime", "Executor CPU Time", "ns", "CPU time of tasks."),
    Sum("jvmGcTime", "JVM GC Time", "ms", "Time that JVMs spent in garbage collection while tasks ran."),
    Sum(
        "inputBytes",
        "Input Bytes",
        "By",
        "Bytes that tasks read from sources and caches, by Spark's own count, which misses most of Parquet.",
    ),
    Sum("outputBytes", "Output Bytes", "By", "Bytes that tasks wrote to sinks."),
    Sum("shuffleReadBytes", "Shuffle Read Bytes", "By", "Bytes that tasks read from shuffles."),
    Sum("shuffleWriteBytes", "Shuffle Write Bytes", "By", "Bytes that tasks wrote for shuffles."),
    Sum(
        "memorySpilledBytes",
        "Memory Bytes Spilled",
        "By",
        "Bytes that tasks spilled, as their size in memory.",
    ),
    Sum("diskSpilledBytes", "Disk Bytes Spilled", "By", "Bytes that tasks spilled, as their size on disk."),
)


SPREADS = {
    "Duration": "taskDuration",
    "Executor Run Time": "executorRunTime",
    "JVM GC Time": "jvmGcTime",
    "Executor Deserialize Time": "executorDeserializeTime",
    "Scheduler Delay": "schedulerDelay",
    "Fetch Wait Time": "fetchWaitTime",
    "Bytes Read": "readBytes",
    "Records Read": "readRecords",
    "Bytes Written": "writtenBytes",
    "Disk Bytes Spilled": "diskSpilledBytes",
}
"""How quantities are distributed over a stage's tasks: the record's names, and the attributes of spans."""


def scanned_files_bytes(record: SQLExecutionEndRecord) -> int:
    """Return the size of the files that an SQL execution read, by its SQLExecutionEnd; 0 if unknown."""
    return max(0, int((record.get("Files") or {}).get("Read Bytes") or 0))


def late_growth(record: Mapping[str, Any]) -> dict[str, int]:
    """Return by how much each sum and count of an application grows by a record of late tasks."""
    grown = {summed.name: int(record.get(summed.field) or 0) for summed in SUMS}
    counts = {"finishedTasks": "Finished", "failedTasks": "Failed"}
    return grown | {name: int(record.get(field) or 0) for name, field in counts.items()}


class StageWork:
    """The tasks of one stage attempt.

    Attributes:
        tasks: how many there are to run.
        active: how many run now.
        finished: how many have finished.
        failed: how many task attempts failed.
        sums: the sums over all tasks that have ended, by name.
        spreads: the median, the 95th percentile and the highest value of each of the ``SPREADS``, by
            attribute; known at the end.
    """

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.active = self.finished = self.failed = 0
        self.sums: dict[str, int] = {}
        self.spreads: dict[str, int] = {}

    def take(self, record: Mapping[str, Any]) -> dict[str, int]:
        """Read the bridge's record of the attempt, and return by how much each sum and count has grown."""
        active, finished, failed = (
            int(record.get(field) or 0) for field in ("Running", "Finished", "Failed")
        )
        grown = {
            "finishedTasks": max(0, finished - self.finished),
            "failedTasks": max(0, failed - self.failed),
        }
        self.active, self.finished, self.failed = active, finished, failed
        for summed in SUMS:
            now = int(record.get(summed.field) or 0)
            grown[summed.name] = max(0, now - self.sums.get(summed.name, 0))
            self.sums[summed.name] = now
        measured = record.get("Task Statistics") or {}
        for field, name in SPREADS.items():
            for of, value in zip(("median", "p95", "max"), measured.get(field) or (), strict=False):
                self.spreads[f"{name}.{of}"] = value
        return grown

    def register(self, group: MetricGroup) -> None:
        """Register its metrics."""
        readings: dict[str, Reading] = {
            "activeTasks": (lambda: self.active, "{task}", "Running tasks."),
            "finishedTasks": (lambda: self.finished, "{task}", "Tasks that have finished."),
            "failedTasks": (lambda: self.failed, "{task}", "Tasks that failed."),
            "numTasks": (lambda: self.tasks, "{task}", "Tasks to run in total."),
        }
        for summed in SUMS:
            readings[summed.name] = (partial(self.sums.get, summed.name), summed.unit, summed.description)
        register_gauges(group, readings)


class JobWork:
    """The stages of one job and their tasks; created with the number of each."""

    def __init__(self, stages: int, tasks: int) -> None:
        self._stages, self._tasks = stages, tasks
        self._attempts: list[StageWork] = []
        self.active_stages = self.finished_stages = self.failed_stages = 0

    def submitted(self, work: StageWork) -> None:
        """Called when a stage attempt begins."""
        self._attempts.append(work)
        self.active_stages += 1

    def completed(self, status: JobStatus) -> None:
        """Called when a stage attempt has ended: FINISHED, FAILED, or CANCELED with its job."""
        self.active_stages -= 1
        self.failed_stages += status is JobStatus.FAILED
        self.finished_stages += status is JobStatus.FINISHED

    def register(self, group: MetricGroup) -> None:
        """Register its metrics."""
        readings: dict[str, Reading] = {
            "numStages": (lambda: self._stages, "{stage}", "Stages to run in total."),
            "activeStages": (lambda: self.active_stages, "{stage}", "Running stages."),
            "finishedStages": (lambda: self.finished_stages, "{stage}", "Stages that have finished."),
            "failedStages": (lambda: self.failed_stages, "{stage}", "Stage attempts that failed."),
            "numTasks": (lambda: self._tasks, "{task}", "Tasks to run in total."),
            "activeTasks": (lambda: self._sum("active"), "{task}", "Running tasks."),
            "finishedTasks": (lambda: self._sum("finished"), "{task}", "Tasks that have finished."),
            "failedTasks": (lambda: self._sum("failed"), "{task}", "Tasks that failed."),
        }
        register_gauges(group, readings)

    def _sum(self, name: str) -> int:
        return sum(getattr(work, name) for work in list(self._attempts))


_COUNTS = {
    "finishedTasks": ("{task}", "Tasks that have finished."),
    "failedTasks": ("{task}", "Tasks that failed."),
    "finishedStages": ("{stage}", "Stage attempts that have finished."),
    "failedStages": ("{stage}", "Stage attempts that failed."),
    "canceledStages": ("{stage}", "Stage attempts that were cancelled, with their jobs."),
    "finishedJobs": ("{job}", "Spark jobs that have finished."),
    "failedJobs": ("{job}", "Spark jobs that failed."),
    "canceledJobs": ("{job}", "Spark jobs that were cancelled."),
    "scannedFilesBytes": ("By", "Size of the files that scans of SQL executions read, by their plans."),
}


class ApplicationWork(Timeless):
    """What all jobs of an application have done so far."""

    def __init__(self) -> None:
        self._running: dict[object, StageWork] = {}
        self._counters = {name: Counter(unit, described) for name, (unit, described) in _COUNTS.items()}
        self._counters |= {summed.name: Counter(summed.unit, summed.description) for summed in SUMS}

    def register(self, group: MetricGroup) -> None:
        """Register its metrics, which are the application's."""
        for name, counter in self._counters.items():
            group.register(name, counter)
        readings: dict[str, Reading] = {
            "activeStages": (lambda: len(self._running), "{stage}", "Running stages."),
            "activeTasks": (self._active_tasks, "{task}", "Running tasks."),
        }
        register_gauges(group, readings)

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
        }

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd, which has the size of the files that the execution read."""
        self.count("scannedFilesBytes", scanned_files_bytes(record))

    def submitted(self, attempt: object, work: StageWork) -> None:
        """Called when a stage attempt begins."""
        self._running[attempt] = work

    def completed(self, attempt: object, status: JobStatus) -> None:
        """Called when a stage attempt has ended: FINISHED, FAILED or CANCELED."""
        if self._running.pop(attempt, None) is not None:
            self.count(f"{status.value.lower()}Stages")

    def count(self, name: str, amount: int = 1) -> None:
        """Add to one of the counts."""
        self._counters[name].inc(amount)

    def grow(self, grown: Mapping[str, int]) -> None:
        """Add what ``StageWork.take`` returned."""
        for name, amount in grown.items():
            self.count(name, amount)

    def _active_tasks(self) -> int:
        return sum(work.active for work in list(self._running.values()))
