"""The rule about files that a loop reads again and again, each time with another filter."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

MIB = 1 << 20


def day(
    number: int,
    of: int | None = None,
    files: int = 3,
    project: str = "Project [id#{0}L]",
    partition: str = "[]",
) -> EndedExecution:
    """Return a read of one day, for which all cores take 20 s."""
    plan = Plan()(0, project.format(number))
    plan(1, f"Filter (day#{number} = {number if of is None else of})", number, rows=5)
    sizes = {"number_of_files_read": files, "size_of_files_read": 90 * MIB}
    at = {"Location": "InMemoryFileIndex(1 paths)[file:/data/clicks]", "PartitionFilters": partition}
    plan(2, "Scan json  [id#1L, day#2]", number, at, rows=50, **sizes)
    return executed(plan, **{f"s{number}": (0, 20)})


def told(executions: list[EndedExecution], place: str = "collect at a.py:4") -> list[Issue]:
    recomputation = Recomputation()
    for execution in executions:
        recomputation.take(execution, place)
    return [issue for issue in recomputation.issues() if " reads " in issue.sentence]


def test_a_loop_over_days() -> None:
    """Each of five reads is of all files: four could be saved."""
    (issue,) = told([day(number) for number in range(5)])
    assert (issue.kind, issue.lost_ms) == ("recomputation", 80 * S)
    assert issue.sentence == (
        "collect at a.py:4 reads file:/data/clicks (3 files, 90 MiB) 5 times, each time with another filter on day"
    )


@pytest.mark.parametrize(
    "healthy",
    [
        [day(number) for number in range(4)],
        [day(number, of=7) for number in range(5)],
        [day(number, files=number) for number in range(1, 6)],
        [day(number, project="Project [slow(id#{0}L) AS x#9]") for number in range(5)],
        [day(number, 7, project=f"HashAggregate(functions=[max(c{number}#1)])") for number in range(5)],
        [day(number, partition=f"[(hour#3 = {number})]") for number in range(5)],
    ],
    ids=[
        "four days",
        "the same each time",
        "a table that grows",
        "it does more than reading",
        "one filter, and another column each time",
        "other partitions each time",
    ],
)
def test_no_loop_of_reads(healthy: list[EndedExecution]) -> None:
    assert told(healthy) == []


def test_a_loop_that_takes_the_largest_of_each_day() -> None:
    """Texts are compared in an aggregate of their own kind."""
    largest = "SortAggregate(key=[], functions=[max(page#{0})])"
    (issue,) = told([day(number, project=largest) for number in range(5)])
    assert issue.lost_ms == 80 * S


def test_reads_of_unknown_places() -> None:
    """They may be of different parts of a program."""
    assert told([day(number) for number in range(5)], "") == []


def zones(
    times: int = 5, above: str = "HashAggregate(keys=[m#{0}], functions=[])", **of: object
) -> EndedExecution:
    """Return a query that unites sums of the same file, each of another zone, in stages of 20 s for all cores."""
    written = "Execute InsertIntoHadoopFsRelationCommand file:/out/lines, false, Parquet"
    plan = Plan()(0, written, 99)(1, "Union", 99)
    sizes = {"number_of_files_read": 2, "size_of_files_read": 70 * MIB}
    at = {"Location": "InMemoryFileIndex(1 paths)[file:/data/readings]"}
    for number in range(times):
        plan(2, f"Exchange hashpartitioning(m#{number}, 200)", number)(3, above.format(number), number)
        plan(4, f"Filter (zone#{number} = {of.get('zone', of.get('first', 0) + number)})", number, rows=5)
        scanned = f"Scan {of.get('form', 'csv')}  [m#{number}, zone#{number}]"
        plan(5, scanned, number, at, rows=of.get("rows", 50), **sizes)
    stages = {f"s{number}": (20 * number, 20 * number + 20) for number in range(times)}
    return executed(plan, s99=(20 * times, 20 * times + 1), **stages)


def test_a_query_that_a_loop_has_put_together() -> None:
    """It parses the file once for each branch of a union, and that is not told twice."""
    (issue,) = told([zones()], "parquet")
    assert (issue.kind, issue.lost_ms) == ("recomputation", 80 * S)
    assert issue.sentence == (
        "one query, which writes file:/out/lines, reads file:/data/readings (2 files, 70 MiB) 5 times, each time "
        "with another filter on zone"
    )
    assert len(told([zones(form="parquet")], "parquet")) == 1
    (of_line,) = told([zones()])
    assert of_line.sentence.startswith(
        "collect at a.py:4 reads file:/data/readings (2 files, 70 MiB) 5 times in one"
    )
    recomputation = Recomputation()
    recomputation.take(zones(), "")
    assert len(list(recomputation.issues())) == 1


def test_queries_of_one_place() -> None:
    """Each reads the file five times, whichever filters the next one has: what they cost adds up."""
    (issue,) = told([zones(), zones(first=100)])
    assert issue.lost_ms == 2 * 80 * S
    assert "5 times in one query" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [
        zones(4),
        zones(zone=7),
        zones(above="SortMergeJoin [m#{0}], [n#9], Inner"),
        zones(form="parquet", rows=6),
    ],
    ids=["four branches", "the same filter in each", "more is done with the rows", "each reads its own rows"],
)
def test_queries_that_no_loop_has_put_together(healthy: EndedExecution) -> None:
    assert told([healthy], "parquet") == []
