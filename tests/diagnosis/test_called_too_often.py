"""Functions in Python that several SQL executions call for more rows than their table has."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.repeated_work.called_too_often import CalledTooOften
from tests.support.plans import Plan, S, executed

WHOLE = {"DataFilters": "[]", "PartitionFilters": "[]", "Location": "InMemoryFileIndex(1 paths)[file:/raw]"}
PART = {**WHOLE, "DataFilters": "[(source#2 = web)]"}


def cleaned(
    rows: int,
    metadata: dict[str, str] = PART,
    call: str = "clean(text#5)#6",
    between: str = "Filter (source#2 = web)",
    scanned: int = 1_000,
    python_s: int = 30,
) -> EndedExecution:
    """Return an execution whose one stage takes 10 s on 4 cores, 30 s of these 40 for a function."""
    made = ", ".join(f"pythonUDF{number}#{9 + number}" for number in range(call.count(", ") + 1))
    plan = Plan()(0, "WriteFiles", 1)(
        1, f"BatchEvalPython [{call}], [{made}]", 1, rows=rows, time_to_run_Python_workers=python_s * S
    )
    plan(2, between, 1, rows=rows)
    plan(3, "Scan parquet [source#2,text#5]", 1, metadata, rows=scanned, number_of_files_read=3)
    return executed(plan, s1=(0, 10))


def first(rows: int) -> EndedExecution:
    """Return an execution that reads some rows only, as ``show()`` does."""
    plan = Plan()(0, "CollectLimit 21", 1)(
        1, "BatchEvalPython [clean(text#5)#6], [pythonUDF0#9]", 1, rows=21, time_to_run_Python_workers=S
    )
    plan(2, "Scan parquet [source#2,text#5]", 1, WHOLE, rows=rows, number_of_files_read=3)
    return executed(plan, s1=(0, 1))


def told(*executions: EndedExecution) -> list[Issue]:
    """Return what is told with the last of some executions."""
    rule = CalledTooOften()
    found: list[Issue] = []
    for number, execution in enumerate(executions):
        found = list(rule.take(execution, f"first at mix.py:{number + 1}"))
    return found


def test_parts_of_a_table_and_the_whole() -> None:
    """A total of all 1,000 rows, and 700 and 300 of them again, twice each: 2 of 3 calls are repeated."""
    (issue,) = told(cleaned(1_000, WHOLE), *(cleaned(rows) for rows in (700, 300, 700, 300)))

    assert (issue.kind, issue.lost_ms) == ("recomputation", 5 * 7_500 * 2 // 3)
    assert issue.sentence == (
        "clean is called for 3,000 rows in 5 SQL executions, for first at mix.py:1, first at mix.py:2, first at "
        "mix.py:3 and others: file:/raw, from which they come, has 1,000"
    )
    assert issue.evidence["recomputation.times"] == 3


@pytest.mark.parametrize(
    "executions",
    [
        (cleaned(1_000, WHOLE),),
        (cleaned(700, WHOLE), cleaned(300)),
        (cleaned(700), cleaned(300), cleaned(700), cleaned(300)),
        (cleaned(1_000, WHOLE, "clean(text#5)#6"), cleaned(1_000, WHOLE, "clean(text#5)#7")),
        (cleaned(1_000, WHOLE), cleaned(1_000, WHOLE, scanned=1_001, between="Generate explode(text#5)")),
        (cleaned(1_000, WHOLE), cleaned(1_000, {})),
        (cleaned(1_000, WHOLE), cleaned(1_000, WHOLE, "clean(made#8)#6")),
        (cleaned(1_000, WHOLE, python_s=0), cleaned(1_000, WHOLE, python_s=0)),
        (cleaned(1_000, WHOLE), cleaned(1_000, WHOLE, "clean(text#5)#6, parse(clean(text#5))#7")),
        (first(100), cleaned(700), cleaned(300)),
    ],
    ids=[
        "once",
        "each row once",
        "a table of unknown size",
        "two functions of one name",
        "rows that are made of it",
        "another table",
        "of a column that is made",
        "no time is measured",
        "another function that takes an unknown part of the time",
        "the first rows of a table are not all",
    ],
)
def test_what_is_not_told(executions: tuple[EndedExecution, ...]) -> None:
    assert told(*executions) == []


def test_two_calls_in_one_execution_are_called_twice() -> None:
    """It is told by the rule about that, of the execution alone."""
    plan = Plan()(
        0, "BatchEvalPython [clean(text#5)#6], [p#9]", 1, rows=1_000, time_to_run_Python_workers=30 * S
    )
    plan(1, "Filter (length(p#8) > 3)", 1, rows=1_000)
    plan(2, "BatchEvalPython [clean(text#5)#6], [p#8]", 1, rows=1_000, time_to_run_Python_workers=15 * S)
    plan(3, "Scan parquet [source#2,text#5]", 1, WHOLE, rows=1_000, number_of_files_read=3)
    execution = executed(plan, s1=(0, 10))

    assert told(execution) == []
    (issue,) = told(execution, cleaned(700))
    assert issue.sentence.startswith("clean is called for 2,700 rows in 2 SQL executions")
