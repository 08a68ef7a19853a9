"""The rule about projections that Spark has not merged."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.projections import projections
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, executed

S = 1_000
ROWS, COLUMNS = 100_000, 30


def chain(
    number: int, between: str = "", rows: int = ROWS, above: str = "", **of_above: int
) -> EndedExecution:
    """Return a stage of 40 s in which four tasks go through projections, and read for a fifth of the time."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out", 1)
    if above:
        plan = plan(1, above, 1, rows=rows, **of_above)
    text = (
        "Project [" + ", ".join(f"a#{item}" for item in range(24)) + f", b#1, ... {COLUMNS - 25} more fields]"
    )
    counted = {"rows": rows} if rows else {}
    for depth in range(2, number + 2):
        name = between if between and depth == number // 2 + 1 else text
        plan = plan(depth, name, 1, **counted)
    return executed(plan(number + 2, "Scan csv [a#1]", 1, **counted, scan_time=32 * S), s1=(0, 40))


def told(execution: EndedExecution) -> list[Issue]:
    return list(projections(execution, Thresholds()))


def test_columns_that_are_added_one_by_one() -> None:
    """Of 40 projections, five may be needed; reading stays. What else they compute, their text may hide."""
    (issue,) = told(chain(40))
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("recomputation", None, 40 * S * 4 // 5 * 35 // 40)
    assert issue.sentence == "40 projections, one after the other, copy up to 30 columns of 100,000 rows"
    assert "withColumns" in issue.advice
    assert issue.stages == {1}


def test_what_functions_in_python_take_is_not_for_copies() -> None:
    """They are called for the rows that come out of the chain, in the same stage."""
    calls = "ArrowEvalPython [score(a#1)#7], [pythonUDF0#8], 200"
    (issue,) = told(chain(40, above=calls, time_to_run_Python_workers=112 * S))
    assert issue.share_ms == round(40 * S * (1 - (112 + 32) / 160) * 35 / 40)


def test_rows_that_nobody_counted() -> None:
    (issue,) = told(chain(40, rows=0))
    assert issue.sentence == "40 projections, one after the other, copy up to 30 columns"


@pytest.mark.parametrize(
    "healthy", [chain(19), chain(38, between="Filter (a#1 > 3)")], ids=["few", "two chains of few"]
)
def test_a_few_projections(healthy: EndedExecution) -> None:
    assert told(healthy) == []
