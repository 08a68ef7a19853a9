"""The rule about projections that Spark has not merged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.projections import projections
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, executed

S = 1_000
ROWS, COLUMNS = 100_000, 30


def chain(number: int, cpu_s: float = 10, between: str = "") -> EndedExecution:
    """Return a stage of 40 s in which four tasks go through projections, and read for a fifth of the time."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out", 1)
    text = (
        "Project [" + ", ".join(f"a#{item}" for item in range(24)) + f", b#1, ... {COLUMNS - 25} more fields]"
    )
    for depth in range(1, number + 1):
        name = between if between and depth == number // 2 else text
        plan = plan(depth, name, 1, rows=ROWS)
    execution = executed(plan(number + 1, "Scan csv [a#1]", 1, rows=ROWS, scan_time=32 * S), s1=(0, 40))
    return replace(execution, stages={1: replace(execution.stages[1], cpu_ms=round(cpu_s * S))})


def told(execution: EndedExecution) -> list[Issue]:
    return list(projections(execution, Thresholds()))


def test_columns_that_are_added_one_by_one() -> None:
    """Of 40 projections, five may be needed; reading stays."""
    (issue,) = told(chain(40))
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("recomputation", 40 * S * 4 // 5 * 35 // 40, None)
    assert issue.sentence == "40 projections, one after the other, copy up to 30 columns of 100,000 rows"
    assert "withColumns" in issue.advice
    assert issue.stages == {1}


@pytest.mark.parametrize("cpu_s", [25, 0], ids=["what they compute takes long", "nobody measured a CPU"])
def test_how_much_of_the_stage_is_for_copies_may_not_be_known(cpu_s: float) -> None:
    """Copies of 30 columns of 100,000 rows, 40 times, take 24 s of a CPU at most."""
    (issue,) = told(chain(40, cpu_s))
    assert (issue.lost_ms, issue.share_ms) == (None, 28 * S)


@pytest.mark.parametrize(
    "healthy", [chain(19), chain(38, between="Filter (a#1 > 3)")], ids=["few", "two chains of few"]
)
def test_a_few_projections(healthy: EndedExecution) -> None:
    assert told(healthy) == []
