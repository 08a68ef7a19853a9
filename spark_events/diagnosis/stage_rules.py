"""The rules about one stage: each returns what it finds, or None.

A measurement of zero is taken as none: native engines leave metrics of tasks at zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes, TaskRun, TasksMeasured
from spark_events.diagnosis.thresholds import (
    GC,
    PYTHON,
    RETRIES,
    SKEW,
    SPILL,
    STRAGGLER,
    TASK_COUNT,
    Thresholds,
)

_TAIL = "tail"
_LOCAL = "driver"
"""The executor in local mode."""
_LEAST_TASK_MS = 4
"""For so long a task runs, however little it does."""
_DATA_RATIO = 2
_TOGETHER_MS, _LEAST_WAVE = 500, 3
"""Tasks that are launched within this time begin together."""
_KEEP_SHUFFLES = (
    "Executors went with the shuffle output that they had: see their ExecutorLostEvents. An external shuffle "
    "service, or spark.decommission.enabled, keeps it."
)
_NOT_MEASURED = "Spark has not measured how much each task reads, so see whether this one has more rows;"


@dataclass(frozen=True, slots=True)
class EndedStage:
    """A stage attempt that has ended.

    Attributes:
        cores: of all executors at its end; 0 if unknown.
        measured: what its tasks measured.
        python: how long they waited for Python.
        retries_tasks: whether Spark tries a task again that has failed; it does not in most local modes.
        warms_up: whether it is the first stage on its executors, or of their Python workers: its first tasks
            load what all need.
        repeats: whether it makes again what was lost.
        failed_of: what the last failed attempt of a task failed of, in one line; empty if unknown.
        reads_cache: whether its tasks read what is cached, or compute it where the cache does not have it.
    """

    cores: int
    measured: TasksMeasured
    python: PythonTimes = NO_PYTHON
    retries_tasks: bool = True
    warms_up: bool = False
    repeats: bool = False
    reads_cache: bool = False
    failed_of: str = ""

    @property
    def wall_ms(self) -> int:
        """From the start of the first task to the end of the last, in ms."""
        return max(0, self.measured.last_ms - self.measured.first_ms)

    @property
    def slots(self) -> int:
        """How many tasks ran at once; Spark may report a start before the end that made room for it."""
        return min(self.measured.most_running, self.cores or self.measured.most_running)

    def longest(self) -> tuple[TaskRun, int] | None:
        """Return the task that takes longest for a reason of its own, and how long, in ms; None if unknown.

        The first tasks of Python workers, and of executors, wait for what all of them need to be loaded. That
        is as long as the second longest of those that began together, and does not count; unless Spark has
        measured that less of their time went into it, or they read more than others. Where the first task of
        each core takes long, it is for something that all of them do for the first time.
        """
        runs, median_ms = self.measured.longest_runs, self.measured.run.median
        first = [run for run in runs if self._is_first(run) and not self.reads_more(run)]
        usual_ms = max(0, first[1].run_ms - median_ms) if len(first) > 1 else 0
        late = [run for run in first if run.run_ms > _DATA_RATIO * median_ms]
        is_whole_wave = len(late) >= max(_LEAST_WAVE, self.slots)
        if not self.warms_up and not is_whole_wave:
            usual_ms = min(usual_ms, self.python.start_ms)
        own_ms = [run.run_ms - usual_ms * (run in first) for run in runs]
        if not own_ms:
            return None
        place = own_ms.index(max(own_ms))
        return runs[place], own_ms[place]

    def reads_more(self, run: TaskRun) -> bool:
        """Return whether a task reads much more than others."""
        return run.read_bytes > _DATA_RATIO * self.measured.read.median and self.measured.read.highest > 0

    def ends_late(self, long_ms: float) -> bool:
        """Return whether a task that is longer than this is among those that end last."""
        runs, run = self.measured.longest_runs, self.measured.run
        # A task does not run yet while it is sent and unpacked: the first ones for some seconds.
        around_ms = max(0, self.measured.spreads["Duration"].highest - run.highest)
        last_ms = self.measured.last_ms - run.median - around_ms
        return any(run.run_ms > long_ms and run.launched_ms + run.run_ms >= last_ms for run in runs)

    @property
    def failed_share(self) -> float:
        """The share of task attempts that failed."""
        failed = self.measured.failed
        return failed / (failed + self.measured.tasks) if failed else 0.0

    def _is_first(self, run: TaskRun) -> bool:
        return run.launched_ms - self.measured.first_ms <= _TOGETHER_MS

    def as_wall_ms(self, task_ms: int) -> int:
        """Return how long a time of tasks lasts if as many run at once as ran at most."""
        return task_ms // self.slots


def stage_issues(stage: EndedStage, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield the issues of a stage, however little they cost."""
    for rule in (long_tail, spill, garbage_collection, task_count, retries, python_functions):
        issue = rule(stage, thresholds)
        if issue is not None:
            yield issue


def long_tail(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that a task takes much longer than the others: with more data, a skew; else a straggler."""
    measured, run, read = stage.measured, stage.measured.run, stage.measured.read
    longest_run = stage.longest()
    if measured.tasks < 2 or longest_run is None or longest_run[1] <= thresholds.skew_factor * run.median:
        return None
    longest, own_ms = longest_run
    skewed = stage.reads_more(longest)
    if stage.reads_cache and read.highest and not longest.read_bytes:
        return None  # others find in the cache what this one has to compute
    in_python = stage.python.run_ms or stage.python.in_rdd
    if not skewed and in_python and stage.failed_share and stage.failed_share >= thresholds.failed_share:
        return None  # where a Python function fails, its worker ends, and the next task waits for another
    # A long task costs nothing while other cores have something to do. Of data that were evenly spread, the
    # time would remain; of whatever holds a straggler up, it would not.
    more_ms = own_ms - run.median
    # A core is not idle while a task is sent to it.
    busy_ms = max(run.total, measured.spreads["Duration"].total)
    uneven_ms = max(0, min(more_ms, stage.wall_ms - stage.as_wall_ms(busy_ms)))
    lost_ms = max(0, min(more_ms, stage.wall_ms - stage.as_wall_ms(busy_ms - more_ms)))
    if not stage.ends_late(thresholds.skew_factor * run.median):
        lost_ms = uneven_ms  # others end later: nothing waits for a long one
    times = f"{duration(own_ms)}, the median {duration(run.median)}"
    if skewed:
        sentence = (
            f"task {longest.number} reads {size(longest.read_bytes)}, the median {size(read.median)}; "
            f"it takes {times}"
        )
        advice = (
            "A few keys hold most of the rows. For a join, let Spark split them "
            "(spark.sql.adaptive.enabled and spark.sql.adaptive.skewJoin.enabled), or broadcast the small "
            "side; for an aggregation or an RDD, add a random part to the key, and aggregate twice."
        )
    else:
        known = f"it reads {size(longest.read_bytes)}, like the others" if read.highest else ""
        because = "Its data is not larger, so" if read.highest else _NOT_MEASURED
        at, look = _place(longest, measured)
        sentence = "; ".join(filter(None, (f"task {longest.number}{at} takes {times}", known)))
        advice = f"{because} {look}"
    return Issue(
        SKEW if skewed else STRAGGLER,
        _TAIL,
        uneven_ms if skewed else lost_ms,
        None,
        sentence,
        advice,
        evidence={
            "task.index": longest.number,
            "task.host": longest.host,
            "task.executorId": longest.executor,
            "task.runTimeMs": longest.run_ms,
            "task.readBytes": longest.read_bytes,
            "median.runTimeMs": run.median,
            "p95.runTimeMs": run.p95,
            "median.readBytes": read.median,
        },
        uneven_ms=uneven_ms,
    )


def _place(run: TaskRun, measured: TasksMeasured) -> tuple[str, str]:
    """Return where a late task ran, for a sentence, and where to look; in local mode, there is one place."""
    rows = "check what this task's rows make your code do"
    if len(measured.hosts) <= 1 and run.executor == _LOCAL:
        return "", f"{rows}."
    again = "spark.speculation=true runs a second copy of such a task elsewhere."
    if len(measured.hosts) <= 1:
        return f" on executor {run.executor}", f"look at executor {run.executor}, and {rows}; {again}"
    return f" on {run.host}", f"look at the host {run.host}, and {rows}; {again}"


def lagging_task(
    index: int, executor: str, host: str, running_ms: int, median_ms: int, thresholds: Thresholds
) -> Issue | None:
    """Return that a task still runs while most others are done, and ran for much less time."""
    if running_ms <= thresholds.running_factor * median_ms:
        return None
    return Issue(
        STRAGGLER,
        _TAIL,
        running_ms - median_ms,
        None,
        f"task {index} on {host} has been running for {duration(running_ms)}, the median of those that are "
        f"done is {duration(median_ms)}",
        f"Look at what executor {executor} on {host} does (its threads are in Spark's UI), and whether this "
        "task has more data than others; spark.speculation=true runs a second copy of such a task elsewhere.",
        evidence={
            "live": True,
            "task.index": index,
            "task.host": host,
            "task.executorId": executor,
            "task.runTimeMs": running_ms,
            "median.runTimeMs": median_ms,
        },
    )


def spill(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that tasks wrote to disk what did not fit into their memory."""
    spilled = stage.measured.spreads["Disk Bytes Spilled"]
    if spilled.total < max(1, thresholds.min_bytes):
        return None
    return Issue(
        SPILL,
        SPILL,
        None,
        spilled.total,
        f"tasks spill {size(spilled.total)} to disk, up to {size(spilled.highest)} each",
        "Give each task less data (more partitions: spark.sql.shuffle.partitions, or repartition), or more "
        "memory (spark.executor.memory, or fewer spark.executor.cores).",
        evidence={
            "spilledBytes": spilled.total,
            "task.spilledBytes": spilled.highest,
            "readBytes": stage.measured.read.total,
        },
    )


def garbage_collection(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that garbage collection takes much of the tasks' time."""
    run, gc = stage.measured.run, stage.measured.spreads["JVM GC Time"]
    share = gc.total / run.total if run.total else 0.0
    if share < thresholds.gc_warn or not gc.total:
        return None
    # A task that waits for Python, which has a heap of its own, is not held up.
    in_jvm = max(0, run.total - stage.python.run_ms) / run.total
    return Issue(
        GC,
        GC,
        stage.as_wall_ms(int(gc.total * in_jvm)),
        None,
        f"garbage collection takes {share:.0%} of the tasks' run time",
        "Give executors more heap (spark.executor.memory), or run fewer tasks at once in each "
        "(spark.executor.cores); cache less, or serialized.",
        Severity.ERROR if share >= thresholds.gc_error else Severity.WARN,
        {"gcTimeMs": gc.total, "runTimeMs": run.total, "gcShare": round(share, 4)},
    )


def task_count(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that a stage has many tiny tasks, or too few for the cores that there are."""
    measured, run = stage.measured, stage.measured.run
    evidence = {"numTasks": measured.tasks, "cores": stage.cores, "median.runTimeMs": run.median}
    if measured.tasks > thresholds.least_many_tasks and run.median < thresholds.short_task_ms:
        delay, start = measured.spreads["Scheduler Delay"], measured.spreads["Executor Deserialize Time"]
        around_ms = delay.total + start.total
        overhead_ms = around_ms + measured.tasks * min(run.median, _LEAST_TASK_MS)
        return Issue(
            TASK_COUNT,
            TASK_COUNT,
            stage.as_wall_ms(overhead_ms),
            None,
            f"{measured.tasks:,} tasks of {duration(run.median)} each at the median; scheduling and starting "
            f"them takes {duration(around_ms)}, running them {duration(run.total)}",
            "Use fewer partitions: coalesce(), spark.sql.shuffle.partitions, larger input files, or a larger "
            "spark.sql.files.maxPartitionBytes.",
            evidence={**evidence, "overheadMs": around_ms, "runTimeMs": run.total},
        )
    if 0 < measured.tasks < stage.cores and run.median > thresholds.least_long_task_ms:
        # A worker starts once, whatever it is given to do.
        own_ms = max(0, run.total - stage.python.start_ms)
        lost_ms = max(0, run.highest - stage.python.start_ms // measured.tasks - own_ms // stage.cores)
        count = "one task" if measured.tasks == 1 else f"{measured.tasks} tasks"
        each = "" if measured.tasks == 1 else " each at the median"
        return Issue(
            TASK_COUNT,
            TASK_COUNT,
            lost_ms,
            None,
            f"{count} of {duration(run.median)}{each}, for {stage.cores} cores",
            "Use more partitions: repartition(), spark.sql.shuffle.partitions, or files that can be split.",
            evidence={**evidence, "fewTasks": True},
        )
    return None


def retries(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that many attempts of tasks failed, or that all of them do again what others had done."""
    measured = stage.measured
    if stage.repeats:
        return _made_again(stage)
    if stage.failed_share < thresholds.failed_share or not measured.failed:
        return None
    if not stage.retries_tasks and not measured.fetch_failures:
        return None
    because = (
        f", {measured.fetch_failures} because shuffle output was gone" if measured.fetch_failures else ""
    )
    advice = "See this stage's failures for the cause; if executors were lost, see their ExecutorLostEvents."
    return Issue(
        RETRIES,
        RETRIES,
        _lost_to_failed(stage),
        None,
        f"{measured.failed} of {measured.failed + measured.tasks} task attempts failed{because}, after "
        f"{duration(measured.failed_ms)} in all{f'; the last: {stage.failed_of}' if stage.failed_of else ''}",
        _KEEP_SHUFFLES if measured.fetch_failures else advice,
        evidence={
            "failedTasks": measured.failed,
            "failedTimeMs": measured.failed_ms,
            "fetchFailures": measured.fetch_failures,
            "numTasks": measured.tasks,
        },
    )


def _lost_to_failed(stage: EndedStage) -> int:
    """Return how much shorter the stage would be without its failed attempts, in ms.

    Where other tasks are left to run, failed attempts take their share of the cores; at the end of a stage,
    all cores wait for the task that has to begin again.
    """
    duration_ms, failed_ms = stage.measured.spreads["Duration"], stage.measured.failed_ms
    without_ms = max(stage.as_wall_ms(duration_ms.total), duration_ms.highest)
    return max(stage.as_wall_ms(failed_ms), min(failed_ms, stage.wall_ms - without_ms))


def _made_again(stage: EndedStage) -> Issue:
    measured = stage.measured
    count = "one task runs" if measured.tasks == 1 else f"{measured.tasks:,} tasks run"
    return Issue(
        RETRIES,
        RETRIES,
        stage.wall_ms,
        None,
        f"{count} again for {duration(stage.wall_ms)}: what the stage had written was gone",
        _KEEP_SHUFFLES,
        evidence={"numTasks": measured.tasks, "runTimeMs": measured.run.total, "repeats": True},
    )


def python_functions(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that most of the tasks' time is spent in Python functions.

    How long the same would take without Python is known of no RDD, and of no function that takes whole groups
    or batches: what is said of those is how long they take, not what they cost.
    """
    run, python = stage.measured.run, stage.python
    started_ms = max(0, run.total - python.start_ms)  # workers start once, however much they do
    share = min(1.0, python.run_ms / started_ms) if started_ms else 0.0
    if share < thresholds.python_share or not python.run_ms:
        return None
    of_all = min(1.0, python.run_ms / run.total)
    time_ms = stage.as_wall_ms(python.run_ms)
    advice = (
        "Use Spark's own functions where there are any, pandas or Arrow functions instead of row by row, and "
        "call the function on fewer rows: filter before it."
    )
    if python.in_rdd:
        advice = (
            "Spark does not know what they do. If they call a service, let them send many rows at once, or "
            "several calls at the same time; if they compute, DataFrames do in the JVM what they can."
        )
    return Issue(
        PYTHON,
        PYTHON,
        None if python.in_rdd else time_ms,
        None,
        f"{of_all:.0%} of the tasks' run time is spent in Python functions"
        f"{' of an RDD' if python.in_rdd else ''}",
        advice,
        Severity.INFO,
        {"pythonTimeMs": python.run_ms, "runTimeMs": run.total, "pythonShare": round(of_all, 4)},
        share_ms=time_ms if python.in_rdd else None,
    )
