"""Files of text that several SQL executions parse, each anew."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.parsed_files import ParsedFiles
from spark_events.diagnosis.plans.recomputation import Recomputation
from tests.support.plans import Plan, S, executed

PLACE = "collect at a.py:7"


def scanned(
    column: str,
    lasts_s: int = 20,
    form: str = "csv",
    path: str = "file:/lake/trips",
    above: str = "HashAggregate(keys=[], functions=[partial_sum(fare#1)])",
) -> EndedExecution:
    """Return an SQL execution that aggregates a column of files, in stage 1."""
    plan = Plan()(0, above, 1, rows=4)
    location = {"Location": f"InMemoryFileIndex(1 paths)[{path}]"}
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
