"""The rule about tables that are joined with themselves again and again."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.repeated_work.self_joins import self_joins
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

SERIES = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/series]"}
OTHER = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/weather]"}
BROADCAST = "BroadcastHashJoin [series#4L, t#5], [series#{0}0L, t#{0}1], LeftOuter, BuildRight, false, false"
SORTED = "SortMergeJoin [series#4L, t#5], [series#{0}0L, t#{0}1], LeftOuter"
SHIFTED = "Project [series#{0}0L, (t#{0}9 + {0}) AS t#{0}1, y#{0}2 AS lag_{0}#{0}3]"
UNSHIFTED = "Scan parquet [series#{0}0L,t#{0}1,y#{0}2]"
FILTERED = "Project [series#{0}0L, t#{0}1, y#{0}2 AS y_{0}#{0}3]"


def told(
    times: int = 4,
    join: str = BROADCAST,
    made: str = SHIFTED,
    scan: str = "Scan parquet [series#{0}0L,t#{0}9,y#{0}2]",
    location: dict[str, str] = SERIES,
    above: str = "",
    kept: int = 600,
    joined: int = 600,
) -> list[Issue]:
    """Return what is told of a table whose rows are joined with others, each read in a stage of 10 s.

    All of them are joined in a stage of 40 s, 20 s later.
    """
    plan = Plan()
    for number in range(1, times + 1):
        plan(number - 1, join.format(number), 9, rows=joined)
    plan(times, "Scan parquet [series#4L,t#5,y#6]", 9, SERIES, rows=600)
    for number in range(times, 0, -1):
        moves = "BroadcastExchange …" if join == BROADCAST else "Exchange hashpartitioning(…)"
        plan(number, moves, number, data_size=1)
        if above:
            plan(number + 1, above, number, rows=100)
        plan(number + 1 + bool(above), made.format(number))
        plan(number + 2 + bool(above), f"Filter isnotnull(series#{number}0L)", number, rows=kept)
        plan(number + 3 + bool(above), scan.format(number), number, location, rows=600)
    stages = {f"s{number}": (10 * number, 10 * number + 10) for number in range(1, times + 1)}
    stages["s9"] = 10 * times + 30, 10 * times + 70
    execution = executed(plan, cores=4, lasted_ms=100 * S, **stages)
    return list(self_joins(execution, Thresholds()))


@pytest.mark.parametrize(("join", "share_s"), [(BROADCAST, 80), (SORTED, 64)], ids=["broadcast", "sorted"])
def test_a_join_for_each_lag(join: str, share_s: int) -> None:
    """All reads and joins but one may be lost: 4 of 5 of the 80 s, or of 100 s while the driver broadcasts."""
    (issue,) = told(join=join)
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("recomputation", None, share_s * S)
    assert issue.sentence == (
        "file:/lake/series is joined with itself 4 times, by series, t (one of them shifted): each time, it is "
        "read anew, and its rows are brought together"
    )
    assert issue.advice.startswith("lag() and lead(), or an aggregate over a frame")
    assert issue.evidence["recomputation.what"] == "joins of file:/lake/series with itself"
    assert issue.stages == {1, 2, 3, 4, 9}


def test_a_join_for_each_value() -> None:
    """Where no key is shifted, each join has rows of another value: one aggregation has a column for each."""
    (issue,) = told(made=FILTERED, scan=UNSHIFTED, kept=90)
    assert "joined with itself 4 times, by series, t: each time" in issue.sentence
    assert issue.advice.startswith("One aggregation by series, t reads the table once")


def test_functions_in_python_for_what_is_joined() -> None:
    """A stage that joins may also call them: what Spark measures of that is not for the joins."""
    plan = Plan()(0, "MapInPandas f(y#6)", 9, rows=600, time_to_run_Python_workers=80 * S)
    for number in (1, 2, 3):
        plan(number, SORTED.format(number), 9, rows=600)
    plan(4, "Scan parquet [series#4L,t#5,y#6]", 9, SERIES, rows=600)
    for number in (3, 2, 1):
        plan(number + 1, SHIFTED.format(number))
        plan(number + 2, f"Scan parquet [series#{number}0L,t#{number}9,y#{number}2]", 9, SERIES, rows=600)
    (issue,) = self_joins(executed(plan, s9=(0, 40)), Thresholds())
    assert issue.share_ms == 15 * S


def test_rows_that_are_cached() -> None:
    """What is cached has a plan instead of a name, and is called by its table."""
    plan = Plan()
    for number in (1, 2, 3):
        plan(number - 1, SORTED.format(number), 9, rows=600)
    plan(3, "InMemoryTableScan [series#4L, t#5, y#6]", 9, rows=600)
    plan(4, "Scan parquet [series#4L,t#5,y#6]", None, SERIES)
    for number in (3, 2, 1):
        plan(number, SHIFTED.format(number))
        plan(number + 1, f"InMemoryTableScan [series#{number}0L, t#{number}9, y#{number}2]", 9, rows=600)
        plan(number + 2, f"Scan parquet [series#{number}0L,t#{number}9,y#{number}2]", None, SERIES)
    (issue,) = self_joins(executed(plan, s9=(0, 40)), Thresholds())
    assert issue.sentence.startswith("file:/lake/series is joined with itself 3 times")
    assert issue.share_ms == 30 * S


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"times": 2}, id="twice"),
        pytest.param({"location": OTHER}, id="another table"),
        pytest.param({"join": BROADCAST.replace("t#{0}1]", "y#{0}3]")}, id="other columns"),
        pytest.param({"made": SHIFTED.replace("t#{0}9 +", "t#{0}9 + y#{0}2 +")}, id="a key of two columns"),
        pytest.param({"above": "HashAggregate(keys=[series#10L], functions=[sum(y#12)])"}, id="aggregated"),
        pytest.param({"joined": 6_000, "times": 3}, id="several rows for each"),
        pytest.param({"made": FILTERED, "scan": UNSHIFTED}, id="the same rows"),
        pytest.param({"join": "BroadcastNestedLoopJoin BuildRight, Cross"}, id="no keys"),
    ],
)  # fmt: skip
def test_others(options: dict[str, object]) -> None:
    """Other tables, other columns, and rows of which something else is made are needed."""
    assert not told(**options)  # type: ignore[arg-type]
