"""The rule about regular expressions that take long for each row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_events.diagnosis.costly_nodes.slow_patterns import slow_patterns
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import ExecutedStage
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

EXTRACTS = r"Project [regexp_extract(line#2, user=(\d+) .* t=(\S+), 2) AS t#6]"
NESTED = r"Project [regexp_extract(line#2, user=(\d+)(.*)*t=(\S+), 2) AS t#6]"
ROWS = 100_000


def told(
    text: str = EXTRACTS,
    above: str = "Sort [t#6 ASC]",
    cpu_us: int = 300,
    rows: int = ROWS,
    size: int = 80,
    source: str = "Scan parquet db.lines [line#2]",
) -> list[Issue]:
    """Return what is told of a projection, and what follows, in a stage of 40 s, 10 of which Spark reads.

    A row has so many bytes in the table's files; 0 if that is not known.
    """
    plan = Plan()(0, above, 1)(1, text, 1, rows=rows)
    is_shuffled = source.startswith("Exchange")
    read = {"data_size" if is_shuffled else "size_of_files_read": size * rows} if size else {}
    plan(
        2, source, 1, **{"shuffle_records_written" if is_shuffled else "rows": rows}, **read, scan_time=40 * S
    )
    execution = executed(plan, s1=(0, 40))
    stage = ExecutedStage(1, 8, 0, 40 * S, 160 * S, 0, 0, cpu_ms=rows * cpu_us // 1_000)
    return list(slow_patterns(replace(execution, stages={1: stage}), Thresholds()))


def test_a_pattern_that_takes_long() -> None:
    (issue,) = told()
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("slow-pattern", None, 30 * S)
    assert issue.sentence == "regexp_extract of line takes 300 µs of a CPU for each of 100,000 rows"
    assert issue.advice.startswith("Say what is between the parts")
    assert issue.evidence == {
        "pattern.functions": "regexp_extract",
        "pattern.columns": "line",
        "pattern.rows": ROWS,
    }


@pytest.mark.parametrize("part", ["(.*)*", "(?:a+)+", "([a-z]+){2,}", r"(\w+\s?)*"])
def test_a_repetition_of_a_repetition(part: str) -> None:
    """Where it does not match, all ways to divide the text are tried."""
    (issue,) = told(NESTED.replace("(.*)*", part))
    assert issue.advice.startswith("The pattern repeats a part that repeats something itself")


@pytest.mark.parametrize("text", ["Filter line#2 RLIKE (a+)+b", "Project [split(line#2, ,, -1)[3] AS t#6]"])
def test_other_functions(text: str) -> None:
    (issue,) = told(text)
    assert issue.sentence.startswith("rlike of line" if "RLIKE" in text else "split of line")


@pytest.mark.parametrize(
    ("size", "source", "is_long"),
    [
        pytest.param(500, "Scan parquet db.lines [line#2]", True, id="lines"),
        pytest.param(500, "Scan text [line#2]", True, id="lines of a text file"),
        pytest.param(700, "Scan parquet db.lines [line#2]", False, id="documents"),
        pytest.param(5_000, "Exchange RoundRobinPartitioning(8)", True, id="shuffled lines"),
        pytest.param(7_000, "Exchange RoundRobinPartitioning(8)", False, id="shuffled documents"),
        pytest.param(0, "InMemoryTableScan [line#2]", False, id="texts of unknown size"),
    ],
)
def test_long_texts(size: int, source: str, is_long: bool) -> None:
    """A long text takes long, unless the pattern says that it goes through it again and again."""
    assert bool(told(size=size, source=source)) is is_long
    assert told(NESTED, size=size, source=source)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"cpu_us": 150}, id="quick"),
        pytest.param({"rows": 900}, id="few rows"),
        pytest.param({"text": EXTRACTS.replace("regexp_extract", "concat")}, id="no pattern"),
        pytest.param({"text": EXTRACTS.replace("AS t", "AS t, from_json(line#2) AS j")}, id="others beside it"),
        pytest.param({"text": EXTRACTS.replace("AS t", "AS t, UDF(line#2) AS j")}, id="a function of the user's"),
        pytest.param({"above": "SortMergeJoin [t#6], [k#9], Inner"}, id="a join in its stage"),
    ],
)  # fmt: skip
def test_others(options: dict[str, object]) -> None:
    """What may take long beside it is not the pattern's."""
    assert not told(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("read", "is_told"), [(ROWS, True), (100 * ROWS, False)])
def test_a_few_rows_of_many(read: int, is_told: bool) -> None:
    """Most of a stage's time may go to rows that a filter drops, and of which no pattern is looked for."""
    plan = Plan()(0, NESTED, 1, rows=ROWS)(1, "Filter (kind#1 = 3)", 1, rows=ROWS)
    plan(2, "Scan parquet db.lines [line#2,kind#1]", 1, rows=read, size_of_files_read=80 * read)
    execution = executed(plan, s1=(0, 40))
    stage = ExecutedStage(1, 8, 0, 40 * S, 80 * S, 0, 0, cpu_ms=30 * S)
    issues = list(slow_patterns(replace(execution, stages={1: stage}), Thresholds()))
    assert bool(issues) is is_told
