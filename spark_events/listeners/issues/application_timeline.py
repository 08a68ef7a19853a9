"""What happened in an application and when, from its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_events.api import AttributeValue
from spark_events.diagnosis.measured import PythonTimes, TasksMeasured, read_tasks_measured
from spark_events.diagnosis.plans.execution import read_stage
from spark_events.diagnosis.rdds.repeated_stages import RepeatedStages
from spark_events.diagnosis.times.cores_model import (
    CORES,
    CRITICAL_PATH,
    ESTIMATES,
    critical_path_ms,
    estimates,
)
from spark_events.diagnosis.times.ledger import ACCOUNTS, Booked, Ledger
from spark_events.diagnosis.times.python_times import StagesInPython, python_with_late_tasks
from spark_events.diagnosis.times.run_timeline import JobRun, RunStages, StageRun, TaskTimes
from spark_events.listeners import spark_records
from spark_events.listeners.issues.running_tasks import RunningTasks
from spark_events.listeners.listener import Handlers, Record, Timeless, early
from spark_events.listeners.queries.micro_batch import MicroBatch, parse_micro_batch
from spark_events.listeners.spark_records import record_time_ms

_NO_BATCH = -1, 0
_MOST_CHANGES, _MOST_UNSETTLED, _MOST_EXECUTIONS = 20_000, 10_000, 10_000
TIMELINE_RECORDS = (
    spark_records.APPLICATION_START,
    spark_records.EXECUTOR_ADDED,
    spark_records.EXECUTOR_REMOVED,
    spark_records.QUERY_STARTED,
    # These say what time it is: Spark gives none for the end of a query.
    spark_records.QUERY_PROGRESS,
    spark_records.QUERY_IDLE,
    spark_records.QUERY_TERMINATED,
    spark_records.SQL_EXECUTION_START,
    spark_records.SQL_EXECUTION_END,
    spark_records.JOB_START,
    spark_records.STAGE_SUBMITTED,
    spark_records.STAGE_TASKS,
    spark_records.LATE_TASKS,
    spark_records.STAGE_COMPLETED,
    spark_records.JOB_END,
    spark_records.APPLICATION_END,
)
"""What ``ApplicationTimeline.take`` has to be called with."""
_BEGIN_WORK = (spark_records.QUERY_STARTED, spark_records.SQL_EXECUTION_START, spark_records.JOB_START)
"""Until the first of these, the driver is alone."""


class ApplicationTimeline(Timeless):
    """What happened in an application and when, from its records.

    Args:
        bounded: whether a long run is folded: where its time went stays known, and what other numbers of
            cores would change does not.

    Attributes:
        run: its jobs and stages; None if they are folded.
        begun_ms, ended_ms: its first and its latest moment, in ms since the epoch.
        jobs: how many have begun.
        cores: the most that there were at once; 0 if nobody knows.
        unfinished: how many tasks ran when their stage came to its end; None if some did where the records
            end, and nobody knows how many.
    """

    def __init__(self, bounded: bool) -> None:
        self.run: RunStages | None = RunStages()
        self.begun_ms = self.ended_ms = 0
        self._first_work_ms = 0
        self.jobs = self.cores = 0
        self.unfinished: int | None = 0
        self._bounded = bounded
        self._ledger = Ledger()
        self._executors: dict[str, int] = {}
        self._submitted: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._running = RunningTasks()
        self._measured: dict[tuple[int, int], TasksMeasured] = {}
        self._job_of_stage: dict[int, int] = {}
        self._repeated = RepeatedStages()
        self._in_python = StagesInPython()
        self._late: dict[tuple[int, int], _LateStage] = {}
        self._running_jobs: dict[int, JobRun] = {}
        self._executions: set[int] = set()
        self._queries: dict[str, int] = {}
        # The number of the micro-batch that each run of a query is in.
        # Of each query, the micro-batch that runs, and when its SQL execution began.
        self._batches: dict[str, tuple[int, int]] = {}

    @property
    def handlers(self) -> Handlers:
        """What it hears, before those that ask it."""
        return dict.fromkeys(TIMELINE_RECORDS, early(lambda record, time_ms: self.take(record)))

    def take(self, record: Record) -> None:
        """Called with each record, in order."""
        name = record["Event"]
        if name == spark_records.STAGE_TASKS:
            self._running.changed(record)
            if statistics := record.get("Task Statistics"):
                measured = read_tasks_measured(statistics)
                self._measured[spark_records.stage_attempt(record)] = measured
                self.ended_ms = max(self.ended_ms, measured.last_ms)  # of a stage without an end, in a log
            return
        if name == spark_records.LATE_TASKS:
            self._end_late(record)
            return
        time_ms = record_time_ms(record) or self.ended_ms
        if not time_ms:
            return
        self.begun_ms = self.begun_ms or time_ms
        self.ended_ms = max(self.ended_ms, time_ms)
        if name in _BEGIN_WORK:
            self._first_work_ms = self._first_work_ms or time_ms
        if name == spark_records.APPLICATION_START:
            self.begun_ms = min(self.begun_ms, time_ms)  # Spark posts it after its first executors
        elif name == spark_records.JOB_START:
            self._begin_job(int(record["Job ID"]), record, time_ms)
        elif name == spark_records.JOB_END:
            self._end_job(int(record["Job ID"]), time_ms)
        elif name == spark_records.STAGE_SUBMITTED:
            info = record["Stage Info"]
            _parents(info)  # a damaged record is met here, and not at the end
            self._submitted[spark_records.stage_attempt(info)] = {"Submission Time": time_ms, **info}
        elif name == spark_records.STAGE_COMPLETED:
            self._add_stage(record["Stage Info"], time_ms)
        elif name in (spark_records.EXECUTOR_ADDED, spark_records.EXECUTOR_REMOVED):
            self._change_executors(name, record, time_ms)
        elif name == spark_records.QUERY_STARTED:
            if str(record["runId"]) not in self._queries:  # or else it began while spark-events was attached
                self._queries[str(record["runId"])] = time_ms
                self._ledger.queries(time_ms, 1)
        elif name == spark_records.SQL_EXECUTION_START:
            self._begin_execution(record, time_ms)
        elif name == spark_records.SQL_EXECUTION_END:
            self._end_execution(int(record["executionId"]), time_ms)
        elif name == spark_records.QUERY_PROGRESS:
            self._end_batch(record["progress"], time_ms)
        elif name == spark_records.QUERY_TERMINATED and self._queries.pop(str(record["runId"]), None):
            self._ledger.queries(time_ms, -1)
            self._close_batch(str(record["runId"]), time_ms)
        if self._bounded and self._ledger.pending > _MOST_CHANGES:
            self._fold(time_ms)

    def end(self) -> None:
        """Called after the last record: what still runs ends with it."""
        for key, info in list(self._submitted.items()):
            if not self._may_run(key[0]):
                continue  # its end was lost
            self._running.assume(key, info, self._cores_now)
            self._add_stage(info, self.ended_ms, cut=True)
        for late in self._late.values():
            self._ledger.stage(late.run)
            self.unfinished = None if self.unfinished is None else self.unfinished + late.number
        self._late.clear()
        for job in list(self._running_jobs):
            self._end_job(job, self.ended_ms)
        for run in self._queries:
            self._ledger.queries(self.ended_ms, -1)
            self._close_batch(run, self.ended_ms)
        self._queries.clear()
        for execution in list(self._executions):
            self._end_execution(execution, self.ended_ms)
        if self.run is not None:
            self.run.begun_ms, self.run.ended_ms, self.run.cores = self.begun_ms, self.ended_ms, self.cores

    @property
    def to_first_work_ms(self) -> int:
        """How long it took until its first job, SQL execution or query began, in ms; 0 if none did."""
        return max(0, self._first_work_ms - self.begun_ms) if self._first_work_ms else 0

    def _may_run(self, stage: int) -> bool:
        """Return whether a job runs that a stage may be one of."""
        job = self._job_of_stage.get(stage)
        return job in self._running_jobs if job is not None else bool(self._running_jobs)

    def booked(self) -> Booked:
        """Return what is booked to each account: the application's time, and that of its cores."""
        return self._ledger.booked(self.begun_ms, self.ended_ms)

    def attributes(self) -> dict[str, AttributeValue]:
        """Return the attributes of the span of an application that has ended: ``booked`` and the model."""
        self.end()
        attributes: dict[str, AttributeValue] = {
            ACCOUNTS[account].attribute: ms for account, ms in self.booked().time_ms.items() if ms
        }
        if self.run is not None:
            if (critical_ms := critical_path_ms(self.run)) is not None:
                attributes[CRITICAL_PATH] = critical_ms
            if with_cores := [estimate for estimate in estimates(self.run) if estimate.cores]:
                attributes[CORES] = tuple(estimate.cores or 0 for estimate in with_cores)
                attributes[ESTIMATES] = tuple(estimate.time_ms for estimate in with_cores)
        return attributes

    def _begin_job(self, number: int, record: Mapping[str, Any], time_ms: int) -> None:
        if number in self._running_jobs:  # it began while spark-events was attached, and is told twice
            return
        self.jobs += 1
        self._running_jobs[number] = job = JobRun(number, time_ms)
        self._ledger.jobs(time_ms, 1)
        if self.run is not None:
            self.run.jobs[number] = job
            for stage in record.get("Stage IDs") or ():
                self._job_of_stage.setdefault(int(stage), number)

    def _end_job(self, number: int, time_ms: int) -> None:
        job = self._running_jobs.pop(number, None)
        if job is not None:
            job.ended_ms = time_ms
            self._ledger.jobs(time_ms, -1)

    def _begin_execution(self, record: Mapping[str, Any], time_ms: int) -> None:
        execution = int(record["executionId"])
        if execution not in self._executions and len(self._executions) < _MOST_EXECUTIONS:
            self._executions.add(execution)
            self._ledger.executions(time_ms, 1)
        self._begin_batch(parse_micro_batch(record.get("description")), time_ms)

    def _end_execution(self, execution: int, time_ms: int) -> None:
        if execution in self._executions:
            self._executions.discard(execution)
            self._ledger.executions(time_ms, -1)

    def _begin_batch(self, batch: MicroBatch | None, time_ms: int) -> None:
        """A micro-batch begins with its SQL execution, within which there may be others of its own."""
        if batch is None or batch.number is None or batch.run_id not in self._queries:
            return
        if self._batches.get(batch.run_id, _NO_BATCH)[0] < batch.number:
            self._close_batch(batch.run_id, time_ms)
            self._batches[batch.run_id] = batch.number, time_ms
            self._ledger.batches(time_ms, 1)

    def _end_batch(self, progress: Mapping[str, Any], time_ms: int) -> None:
        """Before its SQL execution, a micro-batch has asked its sources, written offsets, and planned."""
        run, number = str(progress["runId"]), progress.get("batchId")
        running, begun_ms = self._batches.get(run, _NO_BATCH)
        if number is not None and running == int(number):
            took_ms = int((progress.get("durationMs") or {}).get("triggerExecution") or 0)
            self._ledger.batches(min(begun_ms, time_ms - took_ms), 1)
            self._ledger.batches(begun_ms, -1)
        if number is None or running <= int(number):
            self._close_batch(run, time_ms)

    def _close_batch(self, run: str, time_ms: int) -> None:
        if self._batches.pop(run, None) is not None:
            self._ledger.batches(time_ms, -1)

    def _change_executors(self, name: str, record: Mapping[str, Any], time_ms: int) -> None:
        executor = str(record["Executor ID"])
        if name == spark_records.EXECUTOR_ADDED:
            self._executors[executor] = spark_records.total_cores(record.get("Executor Info") or {})
        else:
            self._executors.pop(executor, None)
        cores = self._cores_now
        self.cores = max(self.cores, cores)
        self._ledger.cores(time_ms, cores)

    @property
    def _cores_now(self) -> int:
        return sum(self._executors.values())

    def _add_stage(self, info: Mapping[str, Any], time_ms: int, cut: bool = False) -> None:
        key = stage, attempt = spark_records.stage_attempt(info)
        self._submitted.pop(key, None)
        measured = self._measured.pop(key, None)
        python = self._in_python.of_stage(info, measured)
        tasks = _task_times(measured, python, info)
        unfinished = self._running.pop(key)
        # Of a stage that succeeds, only copies of tasks may still run, which Spark kills then.
        has_failed = bool(info.get("Failure Reason"))
        runs_on = unfinished is not None and not cut and has_failed
        if unfinished is not None and (cut or runs_on):
            if cut or self.unfinished is None:
                self.unfinished = None
            elif self._bounded:
                self.unfinished += unfinished.number
            since_ms = tasks.last_ms if tasks is not None else min(unfinished.since_ms, time_ms)
            tasks = _with_unfinished(tasks, unfinished.number, since_ms, time_ms)
        run = StageRun(
            stage,
            self._repeated.ended(stage, attempt, has_failed),
            self._job_of_stage.get(stage),
            _parents(info),
            int(info.get("Submission Time") or time_ms),
            time_ms,
            tasks,
        )
        if unfinished is not None and not cut and not self._bounded:
            self._late[key] = _LateStage(run, info, python, unfinished.number if has_failed else 0)
        else:
            self._ledger.stage(run)
        if self.run is not None:
            self.run.stages.append(run)

    def _end_late(self, record: Record) -> None:
        """Book an attempt whose last task has ended, after the stage itself."""
        statistics = record.get("Task Statistics")
        late = self._late.pop(spark_records.stage_attempt(record), None) if statistics else None
        if late is None or not statistics:
            return
        measured = read_tasks_measured(statistics)
        tasks = _task_times(measured, python_with_late_tasks(late.info, measured, late.python), late.info)
        ended_ms = max(late.run.ended_ms, measured.last_ms)
        self._ledger.stage(late.run._replace(ended_ms=ended_ms, tasks=tasks))

    def _fold(self, now_ms: int) -> None:
        """Forget what is settled; of stages that still run, nobody knows yet what their tasks do."""
        self.run = None
        self._job_of_stage.clear()
        self._ledger.fold(
            self.begun_ms,
            min((int(info["Submission Time"]) for info in self._submitted.values()), default=now_ms),
        )
        if self._ledger.pending > _MOST_UNSETTLED:
            self._ledger.fold(self.begun_ms, now_ms)


class _LateStage(NamedTuple):
    """An attempt that has ended, and tasks of which run on: it is booked with the last of them.

    ``run`` is what would be booked without them, ``python`` what its tasks did in Python by then, and
    ``number`` how many there are, but for copies of tasks that have succeeded.
    """

    run: StageRun
    info: Mapping[str, Any]
    python: PythonTimes
    number: int


def _parents(info: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(parent) for parent in info.get("Parent IDs") or ())


def _with_unfinished(tasks: TaskTimes | None, number: int, since_ms: int, until_ms: int) -> TaskTimes:
    """Return what tasks spent their time on, with those that run when their stage ends.

    When each of them began is not known: they have a core at least since the last of the others ended.
    """
    each_ms = max(0, until_ms - since_ms)
    if tasks is None:
        tasks = TaskTimes(since_ms, until_ms, 0, 0)
    return tasks._replace(
        last_ms=until_ms,
        longest_ms=max(tasks.longest_ms, each_ms),
        total_ms=tasks.total_ms + number * each_ms,
        unfinished_ms=number * each_ms,
    )


def _task_times(
    measured: TasksMeasured | None, python: PythonTimes, info: Mapping[str, Any]
) -> TaskTimes | None:
    if measured is None or not measured.last_ms:
        return None
    spreads, left_ms = measured.spreads, measured.run.total
    parts_ms = []
    # Each part has no more than those before it leave, so that all of them are the tasks' run time.
    for part_ms in (
        spreads["JVM GC Time"].total,
        spreads["Fetch Wait Time"].total,
        read_stage(info, measured.last_ms).shuffle_write_ms,
        python.start_ms,
        python.run_ms,
    ):
        parts_ms.append(min(left_ms, part_ms))
        left_ms -= parts_ms[-1]
    gc_ms, shuffle_ms, write_ms, python_start_ms, python_ms = parts_ms
    around_ms = spreads["Scheduler Delay"].total + spreads["Executor Deserialize Time"].total
    return TaskTimes(
        first_ms=measured.first_ms,
        last_ms=measured.last_ms,
        longest_ms=spreads["Duration"].highest,
        total_ms=spreads["Duration"].total,
        repeated_ms=measured.failed_ms + measured.killed_ms,
        # Of tasks that measured nothing, all that is known would be a delay.
        scheduling_ms=around_ms if measured.run.total else 0,
        gc_ms=gc_ms,
        shuffle_ms=shuffle_ms,
        shuffle_write_ms=write_ms,
        python_start_ms=python_start_ms,
        python_ms=python_ms,
        computing_ms=left_ms,
    )
