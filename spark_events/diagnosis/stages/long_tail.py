"""The rule about one task that takes much longer than the others of its stage."""

from __future__ import annotations

from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.measured import TaskRun, TasksMeasured
from spark_events.diagnosis.stages.ended_stage import DATA_RATIO, LOCAL, EndedStage
from spark_events.diagnosis.thresholds import SKEW, STRAGGLER, Thresholds

_TAIL = "tail"
_FEW_TASKS = 4
_ALIKE = 1.2
"""So many times as many bytes as others have are no more data."""
_OF_ONE_KEY = (
    "One key may have many of its rows, and windows and joins take longer for each row the more of them a "
    "key has: count the rows of each key (GROUP BY … ORDER BY count(*) DESC), and keep that key out, or "
    "divide it. If no key stands out,"
)
_OF_RDD = (
    "A few keys hold most of the rows: count those of each key in a sample (sample(False, 0.01), "
    "countByKey), and leave out keys that say nothing (empty, unknown, default), or give their rows another "
    "key. Where what is made of a key can be combined, add a random part to the key, and aggregate twice."
)
_OF_STATE = (
    "A few keys hold most of the rows, and one task has all rows and all state of a key: count the rows of "
    "each key, and leave out those that say nothing (null, unknown, default), or join or group by one more "
    "column that divides their rows."
)
_SECOND_COPY = "spark.speculation=true runs a second copy of such a task on another host."
_NOT_MEASURED = "Spark has not measured how much each task reads, so see whether this one has more rows;"


def long_tail(stage: EndedStage, thresholds: Thresholds) -> Issue | None:
    """Return that a task takes much longer than the others: with more data, a skew; else a straggler."""
    measured, run, read = stage.measured, stage.measured.run, stage.measured.read
    longest_run = stage.longest()
    if measured.tasks < 2 or longest_run is None:
        return None
    longest, own_ms = longest_run
    skewed, usual_ms = stage.reads_more(longest), stage.usual(run)
    few = skewed and measured.tasks <= _FEW_TASKS
    least_ms = usual_ms * (_least_of_few(thresholds) if few else thresholds.skew_factor)
    if own_ms <= least_ms:
        return None
    if stage.reads_cache and read.highest and not longest.read_bytes:
        return None  # others find in the cache what this one has to compute
    in_python = stage.python.run_ms or stage.python.in_rdd
    if not skewed and in_python and stage.failed_share and stage.failed_share >= thresholds.failed_share:
        return None  # where a Python function fails, its worker ends, and the next task waits for another
    # A long task costs nothing while other cores have something to do. Of data that were evenly spread, the
    # time would remain; of whatever holds a straggler up, it would not.
    more_ms = own_ms - usual_ms
    # A core is not idle while a task is sent to it.
    busy_ms = max(run.total, measured.spreads["Duration"].total)
    uneven_ms = max(0, min(more_ms, stage.wall_ms - stage.as_wall_ms(busy_ms)))
    lost_ms = max(0, min(more_ms, stage.wall_ms - stage.as_wall_ms(busy_ms - more_ms)))
    if not stage.ends_late(least_ms):
        lost_ms = uneven_ms  # others end later: nothing waits for a long one
    times = f"{duration(own_ms)}, {_others(stage)} {duration(usual_ms)}"
    sentence, advice = (_uneven_data if skewed else _held_up)(longest, times, stage)
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
            "median.runTimeMs": usual_ms,
            "p95.runTimeMs": run.p95,
            "median.readBytes": stage.usual(read),
            "median.readRows": stage.usual(measured.rows),
        },
        uneven_ms=uneven_ms,
    )


def _least_of_few(thresholds: Thresholds) -> float:
    """Return how many times as long as usual one of a few tasks takes at least, if it has more data.

    One of two has less than twice its fair share, however uneven they are; and of three or four, the median
    is one of the uneven ones, as where Spark has merged all small partitions but those with the large keys.
    """
    return min(DATA_RATIO, thresholds.skew_factor)


def _others(stage: EndedStage) -> str:
    return "the other" if stage.measured.tasks == 2 else "the median"


def _uneven_data(longest: TaskRun, times: str, stage: EndedStage) -> tuple[str, str]:
    """Return what to say of a task with more data than others, and what to do."""
    read, rows = stage.measured.read, stage.usual(stage.measured.rows)
    by = f"; {stage.rows_from} divides the rows" if stage.rows_from else ""
    much = f"{longest.read_rows:,} rows, {_others(stage)} {rows:,}"
    if stage.reads_more_bytes(longest):
        much = f"{size(longest.read_bytes)}, {_others(stage)} {size(stage.usual(read))}"
    if read.highest and stage.python.in_rdd:
        return f"task {longest.number} reads {much}; it takes {times}{by}", _OF_RDD
    if read.highest and stage.keeps_state:
        return f"task {longest.number} reads {much}; it takes {times}", _OF_STATE
    if read.highest:
        return (
            f"task {longest.number} reads {much}; it takes {times}",
            "A few keys hold most of the rows. For a join, leave out rows whose key is NULL and add them "
            "afterwards, broadcast the small side, or let Spark split partitions: with "
            "spark.sql.adaptive.enabled=true, and above a lower limit "
            "(spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes, 256m by default). For an "
            "aggregation, add a random part to the key, and aggregate twice.",
        )
    return (
        f"task {longest.number} reads {much}; it takes {times}",
        "Divide what is read more evenly. A task reads whole row groups, and files that cannot be split: "
        "write more files, or smaller row groups (parquet.block.size). Or repartition() after it.",
    )


def _held_up(longest: TaskRun, times: str, stage: EndedStage) -> tuple[str, str]:
    """Return the same of a task that takes longer for another reason than its data."""
    measured = stage.measured
    at, look = _place(longest, measured)
    has_more = longest.read_bytes > _ALIKE * stage.usual(measured.read)
    if measured.read.highest and has_more:
        median = f"{_others(stage)} {size(stage.usual(measured.read))}"
        reads, because = (
            f"; it reads {size(longest.read_bytes)}, {median}",
            "It has more data, which does not explain all of that, so",
        )
    elif measured.read.highest:
        reads, because = (
            f"; it reads {size(longest.read_bytes)}, like the others",
            "Its data is not larger, so",
        )
    elif measured.rows.highest:
        median = f"{_others(stage)} {stage.usual(measured.rows):,}"
        reads, because = (
            f"; it reads {longest.read_rows:,} rows, {median}",
            "Its rows do not explain that, so",
        )
    else:
        reads, because = "", _NOT_MEASURED
    if has_more and stage.reads_shuffles:
        because = _OF_ONE_KEY
    return f"task {longest.number}{at} takes {times}{reads}", f"{because} {look}"


def _place(run: TaskRun, measured: TasksMeasured) -> tuple[str, str]:
    """Return where a late task ran, for a sentence, and where to look; in local mode, there is one place."""
    rows = "check what this task's rows make your code do"
    if len(measured.hosts) <= 1 and run.executor == LOCAL:
        return "", f"{rows}."
    if len(measured.hosts) <= 1:  # Spark runs no second copy of a task where the first one runs
        return f" on executor {run.executor}", f"look at executor {run.executor}, and {rows}."
    return f" on {run.host}", f"look at the host {run.host}, and {rows}; {_SECOND_COPY}"


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
        f"task has more data than others; {_SECOND_COPY}",
        evidence={
            "live": True,
            "task.index": index,
            "task.host": host,
            "task.executorId": executor,
            "task.runTimeMs": running_ms,
            "median.runTimeMs": median_ms,
        },
    )
