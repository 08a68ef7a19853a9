"""Files of text that several SQL executions parse, each anew."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.parsed_files import ParsedFiles
from spark_events.diagnosis.repeated_work.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

PLACE = "collect at a.py:7"


def scanned(
    column: str,
    lasts_s: int = 20,
    form: str = "csv",
    path: str = "file:/lake/trips",
    above: str = "HashAggregate(keys=[], functions=[partial_sum(fare#1)])",
    partition: str = "[]",
) -> EndedExecution:
    """Return an SQL execution that aggregates a column of files, in stage 1."""
    plan = Plan()(0, above, 1, rows=4)
    location = {"Location": f"InMemoryFileIndex(1 paths)[{path}]", "PartitionFilters": partition}
    files = {"number_of_files_read": 8, "size_of_files_read": 900 << 20}
    plan(1, f"Scan {form} [{column}]", 1, location, rows=500, **files)
    return executed(plan, s1=(0, lasts_s))


def told(*executions: EndedExecution, place: str = PLACE) -> list[Issue]:
    parsed = ParsedFiles()
    for execution in executions:
        parsed.take(execution, place)
    return list(parsed.issues())


@pytest.mark.parametrize("form", ["csv", "json", "xml"])
def test_two_queries_of_other_columns(form: str) -> None:
    (issue,) = told(scanned("fare#1", form=form), scanned("tip#2", 12, form))
    assert (issue.kind, issue.lost_ms) == ("recomputation", 12 * S)
    assert issue.sentence == (
        f"{form.upper()} of file:/lake/trips (8 files, 900 MiB) is parsed 2 times, for {PLACE}"
    )
    assert "Parquet" in issue.advice


def test_work_besides_of_which_nobody_knows_how_long_it_takes() -> None:
    one, other = (scanned(name, above="SortMergeJoin [a#1], [b#2], Inner") for name in ("fare#1", "tip#2"))
    (issue,) = told(one, other)
    assert issue.lost_ms == 0


def test_a_place_of_which_only_the_method_is_known() -> None:
    (issue,) = told(scanned("fare#1"), scanned("tip#2", 12), place="parquet")
    assert issue.sentence.endswith("is parsed 2 times, for parquet()")


def test_files_that_are_parsed_often_for_more_of_which_nobody_knows_how_long_it_takes() -> None:
    """No longer than the quickest each time, but for one that reads only a part; nobody parses them so often
    on purpose."""
    above = "Project [length(concat(note#5, name#4)) AS l{}#7]"
    loop = [scanned("note#5, name#4", 20 + number, above=above.format(number)) for number in range(5)]
    assert [(each.lost_ms, each.share_ms) for each in told(*loop)] == [(None, 4 * 20 * S)]
    first_lines = scanned("note#5, name#4", 2, above=above.format(9))
    assert [each.share_ms for each in told(*loop, first_lines)] == [(2 + 20 + 21 + 22 + 23) * S]
    assert [(each.lost_ms, each.share_ms) for each in told(*loop[1:])] == [(0, None)]
    assert [(each.lost_ms, each.share_ms) for each in told(*loop, *[scanned("fare#1")] * 4)] == [
        (60 * S, None)
    ]


def test_other_partitions_are_other_files() -> None:
    """However many these are."""
    days = [scanned("fare#1", 20, partition=f"[(day#9 = {day})]") for day in (1, 2, 3)]
    assert told(*days) == []
    assert len(told(days[0], *days)) == 0
    assert len(told(days[0], days[0], days[0])) == 1


def turn(number: int, machine: int) -> EndedExecution:
    """Return an execution of a loop that parses files for a machine, and does what may take long with it."""
    plan = Plan()(0, "ObjectHashAggregate(keys=[], functions=[slow(note#5)], ... 9 more fields)", 1, rows=4)
    plan(1, f"Filter ((quality#8 < 2) AND (machine#{6 + number} = {machine}))", 1, rows=9)
    location = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/trips]"}
    files = {"number_of_files_read": 8, "size_of_files_read": 900 << 20}
    plan(2, "Scan csv [note#5, machine#6]", 1, location, rows=500, **files)
    return executed(plan, lasted_ms=(21 + number) * S, s1=(0, 20 + number))


@pytest.mark.parametrize("differs", [True, False], ids=["another machine each time", "the same one"])
def test_a_loop_that_does_more_with_the_rows_of_each_turn(differs: bool) -> None:
    """Of many runs, the quickest is so by chance: each takes about the median, and all no more than they do.

    One query for all machines saves what the driver does for each, too: a second.
    """
    (issue,) = told(*(turn(number, number * differs) for number in range(9)))
    assert (issue.lost_ms, issue.share_ms) == (None, (sum(range(20, 28)) + 8 * differs) * S)
    assert (", mostly with another filter on machine each time, for" in issue.sentence) is differs
    assert issue.advice.startswith("Read it once: let one query take all rows") is differs


@pytest.mark.parametrize(
    "executions",
    [
        [scanned("fare#1"), scanned("fare#9")],
        [scanned("fare#1"), scanned("tip#2", path="file:/lake/rides")],
        [scanned(name, form="parquet") for name in ("fare#1", "tip#2", "tax#3")],
    ],
    ids=["the same twice", "other files", "columns alone are read"],
)
def test_files_that_are_not(executions: list[EndedExecution]) -> None:
    assert told(*executions) == []


def test_a_loop() -> None:
    """Where a place filters the same files by one value after the other, that is told with the loop."""
    files = ParsedFiles()
    filtered = [scanned("fare#1", above=f"Filter (fare#1 > {number})") for number in range(9)]
    for execution in filtered[:1]:
        files.take(execution, "count at a.py:1")
    for execution in filtered[1:]:
        files.take(execution, "count at a.py:1", in_loop=True)
    assert list(files.issues()) == []


@pytest.mark.parametrize(
    ("condition", "text", "loop"),
    [
        ("(isnotnull(fare#{0}) AND (fare#{0} > {0}))", 1, 1),
        ("((isnotnull(day#9) AND (day#9 > 3)) AND isnotnull(fare#{0}))", 1, 0),
    ],
    ids=["of one value after the other", "of one column after the other"],
)
def test_loops_over_values_and_over_columns(condition: str, text: int, loop: int) -> None:
    """A loop that needs another column each time asks for the same rows, and parses all of them again."""
    recomputation = Recomputation()
    for number in range(8):
        column = f"fare#{number}"
        execution = scanned(column, above=f"Filter {condition.format(number)}")
        recomputation.take(execution, "first at a.py:20")
    causes = [issue.cause for issue in recomputation.issues() if "is parsed" in issue.sentence]
    assert len(causes) == text - loop


def cohort(
    number: int, lasts_s: int, form: str = "text", parsed: int = 500, size: int = 434, column: str = "value#0"
) -> EndedExecution:
    """Return an execution that parses a column of files for a filter of its own, or of what a filter leaves."""
    plan = Plan()(0, "HashAggregate(keys=[patient#3], functions=[partial_count(1)])", 1, rows=4)
    plan(1, "Generate explode(observations#5), [patient#3], false, [o#11]", 1, rows=900)
    plan(
        2,
        f"Filter array_contains(from_json(StructField(codes), {column}, false).codes, E{number})",
        1,
        rows=90,
    )
    plan(3, f"Filter (kind#1 = {number})", 1, rows=parsed)
    location = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/bundles]"}
    files = {"number_of_files_read": 8, "size_of_files_read": size << 20}
    plan(4, f"Scan {form} [value#0] {number}", 1, location, rows=500, **files)
    return executed(plan, s1=(0, lasts_s))


@pytest.mark.parametrize("form", ["text", "parquet"])
def test_a_column_that_each_query_parses_for_another_filter(form: str) -> None:
    (issue,) = told(*(cohort(number, 20 + number, form) for number in range(5)))
    assert (issue.lost_ms, issue.share_ms) == (None, 4 * 20 * S)
    assert issue.sentence == (
        f"file:/lake/bundles (8 files, 434 MiB) is parsed by from_json 5 times, for {PLACE}"
    )
    assert issue.evidence["recomputation.what"] == "what from_json makes of file:/lake/bundles"
    assert "cache() or persist() what from_json makes" in issue.advice


@pytest.mark.parametrize(
    "executions",
    [
        [cohort(number, 20) for number in range(4)],
        [cohort(number, 20, parsed=100) for number in range(5)],
        [cohort(number, 20, size=430 + number) for number in range(5)],
        [cohort(number, 20, column=("value#0", "kind#1")[number % 2]) for number in range(6)],
        [cohort(number, 20, column="") for number in range(5)],
    ],
    ids=[
        "a few times",
        "of rows that another filter leaves",
        "of other files",
        "other columns",
        "a text that is cut off",
    ],
)
def test_a_column_that_may_have_to_be_parsed_so_often(executions: list[EndedExecution]) -> None:
    assert [issue for issue in told(*executions) if issue.lost_ms or issue.share_ms] == []
