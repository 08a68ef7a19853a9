"""The rule about rows that are counted, and then computed again."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

CAPITALS = "(isnotnull(name#{0}) AND (upper(name#{0}) = A))"
LARGE = "((isnotnull(name#{0}) AND isnotnull(size#{0})) AND ((upper(name#{0}) = A) AND (size#{0} > 3)))"


def of_table(plan: Plan, depth: int, number: int, condition: str, columns: str, files: int) -> Plan:
    plan(depth, f"Filter {condition.format(number)}", number)
    return plan(depth + 1, f"Scan parquet db.t [{columns}]", number, rows=50, number_of_files_read=files)


def counted(number: int, condition: str = CAPITALS, cached: bool = False, files: int = 3) -> EndedExecution:
    """Return a count of filtered rows, of few columns; it takes 20 s."""
    plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", 90)(
        1, "Exchange SinglePartition", number, shuffle_records_written=1
    )(2, "HashAggregate(keys=[], functions=[partial_count(1)])", number, rows=1)(3, "Project")
    if cached:
        plan(4, "InMemoryTableScan [name#1]", number, rows=9)
    of_table(plan, 5 if cached else 4, number, condition, f"name#{number}", files)
    return executed(plan, **{f"s{number}": (0, 20)})


def written(number: int, condition: str = CAPITALS, took: int = 50) -> EndedExecution:
    """Return a write of filtered rows, of all columns."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out")(1, f"Project [name#{number}]")
    of_table(plan, 2, number, condition, f"name#{number}, size#{number}, more#{number}", 3)
    return executed(plan, **{f"s{number}": (0, took)})


def told(*executions: EndedExecution) -> list[Issue]:
    recomputation = Recomputation()
    for number, execution in enumerate(executions):
        recomputation.take(execution, f"count at a.py:{number}")
    return list(recomputation.issues())


def test_counts_for_a_log() -> None:
    """Each step is counted, with fewer columns and conditions than what is written in the end."""
    (issue,) = told(counted(1), counted(2, LARGE), written(3, LARGE))
    assert (issue.kind, issue.lost_ms) == ("recomputation", 40 * S)
    assert "rows of db.t are counted 2 times (count at a.py:0, count at a.py:1)" in issue.sentence


def test_a_cache_would_save_the_shorter_of_both() -> None:
    (issue,) = told(counted(1), counted(2, LARGE), written(3, LARGE, took=5))
    assert issue.lost_ms == 25 * S


@pytest.mark.parametrize(
    "healthy",
    [
        [counted(1), written(2)],
        [written(1), counted(2), counted(3, LARGE)],
        [counted(1, cached=True), counted(2, LARGE, cached=True), written(3, LARGE)],
        [counted(1, LARGE), counted(2, LARGE, files=4), written(3)],
        [counted(1, files=4), counted(2, LARGE, files=4), written(3, LARGE)],
        [counted(1, CAPITALS[:-1]), counted(2, LARGE[:-1]), written(3, LARGE[:-1])],
    ],
    ids=["once", "at the end", "cached", "other rows", "another table by then", "texts that are cut"],
)
def test_counts_that_cost_little_or_are_not_comparable(healthy: list[EndedExecution]) -> None:
    assert [issue for issue in told(*healthy) if issue.cause == "recomputation counts"] == []
