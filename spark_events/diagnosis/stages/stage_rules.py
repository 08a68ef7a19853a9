"""The rules about one stage: each returns what it finds, or None.

A measurement of zero is taken as none: native engines leave metrics of tasks at zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.api import AttributeValue, Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.rdds.repeated_stages import KEEP_SHUFFLES, MADE_AGAIN
from spark_events.diagnosis.stages.added_data import added_data, is_of_some
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.long_tail import long_tail
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

_LEAST_TASK_MS = 4
"""For so long a task runs, however little it does."""
_NEW_WORKERS = (
    "spark.python.worker.reuse=false lets each task start a Python worker of its own, which imports "
    "everything again: set it to true, the default."
)
SMALL_BATCH = "python.batchRows"
"""How many rows a batch for Python has at most, where the configuration makes that far fewer than usual."""
_FEW_ROWS = 1_000
FASTER_FUNCTIONS = (
    "Use Spark's own functions where there are any, pandas or Arrow functions instead of row by row, and "
    "call the function on fewer rows: filter before it."
)
"""What helps where a plan says nothing else of the functions."""
_UNKNOWN_FUNCTIONS = (
    "Spark does not know what they do. If they open a connection or load something for each row, do that "
    "once for each partition (mapPartitions). If they call a service, let them send many rows at once, or "
    "several calls at the same time; if they compute, DataFrames do in the JVM what they can. Large "
    "objects that they refer to are loaded anew by each task, unless sc.broadcast() brings them. Run "
    "one task alone: if it takes half as long, tasks wait for each other (a lock, a pool of "
    "connections, a limit of a service), and more cores do not help."
)
_STARTED_MS = 3_000
"""So long, the first task of a core may wait for its Python worker."""
OF_RDD, OF_OBJECTS = "Python functions of an RDD", "python.objects"
"""What is said of Python in RDDs, and whether it makes DataFrames of objects that the driver has sent."""
WITH_ROWS = ", and in what Spark does with their rows, which it does not measure apart"
_NO_RDD = (
    "They get the rows of a DataFrame (df.rdd), each of which is packed for Python, and once more where a "
    "DataFrame is made of what they return: from_json() with a schema parses in the JVM, where "
    "spark.read.json(df.rdd…) does it twice, and other functions of DataFrames need no Python either."
)
_SENT_OUT = (
    "foreach and foreachPartition hand rows to something outside of Spark: send many rows in each request, "
    "over one connection for each partition, or several requests at the same time. More partitions than "
    "cores do not help. What the function computes before, Spark's own functions do in the JVM."
)
_FEW_ROWS_EACH = (
    "In Python, a task takes tens of milliseconds whatever it does, and more on busy machines: if a row "
    "takes little, use fewer partitions (numPartitions of reduceByKey, groupByKey or join, coalesce(), "
    "spark.default.parallelism)."
)
_LOADED_BY_EACH = (
    "If they refer to something large (a dict, a list, a model), bring it by sc.broadcast(), which each "
    "Python worker loads once; if the same runs faster with fewer partitions, that is it."
)
_FEW_ROWS_OF_TASK = 1_000
SMALL_TASKS = "python.smallTasks"
"""How many tasks a stage has for functions in Python that get few rows each."""
_COMBINED = (
    "groupByKey moves every value: reduceByKey or aggregateByKey combine the values of a key before the "
    "shuffle, if what you make of them is smaller."
)
_MORE_HEAP = (
    "Give executors more heap (spark.executor.memory), or run fewer tasks at once in each "
    "(spark.executor.cores); cache less, or serialized."
)
_MORE_HEAP_OF_DRIVER = (
    "Give the driver, which runs the tasks in local mode, more heap (spark.driver.memory), or run fewer "
    "tasks at once (local[n]); cache less, or serialized."
)

FEWER_OF_SHUFFLE = (
    "Set spark.sql.shuffle.partitions to about the number of cores, or let Spark put small partitions "
    "together (spark.sql.adaptive.enabled=true; of repartition(n) and of RDDs, it keeps the number that it "
    "is given). Where a streaming query keeps state, that needs a new checkpoint."
)
FEWER_OF_SOURCE = (
    "Use fewer partitions: repartition(n), parallelize(…, n) and range(…, n) with about the number of cores, "
    "a smaller spark.default.parallelism, or a larger spark.sql.files.maxPartitionBytes."
)


def stage_issues(stage: EndedStage, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield the issues of a stage, however little they cost."""
    added = added_data(stage, thresholds)
    if added is not None:
        yield added
    explains_tail = added is not None and is_of_some(stage)
    for rule in (long_tail, spill, garbage_collection, task_count, retries, python_functions, python_starts):
        issue = rule(stage, thresholds)
        if issue is not None and not (explains_tail and issue.kind in (SKEW, STRAGGLER)):
            yield issue


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
        share_ms=stage.wall_ms,
    )


def garbage_collection(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that garbage collection takes much of the tasks' time.

    It counts as far as tasks have a CPU in the rest of their time: one that waits for a disk is not held up,
    and if others use the CPUs, collectors wait for them too, longer than tasks do.
    """
    run, gc = stage.measured.run, stage.measured.spreads["JVM GC Time"]
    share = gc.total / run.total if run.total else 0.0
    # A task that waits for Python, or for it to start, is not held up: Python has a heap of its own.
    in_jvm_ms = max(0, run.total - stage.python.run_ms - stage.python.start_ms)
    rest_ms = max(1, in_jvm_ms - gc.total)
    counts = min(1.0, stage.measured.cpu_ms / rest_ms) if stage.measured.cpu_ms else 1.0
    if share * counts < thresholds.gc_warn or not gc.total:
        return None
    return Issue(
        GC,
        GC,
        stage.as_wall_ms(gc.total * in_jvm_ms // run.total),
        None,
        f"garbage collection takes {min(1.0, share):.0%} of the tasks' run time",
        _MORE_HEAP_OF_DRIVER if stage.is_local else _MORE_HEAP,
        Severity.ERROR if share * counts >= thresholds.gc_error else Severity.WARN,
        {"gcTimeMs": gc.total, "runTimeMs": run.total, "gcShare": round(share, 4)},
    )


def task_count(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that a stage has many tiny tasks, or too few for the cores that there are."""
    measured, run = stage.measured, stage.measured.run
    evidence = {"numTasks": measured.tasks, "cores": stage.cores, "median.runTimeMs": run.median}
    if measured.tasks > thresholds.least_many_tasks and run.median < thresholds.short_task_ms:
        around_ms, overhead_ms = for_tasks_ms(measured)
        return Issue(
            TASK_COUNT,
            TASK_COUNT,
            stage.as_wall_ms(overhead_ms),
            None,
            f"{measured.tasks:,} tasks of {duration(run.median)} each at the median; scheduling and starting "
            f"them takes {duration(around_ms)}, running them {duration(run.total)}",
            FEWER_OF_SHUFFLE if stage.reads_shuffles else FEWER_OF_SOURCE,
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


def for_tasks_ms(measured: TasksMeasured) -> tuple[int, int]:
    """Return how long scheduling and starting tasks takes, and that with what each runs at least, in ms."""
    delay, start = measured.spreads["Scheduler Delay"], measured.spreads["Executor Deserialize Time"]
    around_ms = delay.total + start.total
    return around_ms, around_ms + measured.tasks * min(measured.run.median, _LEAST_TASK_MS)


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
        KEEP_SHUFFLES if measured.fetch_failures else advice,
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
        KEEP_SHUFFLES,
        evidence={"numTasks": measured.tasks, "runTimeMs": measured.run.total, MADE_AGAIN: True},
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
    run_ms = python.run_ms
    if stage.of_objects and stage.warms_up:  # Spark does not measure how long workers of RDDs take to start
        run_ms = max(0, run_ms - _STARTED_MS * stage.slots)
    time_ms = stage.as_wall_ms(run_ms)
    advice = _of_rdd(stage) if python.in_rdd else FASTER_FUNCTIONS
    if not stage.reuses_workers:
        advice = f"{_NEW_WORKERS} {advice}"
    evidence: dict[str, AttributeValue] = {"pythonTimeMs": run_ms, "runTimeMs": run.total}
    evidence["pythonShare"] = round(of_all, 4)
    if not python.in_rdd and stage.arrow_rows is not None and 0 < stage.arrow_rows < _FEW_ROWS:
        evidence[SMALL_BATCH] = stage.arrow_rows
    if python.in_rdd and stage.of_objects:
        evidence[OF_OBJECTS] = True
    small = ""
    if python.in_rdd and not stage.hands_out and _get_few_rows(stage, thresholds):
        evidence[SMALL_TASKS], advice = stage.measured.tasks, f"{_FEW_ROWS_EACH} {advice}"
        small = (
            f"; its {stage.measured.tasks:,} tasks, for {stage.cores} cores, get about "
            f"{stage.measured.rows.median:,} records each (one of a shuffle may hold several rows) and take "
            f"{duration(run.median)} at the median"
        )
    has_own = python.in_rdd and not stage.hands_out and not stage.of_objects
    if has_own and not small and stage.has_far_more_tasks:
        advice = f"{_LOADED_BY_EACH} {advice}"
        small = (
            f"; each of its {stage.measured.tasks:,} tasks, which take {duration(run.median)} at the median, "
            "loads these functions anew, with all that they refer to"
        )
    of_rdd = f"{OF_RDD}{WITH_ROWS if stage.of_frame else ''}" if python.in_rdd else "Python functions"
    return Issue(
        PYTHON,
        PYTHON,
        None if python.in_rdd else time_ms,
        None,
        f"{of_all:.0%} of the tasks' run time is spent in {of_rdd}{small}",
        advice,
        Severity.INFO,
        evidence,
        share_ms=time_ms if python.in_rdd else None,
    )


def _of_rdd(stage: EndedStage) -> str:
    """Return the advice for functions of an RDD, with what is known of their stage first."""
    if stage.hands_out:
        return _SENT_OUT
    known = _COMBINED if stage.by_key else _NO_RDD if stage.of_frame else ""
    return " ".join(filter(None, (known, _UNKNOWN_FUNCTIONS)))


def _get_few_rows(stage: EndedStage, thresholds: Thresholds) -> bool:
    """Return whether there are many tasks, with few rows each."""
    is_short = stage.measured.run.median < thresholds.short_task_ms
    return stage.has_far_more_tasks and is_short and 0 < stage.measured.rows.median <= _FEW_ROWS_OF_TASK


def python_starts(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that each task waits for a Python worker that starts, or loads what the task's functions need.

    The first task of each core waits for that in any case: for no longer than the longest task ran.
    """
    measured, python = stage.measured, stage.python
    again_ms = python.start_ms - stage.slots * measured.run.highest
    if again_ms < thresholds.python_share * python.start_ms or again_ms <= 0:
        return None
    advice = (
        "Every task loads the functions anew, with all that they refer to: give large objects to them as "
        "broadcast variables (sc.broadcast), and import what takes long in a module of their own."
    )
    return Issue(
        PYTHON,
        f"{PYTHON} starts",
        stage.as_wall_ms(again_ms),
        None,
        f"{measured.tasks:,} tasks wait {duration(python.start_ms)} in all for Python workers that start or "
        f"load functions, {duration(python.start_ms // measured.tasks)} each",
        advice if stage.reuses_workers else _NEW_WORKERS,
        Severity.INFO,
        {"pythonStartMs": python.start_ms, "numTasks": measured.tasks, "runTimeMs": measured.run.total},
    )
