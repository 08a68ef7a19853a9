"""The rule about a filter that drops most of the rows among which duplicates were looked for."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.late_filters import late_filters
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

ROWS, LEFT = 8_000_000, 7_000_000
BY_ID = "HashAggregate(keys=[id#0L], functions=[first(place#2, false), first(day#3L, false)])"
DAY = "Filter (isnotnull(day#3L) AND (day#3L = 3))"
SCAN = "Scan parquet db.visits [id#0L, place#2, day#3L]"


def told(
    compares: str = BY_ID,
    drops: str = DAY,
    kept: int | None = 70_000,
    left: int = LEFT,
    above: str = "Project [id#0L]",
    below: str = SCAN,
    makes: str = "Project [id#0L, place#2, day#3L]",
    is_measured: bool = True,
) -> list[Issue]:
    """Return what is told of four cores: 30 s before the shuffle, of which 10 s read, and 40 s after it."""
    rows = {} if kept is None else {"rows": kept}
    plan = Plan()(0, above, 2)(1, drops, 2, **rows)(2, compares, 2, rows=left)
    plan(3, "AQEShuffleRead coalesced")(4, "Exchange hashpartitioning(id#0L, 200)", 1)
    plan(5, compares.replace("first(", "partial_first("), 1, rows=ROWS)
    plan(6, makes, 1)(
        7, below, 1, rows=ROWS, **({"scan_time": 40 * S} if below == SCAN and is_measured else {})
    )
    return list(late_filters(executed(plan, s1=(0, 30), s2=(30, 70)), Thresholds()))


@pytest.mark.parametrize(
    ("compares", "drops"),
    [
        (BY_ID, DAY),
        ("SortAggregate(key=[id#0L], functions=[first(place#2, false), first(day#3L, false)])", DAY),
        ("HashAggregate(keys=[id#0L], functions=[first(a#1, false), ... 30 more fields])", DAY),
    ],
    ids=["by hash", "by sorting", "of many columns"],
)
def test_most_rows_are_dropped_after_they_were_compared(compares: str, drops: str) -> None:
    """The rows would be read in any case; what is done with all of them besides is for 99 % that nobody wants."""
    (issue,) = told(compares, drops)

    assert issue.kind == "late-filter"
    assert issue.lost_ms == pytest.approx(0.99 * (70 - 10) * S)
    assert issue.share_ms is None
    assert issue.sentence == (
        "looks for duplicates by id among 8,000,000 rows of db.visits, and a filter on day then drops all "
        "but 70,000 of the 7,000,000 that are left"
    )
    assert issue.stages == {1, 2}


def test_functions_below_are_not_called_for_what_a_filter_drops_before_them() -> None:
    (issue,) = told(makes="Project [id#0L, sha2(place#1, 256) AS place#2, day#3L]")

    assert issue.lost_ms == pytest.approx(0.99 * (70 - 10) * S)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Project [slow(id#0L) AS x#9]", SCAN),
        ("Project [id#0L]", "SortMergeJoin [id#0L], [id#5L], Inner"),
        ("Project [id#0L]", "Scan csv db.visits [id#0L, place#2, day#3L]"),
    ],
    ids=["a function for the rows that are left", "a join before it", "text is parsed"],
)
def test_nobody_knows_what_else_the_stages_do(above: str, below: str) -> None:
    """Then the time is an upper limit."""
    (issue,) = told(above=above, below=below)

    assert issue.lost_ms is None
    assert issue.share_ms is not None


@pytest.mark.parametrize(
    "upper_limit",
    [
        told(makes="Project [id#0L, place#2, parsed(text#1) AS day#3L]"),
        told(drops="Filter RLIKE(day#3L, a+b)"),
        told(is_measured=False),
    ],
    ids=["of a slow function's result", "by a slow function", "nobody has measured the reading"],
)
def test_what_a_filter_takes_of_all_rows_if_it_comes_first(upper_limit: list[Issue]) -> None:
    """So much remains, and nobody knows how much."""
    (issue,) = upper_limit
    assert issue.lost_ms is None
    assert issue.share_ms is not None


@pytest.mark.parametrize(
    "healthy",
    [
        told(kept=LEFT // 4),
        told(kept=None),
        told(left=99_999, kept=10),
        told("HashAggregate(keys=[id#0L], functions=[max(day#3L)])"),
        told("HashAggregate(keys=[id#0L], functions=[first(day#3L, false), count(1)])"),
        told(drops="Project [id#0L, day#3L]"),
        told(drops="Filter (rand(7) < 0.01)"),
        told(drops="Filter (rand(id#0L) < 0.01)"),
    ],
    ids=[
        "a quarter is kept",
        "nobody has counted",
        "few rows",
        "HAVING",
        "a sum besides",
        "no filter",
        "a sample",
        "a sample by key",
    ],
)
def test_what_has_to_be_compared(healthy: list[Issue]) -> None:
    assert healthy == []
