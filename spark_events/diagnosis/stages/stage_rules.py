"""The rules about one stage: each returns what it finds, or None.

A measurement of zero is taken as none: native engines leave metrics of tasks at zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_events.api import Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TasksMeasured
from spark_events.diagnosis.packed_files import MORE_FILES, cannot_be_split
from spark_events.diagnosis.rdds.repeated_stages import KEEP_SHUFFLES, MADE_AGAIN
from spark_events.diagnosis.stages.added_data import added_data, is_of_some
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.stages.long_tail import long_tail
from spark_events.diagnosis.stages.python_time import python_functions, python_starts
from spark_events.diagnosis.thresholds import (
    GC,
    RETRIES,
    SKEW,
    SPILL,
    STRAGGLER,
    TASK_COUNT,
    Thresholds,
)

_LARGE_GC, _LARGE_GC_COUNTS = 0.25, 0.5
"""Of so large a share of the time, that collectors waited for a CPU explains half at most."""
_SPILLED_BYTE_NS = 16
"""About how long a task takes to write a byte to disk, to read it again, and to merge it with others."""
_LONG_SPILL, _LONG_SPILL_MS = 1 / 5, 1_000
"""What is spilled takes long if it takes such a share of its stage, and such a time."""
_LEAST_TASK_MS = 4
"""For so long a task runs, however little it does."""
_MORE_HEAP = (
    "Give executors more heap (spark.executor.memory), or run fewer tasks at once in each "
    "(spark.executor.cores); cache less, or serialized."
)
_MORE_HEAP_OF_DRIVER = (
    "Give the driver, which runs the tasks in local mode, more heap (spark.driver.memory), or run fewer "
    "tasks at once (local[n]); cache less, or serialized."
)

MORE_OF_SHUFFLE = (
    "Use more partitions: repartition(), or a larger spark.sql.shuffle.partitions; of RDDs, the number that "
    "reduceByKey() and the like are given. Rows of the same key stay in one task, however many there are."
)
MORE_OF_SOURCE = (
    "Use more partitions: files that can be split, a smaller spark.sql.files.maxPartitionBytes, "
    "parallelize(…, n), or repartition() before what takes long."
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
FEWER_OF_ARROW = (
    "Each of these tasks reads one batch of the rows that createDataFrame() was given: larger batches mean "
    "fewer tasks (spark.sql.execution.arrow.maxRecordsPerBatch, 10,000 by default). Or write the rows to "
    "files once, and read those."
)

FEWER_OF_LISTING = (
    "Spark lists the files of many folders, or files that it is given, in a task for each, up to "
    "spark.sql.sources.parallelPartitionDiscovery.parallelism (10,000 by default): set that to a few for "
    "each core. Of a table of a catalog, only the partitions that a query needs are listed. If you give the "
    "schema of text files, they are not listed again to infer it."
)


FEWER_OF_DELTA = (
    "Delta puts the state of a table together from its log in spark.databricks.delta.snapshotPartitions "
    "tasks (50 by default), each time the table has changed: for a table of few files, set that to the "
    "number of cores."
)


def fewer_tasks(stage: EndedStage) -> str:
    """Return what makes the tasks of a stage fewer, by what they do."""
    if stage.lists_files:
        return FEWER_OF_LISTING
    if stage.of_delta_log:
        return FEWER_OF_DELTA
    if stage.reads_shuffles:
        return FEWER_OF_SHUFFLE
    return FEWER_OF_ARROW if stage.of_arrow else FEWER_OF_SOURCE


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
    if not spilled.total:
        return None
    spilling_ms = stage.as_wall_ms(spilled.total * _SPILLED_BYTE_NS // 1_000_000)
    takes_long = spilling_ms >= max(_LONG_SPILL_MS, _LONG_SPILL * stage.wall_ms)
    if spilled.total < thresholds.min_bytes and not (takes_long and thresholds.tells_long_spills):
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
    least = thresholds.gc_warn * (_LARGE_GC_COUNTS if share >= _LARGE_GC else 1)
    if share * counts < least or not gc.total:
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
            fewer_tasks(stage),
            evidence={**evidence, "overheadMs": around_ms, "runTimeMs": run.total},
        )
    if 0 < measured.tasks < stage.cores and run.median > thresholds.least_long_task_ms:
        # A worker starts once, whatever it is given to do.
        own_ms = max(0, run.total - stage.python.start_ms)
        lost_ms = max(0, run.highest - stage.python.start_ms // measured.tasks - own_ms // stage.cores)
        count = "one task" if measured.tasks == 1 else f"{measured.tasks} tasks"
        each = "" if measured.tasks == 1 else " each at the median"
        because = f": {cannot_be_split(stage.packed)}" if stage.packed else ""
        return Issue(
            TASK_COUNT,
            TASK_COUNT,
            lost_ms,
            None,
            f"{count} of {duration(run.median)}{each}, for {stage.cores} cores{because}",
            MORE_FILES if because else MORE_OF_SHUFFLE if stage.reads_shuffles else MORE_OF_SOURCE,
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
