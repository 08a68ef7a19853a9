"""The rule about rows that are counted, and then computed again."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

CAPITALS = "(isnotnull(name#{0}) AND (name#{0} = A))"
SCAN = "Scan parquet db.t"
ROWS_OF_PROGRAM = {"scan": "Scan ExistingRDD"}
LARGE = "((isnotnull(name#{0}) AND isnotnull(size#{0})) AND ((name#{0} = A) AND (size#{0} > 3)))"
LARGEST = f"({LARGE} AND (size#{{0}} < 9))"


def of_table(
    plan: Plan, depth: int, number: int, condition: str, columns: str, files: int, scan: str = SCAN
) -> Plan:
    plan(depth, f"Filter {condition.format(number)}", number)
    return plan(depth + 1, f"{scan} [{columns}]", number, rows=50, number_of_files_read=files)


def counted(
    number: int, condition: str = CAPITALS, cached: bool = False, files: int = 3, scan: str = SCAN
) -> EndedExecution:
    """Return a count of filtered rows, of few columns; it takes 20 s."""
    plan = Plan()(0, "HashAggregate(keys=[], functions=[count(1)])", 90)(
        1, "Exchange SinglePartition", number, shuffle_records_written=1
    )(2, "HashAggregate(keys=[], functions=[partial_count(1)])", number, rows=1)(3, "Project")
    if cached:
        plan(4, "InMemoryTableScan [name#1]", number, rows=9)
    of_table(plan, 5 if cached else 4, number, condition, f"name#{number}", files, scan)
    return executed(plan, **{f"s{number}": (0, 20)})


def written(
    number: int, condition: str = CAPITALS, took: int = 50, scan: str = SCAN, more: str = ", more"
) -> EndedExecution:
    """Return a write of filtered rows, of all columns."""
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out")(1, f"Project [name#{number}]")
    of_table(plan, 2, number, condition, f"name#{number}{more}", 3, scan)
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


def test_counts_of_several_tables_name_all_of_them() -> None:
    """Each is counted once, and none of them twice."""
    other = "Scan parquet db.other"
    (issue,) = told(counted(1), counted(2, scan=other), written(3), written(4, scan=other))
    assert issue.sentence.startswith("rows of db.t, db.other are counted 2 times")


def test_a_part_that_is_told_by_itself_costs_nothing_more() -> None:
    """Counts and write compute the same scores, and filter these: all that is computed again are the scores."""

    def scored(number: int, condition: str, counts: bool) -> EndedExecution:
        plan, depth = Plan(), 2
        if counts:
            plan(0, "HashAggregate(keys=[], functions=[count(1)])", number)
            plan(1, "HashAggregate(keys=[], functions=[partial_count(1)])", number, rows=1)
        else:
            plan(0, "Execute InsertIntoHadoopFsRelationCommand file:/out")(1, f"Project [name#{number}]")
        plan(depth, f"Filter {condition.format(number)}", number, rows=5)
        plan(depth + 1, f"Project [slow(name#{number}) AS name#{number}, size#{number}]")
        plan(depth + 2, f"{SCAN} [name#{number}, size#{number}]", number, rows=50, number_of_files_read=3)
        return executed(plan, **{f"s{number}": (0, 20)})

    of_counts, of_scores = sorted(
        told(scored(1, CAPITALS, True), scored(2, LARGE, True), scored(3, LARGEST, False)),
        key=lambda issue: issue.cause != "recomputation counts",
    )
    assert of_scores.lost_ms == 40 * S
    assert of_counts.lost_ms == 0


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
        [
            counted(1, **ROWS_OF_PROGRAM),
            counted(2, LARGE, **ROWS_OF_PROGRAM),
            written(3, LARGE, **ROWS_OF_PROGRAM),
        ],
    ],
    ids=[
        "once",
        "at the end",
        "cached",
        "other rows",
        "another table by then",
        "texts that are cut",
        "rows of the program",
    ],
)
def test_counts_that_cost_little_or_are_not_comparable(healthy: list[EndedExecution]) -> None:
    assert [issue for issue in told(*healthy) if issue.cause == "recomputation counts"] == []
