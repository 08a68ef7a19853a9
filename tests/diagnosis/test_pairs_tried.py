"""The rule about joins whose condition throws nearly all pairs of rows away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.joins import joins
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

RANGE = "((ts#2L >= valid_from#4L) AND (ts#2L < valid_to#5L))"
BROADCAST = f"BroadcastHashJoin [country#1], [country#3], Inner, BuildRight, {RANGE}, false, false"
PARQUET = "Scan parquet db.events [country#1,ts#2L]"


def priced(
    join: str = BROADCAST,
    above: str = "Project [ts#2L, price#6]",
    scan: str = PARQUET,
    rows: int = 200_000,
    other: int = 30_000,
    read: int = 200_000,
    cpu_s: float = 40,
    **of_scan: int,
) -> EndedExecution:
    """Return a join of 200,000 rows with others, in stage 2, which takes 80 s of four cores, 20 s each."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out", 2, written_output=1_000)(
        1, above, 2
    )(2, join, 2, rows=rows)(3, "Filter isnotnull(ts#2L)", 2, rows=read)(
        4, scan, 2, rows=read, **(of_scan or {"scan_time": 8 * S})
    )(3, "BroadcastExchange HashedRelationBroadcastMode(List(input[0]))", None, rows=other, data_size=1)(
        4, "Scan parquet db.prices [country#3]", 1, rows=other, scan_time=S
    )
    execution = executed(plan, s1=(0, 2), s2=(2, 22))
    stages = {**execution.stages, 2: replace(execution.stages[2], cpu_ms=round(cpu_s * S))}
    return replace(execution, stages=stages)


def told(execution: EndedExecution) -> dict[str, Issue]:
    return {issue.kind: issue for issue in joins(execution, Thresholds())}


def test_a_range_within_a_few_keys() -> None:
    """Of 80 s, it reads for 8 s; the rest is the join's, but for 2 µs of a CPU for each row."""
    issue = told(priced())["exploding-join"]
    plain_ms = (200_000 + 30_000 + 200_000) * 2 / 1_000
    share = (80 * S - 8 * S - 2 * plain_ms) / (80 * S)
    assert issue.lost_ms == pytest.approx(20 * S * share, abs=2)
    assert issue.stages == {2}
    assert issue.sentence.startswith(
        "the join of db.events and db.prices on country takes 180 µs of a CPU for each of 200,000 rows, as "
        "long as to compare it with hundreds of the other 30,000; of all these pairs with the same country, "
        "its condition on ts, valid_from, valid_to keeps 200,000: 17.6 s"
    )
    assert "bucket" in issue.advice
    assert issue.evidence["join.condition"] == "ts, valid_from, valid_to"


@pytest.mark.parametrize(
    "join",
    [
        f"SortMergeJoin [country#1], [country#3], Inner, {RANGE}",
        f"ShuffledHashJoin [country#1], [country#3], LeftOuter, BuildRight, {RANGE}",
    ],
)
def test_each_way_to_join(join: str) -> None:
    assert "exploding-join" in told(priced(join))


def test_where_another_function_may_take_it_the_time_is_a_share() -> None:
    """It has to take far longer, then: that of a function is not known."""
    parsed = "Project [from_json(note#7) AS note#8]"
    assert told(priced(above=parsed, cpu_s=40)) == {}
    issue = told(priced(above=parsed, cpu_s=80))["exploding-join"]
    assert issue.lost_ms is None
    assert issue.share_ms is not None
    assert issue.share_ms > 17 * S
    assert "takes up to 360 µs" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [
        priced(cpu_s=4),
        priced(rows=1_900_000, other=150_000, cpu_s=14),
        priced(cpu_s=0),
        priced(rows=10_000, read=10_000, other=5_000, cpu_s=2),
        priced(other=9),
        priced(other=100),
        priced("BroadcastHashJoin [country#1], [country#3], Inner, BuildRight, false"),
        priced(f"BroadcastHashJoin [a#1], [b#3], Inner, BuildRight, (levenshtein(c#1, d#2) < {9}), false"),
        priced(f"BroadcastHashJoin [a#1], [b#3], Inner, BuildRight, ((c#1 > d#2) AND {'x' * 500}"),
        priced(above="ArrowEvalPython [score(ts#2L)#7], [pythonUDF0#8], 200"),
        priced(above="Generate explode(a#1), false, [b#2]"),
        priced(scan="BatchScan db.events [ts#2L]", number_of_files_read=9),
        priced(scan="Scan json db.events [ts#2L]", size_of_files_read=400_000_000),
    ],
    ids=[
        "a bucket of the range is a key",
        "most pairs are kept",
        "nobody measured a CPU",
        "so few rows that it is the code that is cold",
        "a handful of rows on the other side",
        "too few pairs for that time",
        "no condition",
        "a condition that takes long itself",
        "a condition that is cut",
        "a function in Python",
        "arrays are exploded",
        "nobody knows how long it reads",
        "much to parse",
    ],
)
def test_no_pairs_that_are_tried_in_vain(healthy: EndedExecution) -> None:
    assert "exploding-join" not in told(healthy)


@pytest.mark.parametrize(
    ("join", "is_told"),
    [
        (BROADCAST, True),
        (BROADCAST.replace(RANGE, "(ts#2L >= valid_from#4L)"), False),
        (BROADCAST.replace(RANGE, "NOT (kind#2 = kind#4)"), False),
    ],
    ids=["a range", "one limit", "no range"],
)
def test_a_range_in_which_rows_take_a_little_longer(join: str, is_told: bool) -> None:
    """Two million rows take 8 µs each: it may be for pairs, if a condition looks up a range."""
    issue = told(priced(join, rows=2_000_000, read=2_000_000, cpu_s=20)).get("exploding-join")
    assert (issue is not None) is is_told
    if issue is not None:
        assert issue.lost_ms is None
        assert issue.share_ms == pytest.approx(20 * S * (72 - 2 * 4) / 80, rel=0.05)


@pytest.mark.parametrize(("cpu_s", "lost_s"), [(14, None), (16, 16.6), (22, 17)])
def test_a_range_that_keeps_many_pairs(cpu_s: int, lost_s: float | None) -> None:
    """Each row is in several of many ranges: what takes longer than these rows may be for the others."""
    issue = told(priced(rows=1_900_000, other=150_000, cpu_s=cpu_s)).get("exploding-join")
    assert (issue is None) is (lost_s is None)
    assert issue is None or (issue.lost_ms, issue.share_ms) == (
        None,
        pytest.approx((lost_s or 0) * S, rel=0.05),
    )
