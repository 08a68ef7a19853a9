"""The rule about one task that takes much longer than the others of its stage."""

from __future__ import annotations

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TaskRun, TasksMeasured
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import SKEW, STRAGGLER, Thresholds

_TAIL = "tail"
_LOCAL = "driver"
"""The executor in local mode."""
_NOT_MEASURED = "Spark has not measured how much each task reads, so see whether this one has more rows;"


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
    sentence, advice = (_uneven_data if skewed else _held_up)(longest, times, measured)
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
            "task.readRows": longest.read_rows,
            "median.runTimeMs": run.median,
            "p95.runTimeMs": run.p95,
            "median.readBytes": read.median,
            "median.readRows": measured.rows.median,
        },
        uneven_ms=uneven_ms,
    )


def _uneven_data(longest: TaskRun, times: str, measured: TasksMeasured) -> tuple[str, str]:
    """Return what to say of a task with more data than others, and what to do."""
    read, rows = measured.read, measured.rows
    if read.highest:
        return (
            f"task {longest.number} reads {size(longest.read_bytes)}, the median {size(read.median)}; "
            f"it takes {times}",
            "A few keys hold most of the rows. For a join, let Spark split them "
            "(spark.sql.adaptive.enabled and spark.sql.adaptive.skewJoin.enabled), or broadcast the small "
            "side; for an aggregation or an RDD, add a random part to the key, and aggregate twice.",
        )
    return (
        f"task {longest.number} reads {longest.read_rows:,} rows, the median {rows.median:,}; "
        f"it takes {times}",
        "Divide what is read more evenly. A task reads whole row groups, and files that cannot be split: "
        "write more files, or smaller row groups (parquet.block.size). Or repartition() after it.",
    )


def _held_up(longest: TaskRun, times: str, measured: TasksMeasured) -> tuple[str, str]:
    """Return the same of a task that takes longer for another reason than its data."""
    at, look = _place(longest, measured)
    if measured.read.highest:
        reads, because = (
            f"; it reads {size(longest.read_bytes)}, like the others",
            "Its data is not larger, so",
        )
    elif measured.rows.highest:
        median = f"the median {measured.rows.median:,}"
        reads, because = (
            f"; it reads {longest.read_rows:,} rows, {median}",
            "Its rows do not explain that, so",
        )
    else:
        reads, because = "", _NOT_MEASURED
    return f"task {longest.number}{at} takes {times}{reads}", f"{because} {look}"


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
