"""The rules about a stage's time in Python: what its functions take, and how long tasks wait for workers."""

from __future__ import annotations

from spark_events.api import AttributeValue, Severity
from spark_events.api.toolkit.formatting import duration, micros
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.stages.ended_stage import EndedStage
from spark_events.diagnosis.thresholds import PYTHON, Thresholds

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
    "several calls at the same time; if they compute, DataFrames do in the JVM what they can. Run "
    "one task alone: if it takes half as long, tasks wait for each other (a lock, a pool of "
    "connections, a limit of a service), and more cores do not help."
)
_LARGE_OBJECTS = (
    "Large objects that they refer to are loaded anew by each task, unless sc.broadcast() brings them."
)
_QUICK_US = 50
_QUICK_FUNCTIONS = (
    "Of that, Python takes up to about ten to read a record and to call a function with it, and more on a "
    "busy machine; the rest is what the functions compute. DataFrames do in the JVM what they can."
)
_SMALL_START_MS = 300
"""So short, a task may wait for a worker that loads next to nothing."""
_LONGEST_START_MS = 10_000
"""Tasks that take longer do so for another reason than that each starts a worker."""
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
LOADS_LITTLE_MS = 500
"""What is large takes longer to be loaded; functions that have it broadcast already load little each time."""
_FEWER_FIRST = (
    "Use fewer and larger partitions. If they refer to something large (a dict, a list, a model) that "
    "is not broadcast yet, broadcast it (sc.broadcast())."
)
_LOADED_ANEW = (
    "Every task loads the functions anew, with all that they refer to: give large objects to them as "
    "broadcast variables (sc.broadcast), and import what takes long in a module of their own."
)
_FEWER_TASKS = (
    "Every task loads the functions anew: use fewer and larger tasks (coalesce(), repartition(), "
    "spark.sql.shuffle.partitions, spark.sql.files.maxPartitionBytes). If the functions refer to large "
    "objects, bring these by sc.broadcast()."
)
LOADED_BY = "python.loadedBy"
"""How many tasks load functions anew, with all that these refer to, where that are far more than cores."""
_FEW_ROWS_OF_TASK, _TASKS_OF_A_CORE = 1_000, 2
_LONG_US = 5_000
"""From here on, it is rather each record that loads something, or waits, than each task."""
NEW_WORKERS = "python.newWorkers"
"""How many tasks start a Python worker each, because the configuration says so, where that may take long."""
SMALL_TASKS = "python.smallTasks"
"""How many tasks a stage has for functions in Python that get few rows each."""
_BY_A_KEY = (
    "Unless each pair is needed: join() by a key that both have (for ranges and distances, a bucket or a "
    "cell of a grid, with those beside it), or bring the smaller RDD as a dict by sc.broadcast(), and look "
    "rows up."
)
_COMBINED = (
    "groupByKey moves every value: reduceByKey or aggregateByKey combine the values of a key before the "
    "shuffle, if what you make of them is smaller."
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
    said, advice, evidence = _of_rdd(stage, thresholds) if python.in_rdd else _of_frame(stage)
    if not stage.reuses_workers:
        advice = f"{_NEW_WORKERS} {advice}"
        if python.in_rdd and run.median <= _LONGEST_START_MS:  # of DataFrames, starts are measured apart
            evidence[NEW_WORKERS] = stage.measured.tasks
    return Issue(
        PYTHON,
        PYTHON,
        None if python.in_rdd else time_ms,
        None,
        f"{of_all:.0%} of the tasks' run time is spent in {said}",
        advice,
        Severity.INFO,
        {"pythonTimeMs": run_ms, "runTimeMs": run.total, "pythonShare": round(of_all, 4), **evidence},
        share_ms=time_ms if python.in_rdd else None,
    )


def _of_frame(stage: EndedStage) -> tuple[str, str, dict[str, AttributeValue]]:
    """Return what is said of functions of DataFrames, what to do, and the evidence."""
    rows = stage.arrow_rows
    evidence: dict[str, AttributeValue] = {SMALL_BATCH: rows} if rows and 0 < rows < _FEW_ROWS else {}
    return "Python functions", FASTER_FUNCTIONS, evidence


def _of_rdd(stage: EndedStage, thresholds: Thresholds) -> tuple[str, str, dict[str, AttributeValue]]:
    """Return what is said of functions of an RDD, what to do, first what is known, and the evidence."""
    said = f"{OF_RDD}{WITH_ROWS if stage.of_frame else ''}"
    evidence: dict[str, AttributeValue] = {OF_OBJECTS: True} if stage.of_objects else {}
    if stage.hands_out:
        return said, _SENT_OUT, evidence
    known = _COMBINED if stage.by_key else _NO_RDD if stage.of_frame else ""
    if stage.pairs_all:
        said, known = f"{said}; cartesian() pairs each row of an RDD with each row of another", _BY_A_KEY
    advice = " ".join(filter(None, (known, _UNKNOWN_FUNCTIONS)))
    tasks, each = stage.measured.tasks, duration(stage.measured.run.median)
    if _get_few_rows(stage, thresholds):
        evidence[SMALL_TASKS] = tasks
        said += (
            f"; its {tasks:,} tasks, for {stage.cores} cores, get about {stage.measured.rows.median:,} "
            f"records each (one of a shuffle may hold several rows) and take {each} at the median"
        )
        return said, f"{_FEW_ROWS_EACH} {advice} {_LARGE_OBJECTS}", evidence
    if stage.has_far_more_tasks and not stage.of_objects:
        said += (
            f"; each of its {tasks:,} tasks, which take {each} at the median, loads these functions anew, "
            "with all that they refer to"
        )
        evidence[LOADED_BY] = tasks
        loads_little = stage.measured.run.median < LOADS_LITTLE_MS
        return said, f"{_FEWER_FIRST if loads_little else _LOADED_BY_EACH} {advice}", evidence
    if (each_us := _for_a_record_us(stage)) is not None:
        said += f", {micros(each_us)} for each of the {stage.measured.rows.total:,} records it reads"
        if each_us < _QUICK_US:
            return said, " ".join(filter(None, (known, _QUICK_FUNCTIONS))), evidence
        has_few_rows = 0 < stage.measured.rows.median <= _FEW_ROWS_OF_TASK
        if has_few_rows and tasks >= _TASKS_OF_A_CORE * stage.cores:
            said += f", or {each} for each of its {tasks:,} tasks, at the median, however few these get"
            parts = (advice, _LOADED_BY_EACH) if each_us >= _LONG_US else (_LOADED_BY_EACH, advice)
            return said, " ".join(parts), evidence
    return said, f"{advice} {_LARGE_OBJECTS}", evidence


def _for_a_record_us(stage: EndedStage) -> float | None:
    """Return what functions take for a record, in µs; None where one may hold many rows, as in a shuffle."""
    records = stage.measured.rows.total
    if stage.reads_shuffles or stage.reads_cache or stage.of_frame or stage.of_objects or not records:
        return None
    return stage.python.run_ms * 1_000 / records


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
    each_ms = python.start_ms // measured.tasks
    advice = _FEWER_TASKS if each_ms < _SMALL_START_MS else _LOADED_ANEW
    return Issue(
        PYTHON,
        f"{PYTHON} starts",
        stage.as_wall_ms(again_ms),
        None,
        f"{measured.tasks:,} tasks wait {duration(python.start_ms)} in all for Python workers that start or "
        f"load functions, {duration(each_ms)} each",
        advice if stage.reuses_workers else _NEW_WORKERS,
        Severity.INFO,
        {"pythonStartMs": python.start_ms, "numTasks": measured.tasks, "runTimeMs": measured.run.total},
    )
