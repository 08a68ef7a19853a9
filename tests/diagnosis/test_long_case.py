"""The rule about CASE expressions with many conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.long_case import long_case
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.diagnosis.plans.node import CONDITIONS
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

MAPS = "Project [amount#5, CASE WHEN (code#4 = C0000) THEN group 0 WHEN (code#4 = C0001) THEN group 1 WHEN ("
ROWS = 2_000_000


def told(
    conditions: int = 900,
    cpu_us: float = 15,
    text: str = MAPS,
    above: str = "Sort [grp#7 ASC]",
    rows: int = ROWS,
    scan_ms: int = 0,
) -> list[Issue]:
    """Return what is told of a projection with so many conditions, in a stage of 40 s; reading takes none of it."""
    counted = f"{CONDITIONS}{conditions}]" if conditions else ""
    plan = Plan()(0, above, 1)(1, text + counted, 1, rows=rows)
    plan(2, "Scan parquet db.claims [code#4, amount#5]", 1, rows=rows, scan_time=scan_ms)
    execution = executed(plan, s1=(0, 40))
    stage = ExecutedStage(1, 8, 0, 40 * S, 160 * S, 0, 0, cpu_ms=int(rows * cpu_us) // 1_000)
    return list(long_case(replace(execution, stages={1: stage}), Thresholds()))


def test_many_conditions() -> None:
    """Of 40 s, a row would take 3 of its 15 µs anyway."""
    (issue,) = told()
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("long-case", None, 32 * S)
    assert issue.sentence == (
        "CASE tries up to 900 conditions on code for each of 2,000,000 rows, which takes 15 µs of a CPU for a row"
    )
    assert "join it" in issue.advice


def test_many_conditional_aggregates() -> None:
    text = (
        "HashAggregate(keys=[patient#4L], functions=[partial_sum(CASE WHEN (t#5 = 0) THEN value#6 END), parti"
    )
    (issue,) = told(300, 9, text)
    assert issue.sentence == (
        "aggregates with CASE try up to 300 conditions on t for each of 2,000,000 rows, which takes 9 µs of a CPU for a row"
    )
    assert "pivot()" in issue.advice


@pytest.mark.parametrize(
    "other",
    [
        {"conditions": 0},
        {"cpu_us": 4},
        {"conditions": 300},
        {"scan_ms": 25 * S},
        {"rows": 9_999},
        {"text": f"Project [sha2(code#4, 256) AS s#9, {MAPS[9:]}"},
        {"text": f"Project [pythonUDF0#3, f(x#1)#2.InPandas, {MAPS[9:]}"},
        {"above": "MapInPandas f(grp#7)#8, [z#9]"},
        {"above": "Generate explode(sequence(0, amount#5))"},
    ],
    ids=[
        "few",
        "quick",
        "too few for that",
        "most is reading",
        "few rows",
        "beside a slow function",
        "beside Python",
        "below Python",
        "below what makes rows",
    ],
)
def test_what_else_may_take_long(other: dict[str, object]) -> None:
    assert told(**other) == []  # type: ignore[arg-type]
