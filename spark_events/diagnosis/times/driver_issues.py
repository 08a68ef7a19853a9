"""What is said of time in which only the driver works, while the cores of all executors wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_events.api import AttributeValue, Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import COLLECT, IDLE_CORES, SMALL_JOBS

AFTER_RESULT_OF, AFTER_RESULT_MS = "driverAlone.afterResultOf", "driverAlone.afterResultMs"
"""The evidence of the place from which a result came before the longest time of the driver, and of that."""
AFTER_STAGE_OF, AFTER_STAGE_MS = "driverAlone.afterStageOf", "driverAlone.afterStageMs"
"""The same of the last stage before it, whatever came from there."""
START_MS, USUAL_START_MS = "driverAlone.startMs", "driverAlone.usualStartMs"
"""The evidence of how long the first stage took to come, if most of the time is of that, and the usual."""
COLLECTED_AT = "collect.place"
LOOP_AT, LOOP_JOBS, LOOP_SPAN = "loop.place", "loop.jobs", ("loop.begunMs", "loop.endedMs")
AT_START = "before its first stage, beyond the usual "
AFTER = "after "
AT_END = "after its last stage"
TO_PANDAS = "toPandas at "
READERS = ("parquet", "orc", "csv", "json", "xml", "text", "load")
"""What Spark calls the jobs of its readers of files, which run where they are called; and of its writers."""
_ARROW = "spark.sql.execution.arrow.pyspark.enabled"
_IN_TURN = 0.8
"""Jobs of two places that run at the same time, for as much of it, are of one loop."""
_SMALL_MS = 5_000
"""How long a small job takes at most."""


@dataclass(slots=True)
class Pauses:
    """The time in which no stage ran before those of one place, in ms.

    Attributes:
        number: how often.
        within_ms: how much of it belonged to SQL executions.
        longest_ms: how long the longest was.
        usual_ms: how much of it was no more than Spark takes between any two stages.
        after: the place of the last stage before that; empty if unknown.
    """

    number: int = 0
    time_ms: int = 0
    within_ms: int = 0
    longest_ms: int = 0
    usual_ms: int = 0
    after: str = ""

    @property
    def mostly_after(self) -> str:
        """The place before most of it; empty if there is none, or Spark works on what comes next."""
        is_most = 2 * self.longest_ms > self.time_ms > 2 * self.within_ms
        return self.after if is_most else ""

    def add(self, pause: Pauses) -> None:
        """Add one pause."""
        self.number += 1
        self.time_ms += pause.time_ms
        self.within_ms += pause.within_ms
        self.usual_ms += min(pause.usual_ms, pause.time_ms)
        if pause.time_ms > self.longest_ms:
            self.longest_ms, self.after = pause.time_ms, pause.after

    def merge(self, others: Pauses) -> None:
        """Add the pauses before stages of another place."""
        self.number += others.number
        self.time_ms += others.time_ms
        self.within_ms += others.within_ms
        self.usual_ms += others.usual_ms
        if others.longest_ms > self.longest_ms:
            self.longest_ms, self.after = others.longest_ms, others.after

    def of_loop(self) -> tuple[Pauses, Pauses]:
        """Return what of them a loop of SQL executions costs, and what the program does between these."""
        outside_ms = self.time_ms - self.within_ms
        program_ms = max(0, outside_ms - _BETWEEN_MS * self.number)
        of_loop = replace(self, time_ms=self.time_ms - program_ms)
        return of_loop, Pauses(self.number, program_ms, 0, min(self.longest_ms, program_ms), 0, self.after)

    def take(self, told_ms: int) -> int:
        """Take off what another issue tells, that of SQL executions first; returns how much it was, in ms."""
        taken_ms = min(told_ms, self.time_ms)
        self.time_ms -= taken_ms
        self.within_ms = max(0, self.within_ms - taken_ms)
        return taken_ms


@dataclass(slots=True)
class Jobs:
    """The jobs of one place, each of which may be the one before with another of its stages.

    Attributes:
        number: how many there were.
        last: the latest.
        stages_ms: for how long any stage ran since the pauses before their stages, in ms.
        run_ms: how long their tasks ran, in all.
        begun_ms, ended_ms: when their first and last stage ended, in ms since the epoch.
    """

    number: int = 0
    last: str = ""
    stages_ms: int = 0
    run_ms: int = 0
    begun_ms: int = 0
    ended_ms: int = 0

    def in_turn_with(self, others: Jobs) -> bool:
        """Return whether these and other jobs run at about the same time."""
        return are_in_turn((self.begun_ms, self.ended_ms), (others.begun_ms, others.ended_ms))


def are_in_turn(span: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two loops run at about the same time, by when each began and ended, in ms."""
    shared_ms = min(span[1], other[1]) - max(span[0], other[0])
    return shared_ms > _IN_TURN * max(span[1] - span[0], other[1] - other[0], 0)


_BETWEEN_MS = 500
"""So long the program takes at most between two SQL executions to make the next one."""
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
    f"Python may still unpack the rows of that result: let Arrow bring them ({_ARROW}=true). Or the program "
    f"works on them, maybe row by row: {_ON_ALL_CORES}"
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
    """

    any_planned: bool = False
    many_columns: bool = False
    computed: bool = False
    projections: int = 0
    grown: tuple[int, int, int] = (0, 0, 0)


@dataclass(slots=True)
class Collected:
    """The results that came to the driver from one place.

    Attributes:
        by_arrow: whether Arrow brings them, if it can.
        times: how often.
        size_bytes: how much.
        taken_ms: how long that may have taken.
        pauses_ms: for how long no stage ran after them.
    """

    by_arrow: bool = False
    times: int = 0
    size_bytes: int = 0
    taken_ms: int = 0
    pauses_ms: int = 0


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


def collect_issue(place: str, collected: Collected) -> Issue:
    """Return that large results came to the driver from one place."""
    longer = 1.1 * collected.taken_ms
    return Issue(
        COLLECT,
        f"{COLLECT} {place}",
        collected.taken_ms,
        None,
        f"{place} brings {size(collected.size_bytes)} to the driver, which takes up to "
        f"{duration(collected.taken_ms)}"
        + (f"; no stage runs for {duration(collected.pauses_ms)} after it" * (collected.pauses_ms > longer)),
        "Aggregate or filter in Spark, and collect only the result; write large results to a table."
        + ("" if collected.by_arrow else f" For pandas, see that {_ARROW} is true."),
        evidence={
            "collect.bytes": collected.size_bytes,
            "collect.times": collected.times,
            COLLECTED_AT: place,
        },
    )


def _after_result(place: str, result: Collected | None, looped: Looped) -> str:
    """Return what to do about what the program does after a result has come from a place."""
    advice = _OF_PANDAS if place.startswith(TO_PANDAS) else _OF_ROWS
    if advice == _OF_PANDAS and result is not None and result.by_arrow:
        advice = _OF_ARROW
    if not looped.many_columns:
        return advice
    is_small = result is not None and result.size_bytes < _SMALL_BYTES
    return f"{'That result is small.' if is_small else advice} {_ADDED_IN_A_LOOP}"


def is_loop(pauses: Pauses, jobs: Jobs, least: int) -> bool:
    """Return whether a loop runs small jobs at a place, so many at least, one after the other."""
    in_turn = min(pauses.number, jobs.number) >= least
    return in_turn and pauses.time_ms + jobs.stages_ms <= _SMALL_MS * jobs.number


def loop_issue(
    place: str, parts_of: str, pauses: Pauses, jobs: Jobs, cores: int, writes: bool = False
) -> Issue:
    """Return that a loop runs small jobs one after the other.

    Args:
        place: of the jobs.
        parts_of: the folder of which each reads another part; empty if they do not.
        pauses, jobs: before them, and what is known of them.
        cores: of all executors.
        writes: whether the jobs write.
    """
    whole_ms = pauses.time_ms + jobs.stages_ms
    # What their tasks do would have to be done by one job as well, at best by all cores.
    needed_ms = min(whole_ms, jobs.run_ms // max(1, cores))
    advice = (
        "A loop in the driver runs a small job each time: let one job do all of it (one agg() for all "
        "columns; a join, a groupBy or a window in place of the loop), or run the jobs at the same time in "
        "threads."
    )
    if parts_of:
        advice = (
            f"Each reads another part of {parts_of}: read all of it at once, as one table, and let one query "
            "do it for all parts (groupBy, a join, or a window by what tells them apart; partitionBy for a "
            "write). Or run them at the same time in threads."
        )
    if place.split(" ")[0] in READERS and not writes:
        advice = (
            "Each reads files to find out which columns they have: give the schema (spark.read.schema(…)), "
            "or read several paths at once, as one table."
        )
    return Issue(
        SMALL_JOBS,
        f"{SMALL_JOBS} {place}",
        (whole_ms - needed_ms) * (jobs.number - 1) // jobs.number,
        None,
        f"{jobs.number:,} small jobs of {place} run one after the other, {duration(whole_ms)} in all; all "
        f"cores could do what their tasks do in {duration(needed_ms)}",
        advice,
        evidence={
            LOOP_AT: place,
            LOOP_SPAN[0]: jobs.begun_ms,
            LOOP_SPAN[1]: jobs.ended_ms,
            LOOP_JOBS: jobs.number,
            "loop.driverAloneMs": pauses.time_ms,
            "loop.runTimeMs": jobs.run_ms,
        },
    )


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
