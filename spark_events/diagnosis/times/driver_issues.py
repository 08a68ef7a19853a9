"""What is said of time in which only the driver works, while the cores of all executors wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import AttributeValue, Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import IDLE_CORES
from spark_events.diagnosis.times.collected_results import BY_ARROW, TO_PANDAS, Collected
from spark_events.diagnosis.times.pauses import Pauses

AFTER_RESULT_OF, AFTER_RESULT_MS = "driverAlone.afterResultOf", "driverAlone.afterResultMs"
"""The evidence of the place from which a result came before the longest time of the driver, and of that."""
AFTER_STAGE_OF, AFTER_STAGE_MS = "driverAlone.afterStageOf", "driverAlone.afterStageMs"
"""The same of the last stage before it, whatever came from there."""
START_MS, USUAL_START_MS = "driverAlone.startMs", "driverAlone.usualStartMs"
"""The evidence of how long the first stage took to come, if most of the time is of that, and the usual."""
AT_START = "before its first stage, beyond the usual "
AFTER = "after "
AT_END = "after its last stage"


_SMALL_BYTES = 1 << 20
_ADDED_IN_A_LOOP = (
    "If it builds a DataFrame in a loop, each withColumn() analyzes the whole plan again: one select() or "
    "withColumns() does not."
)
_MADE_IN_A_LOOP = (
    "A plan has {projections:,} projections, one after the other, as withColumn() in a loop makes them. Each "
    "call analyzes the whole plan again, which takes the driver longer each time; one select() or "
    "withColumns() does it once. If that is not it,"
)
_OF_ROWS = (
    "Python may still unpack the rows of that result, or the program works on them: do that in Spark, or "
    "aggregate or filter there, so that fewer rows come."
)
_ON_ALL_CORES = (
    "do it in Spark, on columns or with pandas_udf or applyInPandas, where all cores work at once; or "
    "aggregate or filter there first, so that fewer rows come."
)
_OF_PANDAS = (
    f"Python may still unpack the rows of that result: let Arrow bring them ({BY_ARROW}=true). Or the "
    f"program works on them, maybe row by row: {_ON_ALL_CORES}"
)
_OF_ARROW = (
    "The program works in Python then, in the driver, maybe on the result of toPandas, and maybe row by row: "
    f"{_ON_ALL_CORES}"
)
_IN_SPARK = (
    "Spark's driver plans, lists files, deletes those that an overwrite replaces, or commits in that time: "
    "fewer and larger files, fewer partitions, and a plan that is not built up in a loop make it shorter."
)
_ELSEWHERE = (
    "The program computes, waits or calls something else there: move that work into Spark, run it beside the "
    "jobs, or let the application start when what it waits for is there."
)
_GROWN = (
    "Plans grow from {first:,} to {last:,} nodes in the passes of a loop, as each uses what the one before "
    "has made: the driver plans all of it anew each time, and the tasks compute it anew. In each pass, "
    "persist(), localCheckpoint() or checkpoint() what the next one uses, or write it to a table and read it."
)
_OF_LOCAL_ROWS = (
    "A plan has {rows:,} rows in itself, as createDataFrame() makes them of a pandas DataFrame or an Arrow "
    "table that is smaller than spark.sql.execution.arrow.localRelationThreshold (48 MB by default): the "
    "driver copies them each time it plans a query of them. Write them to files once and read those; or let "
    "tasks have them, with a smaller threshold and a larger spark.sql.execution.arrow.maxRecordsPerBatch."
)
GROWN = "driverAlone.grown"
"""The evidence of how many nodes the last plan has of a loop in which they grow, where that is most of it."""
LOOPED = "driverAlone.looped"
"""The evidence of a plan such as withColumn() in a loop makes, where the driver works most of the time."""


@dataclass(slots=True)
class Looped:
    """What of the plans of SQL executions a loop of the program may have made.

    Attributes:
        any_planned: whether there were any.
        many_columns: whether one had so many that a loop may have added them.
        computed: whether one had a hundred columns, and computed most of them.
        projections: how many one had, one after the other, if nothing but a loop makes so many; else 0.
        grown: the nodes of the first and the last plan of a loop in which they grow, and how long the driver
            worked on these, in ms.
        local: the most rows that a plan has in itself, and how long the driver planned such plans, in ms.
            They are of no loop, but each query of them costs as much.
    """

    any_planned: bool = False
    many_columns: bool = False
    computed: bool = False
    projections: int = 0
    grown: tuple[int, int, int] = (0, 0, 0)
    local: tuple[int, int] = (0, 0)


def driver_issue(
    alone_ms: int,
    wall_ms: int,
    cores: int,
    pauses: Mapping[str, Pauses],
    collected: Mapping[str, Collected],
    looped: Looped,
    usual_start_ms: int,
) -> Issue:
    """Return that only the driver works.

    Args:
        alone_ms: for how long, in all, in ms.
        wall_ms: of how long.
        cores: that wait meanwhile.
        pauses: by what came after them.
        collected: the results that came to the driver, by their places.
        looped: what of the plans a loop of the program may have made.
        usual_start_ms: what of the time before the first stage does not count.
    """
    longest = sorted(pauses, key=lambda place: -pauses[place].time_ms)[:3]
    parts = [_described(place, pauses[place]) for place in longest if pauses[place].time_ms >= alone_ms // 20]
    first = pauses[longest[0]]
    evidence: dict[str, AttributeValue] = {
        "driverAloneMs": alone_ms,
        "driverAlone.pauses": sum(pause.number for pause in pauses.values()),
        "driverAlone.inExecutionsMs": sum(pause.within_ms for pause in pauses.values()),
        "cores": cores,
    }
    if longest[0].startswith(AFTER) and longest[0] != AT_END:
        place = longest[0].removeprefix(AFTER)
        advice = _after_result(place, collected.get(place), looped)
        evidence |= {AFTER_RESULT_OF: place, AFTER_RESULT_MS: first.time_ms}
    else:
        in_program = first.within_ms * 2 <= first.time_ms
        advice = _in_program(looped, longest[0]) if in_program else _IN_SPARK
        # A single select of as many columns takes a machine that is busy for a while, too.
        may_be_looped = in_program and longest[0] != AT_END and 2 * alone_ms >= wall_ms
        if may_be_looped and (looped.computed or looped.projections):
            evidence[LOOPED] = True
        first_nodes, last_nodes, grown_ms = looped.grown
        if not in_program and 2 * grown_ms >= alone_ms:
            advice = f"{_GROWN.format(first=first_nodes, last=last_nodes)} {_IN_SPARK}"
            evidence[GROWN] = last_nodes
        elif not in_program and 2 * looped.local[1] >= alone_ms:
            advice = _OF_LOCAL_ROWS.format(rows=looped.local[0])
        if longest[0].startswith(AT_START):
            evidence |= {START_MS: first.time_ms + usual_start_ms, USUAL_START_MS: usual_start_ms}
        elif first.mostly_after:
            evidence |= {AFTER_STAGE_OF: first.mostly_after, AFTER_STAGE_MS: first.longest_ms}
    return Issue(
        IDLE_CORES,
        IDLE_CORES,
        alone_ms,
        None,
        f"only the driver works for {duration(alone_ms)} of {duration(wall_ms)}: {'; '.join(parts)}",
        advice,
        Severity.INFO,
        evidence,
    )


def _in_program(looped: Looped, place: str) -> str:
    """Return what to do about what the program does while no SQL execution runs."""
    if looped.projections:
        made = _MADE_IN_A_LOOP.format(projections=looped.projections)
    elif looped.many_columns:
        made = f"{_ADDED_IN_A_LOOP} If it does not,"
    else:
        # Columns that no result needs are in no plan.
        may_build = looped.any_planned and place != AT_END
        return f"{_ELSEWHERE} {_ADDED_IN_A_LOOP}" if may_build else _ELSEWHERE
    return f"{made} {_ELSEWHERE[0].lower()}{_ELSEWHERE[1:]}"


def _after_result(place: str, result: Collected | None, looped: Looped) -> str:
    """Return what to do about what the program does after a result has come from a place."""
    advice = _OF_PANDAS if place.startswith(TO_PANDAS) else _OF_ROWS
    if advice == _OF_PANDAS and result is not None and result.by_arrow:
        advice = _OF_ARROW
    if not looped.many_columns:
        return advice
    is_small = result is not None and result.size_bytes < _SMALL_BYTES
    return f"{'That result is small.' if is_small else advice} {_ADDED_IN_A_LOOP}"


def _described(place: str, pauses: Pauses) -> str:
    time, last = duration(pauses.time_ms), pauses.mostly_after
    if place == AT_END:
        return f"{time} {place}{f', {last}' if last else ''}"
    if place.startswith((AT_START, AFTER)):
        return f"{time} {place}"
    if pauses.number == 1:
        return f"{time} between {last} and {place}" if last else f"{time} before {place}"
    of_it = f", {duration(pauses.longest_ms)} of it after {last}" if last else ""
    if not last and pauses.longest_ms * 2 > pauses.time_ms:
        of_it = f", {duration(pauses.longest_ms)} of it in one"
    return f"{time} in {pauses.number:,} pauses before {place}{of_it}"
