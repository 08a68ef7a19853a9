"""What happened in an application and when, from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.diagnosis.measured import TasksMeasured, python_ms, read_tasks_measured
from spark_events.listeners import spark_records
from spark_events.listeners.timestamps import record_time_ms


class TaskTimes(NamedTuple):
    """What the tasks of a stage spent their time on; all of it in ms.

    Attributes:
        first_ms, last_ms: when the first of them began, and the last ended, since the epoch.
        longest_ms, total_ms: the duration of the longest, and of all.
    """

    first_ms: int
    last_ms: int
    longest_ms: int
    total_ms: int
    scheduling_ms: int
    gc_ms: int
    shuffle_ms: int
    python_ms: int
    computing_ms: int


class Stage(NamedTuple):
    """A stage attempt that has ended: when, and its tasks' times; None if no task is known."""

    id: int
    job: int | None
    parents: tuple[int, ...]
    submitted_ms: int
    ended_ms: int
    tasks: TaskTimes | None


@dataclass(slots=True)
class Job:
    """A job: when it began and ended, in ms since the epoch; the end is 0 while it runs."""

    id: int
    begun_ms: int
    stages: tuple[int, ...]
    ended_ms: int = 0


@dataclass(slots=True)
class Timeline:
    """What happened in an application, from its records.

    Attributes:
        begun_ms, ended_ms: the application's first and last moment, in ms since the epoch.
        jobs: by id.
        stages: the attempts that have ended.
        cores: how many there were from which moment on.
        queries: when a streaming query ran: its beginning and its end.
    """

    begun_ms: int = 0
    ended_ms: int = 0
    jobs: dict[int, Job] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    cores: list[tuple[int, int]] = field(default_factory=list)
    queries: list[tuple[int, int]] = field(default_factory=list)
    _executors: dict[str, int] = field(default_factory=dict)
    _measured: dict[tuple[int, int], TasksMeasured] = field(default_factory=dict)
    _job_of_stage: dict[int, int] = field(default_factory=dict)
    _running_queries: dict[str, int] = field(default_factory=dict)

    def take(self, record: dict[str, Any]) -> None:
        """Called with each record, in order."""
        name = record["Event"]
        if name == spark_records.STAGE_TASKS:
            if statistics := record.get("Task Statistics"):
                self._measured[spark_records.stage_attempt(record)] = read_tasks_measured(statistics)
            return
        time_ms = record_time_ms(record) or self.ended_ms
        if not time_ms:
            return
        self.begun_ms = self.begun_ms or time_ms
        self.ended_ms = max(self.ended_ms, time_ms)
        if name == spark_records.JOB_START:
            stages = tuple(int(stage) for stage in record.get("Stage IDs") or ())
            job = Job(int(record["Job ID"]), time_ms, stages)
            self.jobs[job.id] = job
            for stage in stages:
                self._job_of_stage.setdefault(stage, job.id)
        elif name == spark_records.JOB_END:
            if (ended := self.jobs.get(int(record["Job ID"]))) is not None:
                ended.ended_ms = time_ms
        elif name == spark_records.STAGE_COMPLETED:
            self._add_stage(record["Stage Info"], time_ms)
        elif name == spark_records.EXECUTOR_ADDED:
            cores = int((record.get("Executor Info") or {}).get("Total Cores") or 0)
            self._executors[str(record["Executor ID"])] = cores
            self.cores.append((time_ms, sum(self._executors.values())))
        elif name == spark_records.EXECUTOR_REMOVED:
            self._executors.pop(str(record["Executor ID"]), None)
            self.cores.append((time_ms, sum(self._executors.values())))
        elif name == spark_records.QUERY_STARTED:
            self._running_queries[str(record["runId"])] = time_ms
        elif name == spark_records.QUERY_TERMINATED:
            self._end_query(str(record["runId"]), time_ms)

    def end(self) -> None:
        """Called after the last record: what still runs ends with it."""
        for job in self.jobs.values():
            job.ended_ms = job.ended_ms or self.ended_ms
        for run_id in list(self._running_queries):
            self._end_query(run_id, self.ended_ms)

    def _end_query(self, run_id: str, time_ms: int) -> None:
        begun_ms = self._running_queries.pop(run_id, None)
        if begun_ms is not None:
            self.queries.append((begun_ms, time_ms))

    def _add_stage(self, info: Mapping[str, Any], time_ms: int) -> None:
        stage, attempt = spark_records.stage_attempt(info)
        self.stages.append(
            Stage(
                stage,
                self._job_of_stage.get(stage),
                tuple(int(parent) for parent in info.get("Parent IDs") or ()),
                int(info.get("Submission Time") or time_ms),
                time_ms,
                _task_times(self._measured.pop((stage, attempt), None), info),
            )
        )


def _task_times(measured: TasksMeasured | None, info: Mapping[str, Any]) -> TaskTimes | None:
    if measured is None or not measured.last_ms:
        return None
    spreads, run_ms = measured.spreads, measured.run.total
    gc_ms = min(run_ms, spreads["JVM GC Time"].total)
    shuffle_ms = min(run_ms - gc_ms, spreads["Fetch Wait Time"].total)
    in_python_ms = min(run_ms - gc_ms - shuffle_ms, python_ms(info.get("Accumulables") or ()))
    around_ms = spreads["Scheduler Delay"].total + spreads["Executor Deserialize Time"].total
    return TaskTimes(
        first_ms=measured.first_ms,
        last_ms=measured.last_ms,
        longest_ms=spreads["Duration"].highest,
        total_ms=spreads["Duration"].total,
        # Of tasks that measured nothing, all that is known would be a delay.
        scheduling_ms=around_ms if run_ms else 0,
        gc_ms=gc_ms,
        shuffle_ms=shuffle_ms,
        python_ms=in_python_ms,
        computing_ms=run_ms - gc_ms - shuffle_ms - in_python_ms,
    )
