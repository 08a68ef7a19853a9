"""Filters that convert a column, which no reader can apply."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.cast_filters import cast_filters
from spark_events.diagnosis.costly_nodes.scans import full_scans
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

OF_TEXT = "Filter (isnotnull(line_id#0) AND (cast(line_id#0 as bigint) = 300))"


CUT_AT_AND = f"Filter ({'isnotnull(a#1) AND ' * 24}(cast(line_id#0 as bigint) = 300) AND "
CUT_AT_AND = f"{CUT_AT_AND:(<500}"


def told(
    condition: str = OF_TEXT,
    scan: str = "Scan parquet ",
    rows: int = 1_000_000,
    kept: int = 10_000,
    over: str = "WriteFiles",
    **measured: int,
) -> list[Issue]:
    """Return what is told of a scan whose stage takes 40 s.

    Args:
        over: what else the stage does with the rows that are kept.
    """
    where = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/arrivals]", "PartitionFilters": "[]"}
    plan = Plan()(0, over, 1)(1, condition, 1, rows=kept)(
        2, "FileScan parquet [line_id#0,stop#2]", 1, where, rows=rows, **measured
    )
    plan.nodes[2][1] = scan
    return list(cast_filters(executed(plan, s1=(0, 40)), Thresholds()))


def test_a_text_that_is_compared_with_a_number() -> None:
    (issue,) = told()
    assert (issue.lost_ms, issue.share_ms) == (None, 40 * S * 99 // 100)
    assert issue.sentence == (
        "reads all 1,000,000 rows of s3a://lake/arrivals, of which the filter on line_id keeps 10,000: it "
        "converts line_id for each row (cast(line_id as bigint) = 300), so no reader can apply it"
    )
    assert "in quotation marks" in issue.advice
    assert issue.evidence["scan.column"] == "line_id"


@pytest.mark.parametrize(
    "over",
    ["Project [regexp_extract(stop#2, (a+)+b, 1) AS x#3]", "BroadcastHashJoin [stop#2], [stop#4], Inner"],
)
def test_what_else_the_stage_does_is_not_the_filters(over: str) -> None:
    """Such as a function of the rows that are kept: of four cores, the scan has a quarter of the time."""
    (issue,) = told(over=over, scan_time=40 * S)
    assert issue.share_ms == pytest.approx(10 * S * 0.99, abs=2)


@pytest.mark.parametrize(
    "over", ["WriteFiles", "Project [stop#2]", "HashAggregate(keys=[], functions=[max(stop#2)])"]
)
def test_what_spark_does_not_measure_is_the_filters_where_nothing_else_takes_long(over: str) -> None:
    """To convert a column takes longer than to read it."""
    (issue,) = told(over=over, scan_time=40 * S)
    assert issue.share_ms == pytest.approx(40 * S * 0.99, rel=0.001)


def test_what_is_done_with_many_rows_that_are_kept_is_not_the_filters() -> None:
    """Two of ten million rows, grouped, may take 6 s of the 160 s of four cores."""
    grouped = "HashAggregate(keys=[stop#2], functions=[count(1)])"
    (issue,) = told(over=grouped, scan_time=40 * S, rows=10_000_000, kept=2_000_000)
    assert issue.share_ms == pytest.approx(40 * S * 154 / 160 * 0.8, rel=0.001)


@pytest.mark.parametrize(
    ("condition", "shown", "may_be_quoted"),
    [
        (
            "(cast(at#1 as timestamp) >= 2026-01-01 10:00:00)",
            "cast(at as timestamp) >= 2026-01-01 10:00:00",
            False,
        ),
        ("cast(code#1 as bigint) IN (3,4)", "cast(code as bigint) IN (3,4)", True),
        ("(cast(price#1 as double) = 3.5)", "cast(price as double) = 3.5", True),
        ("(cast(t.x#1L as decimal(10,2)) < 3.50)", "cast(t.x as decimal(10,2)) < 3.50", False),
        (f"cast(code#1 as bigint) IN ({','.join(map(str, range(99)))})", "13,14,15,1…", True),
    ],
)
def test_other_types(condition: str, shown: str, may_be_quoted: bool) -> None:
    (issue,) = told(f"Filter (isnotnull(stop#2) AND {condition})")
    assert f"{shown})" in issue.sentence
    assert ("in quotation marks" in issue.advice) is may_be_quoted


@pytest.mark.parametrize(
    "healthy",
    [
        told("Filter (isnotnull(line_id#0) AND (line_id#0 = 300))"),
        told("Filter (isnotnull(at#0) AND (year(cast(at#0 as date)) = 2026))"),
        told("Filter (stop#2 = cast(300 as string))"),
        told("Filter (isnotnull(stop#2) AND (cast(line_id#0 as bigint) = stop#2))"),
        told("Filter ((cast(at#0 as date) >= 2020-01-01) AND (stop#2 = 7))"),
        told(CUT_AT_AND),
        told(kept=300_000),
        told(rows=90_000, kept=10),
        told(scan="Scan csv "),
    ],
    ids=[
        "its own type",
        "of a function",
        "a constant",
        "two columns",
        "another condition",
        "a further one may be cut off",
        "keeps many",
        "few rows",
        "text has no statistics",
    ],
)
def test_what_a_reader_can_apply(healthy: list[Issue]) -> None:
    assert healthy == []


def test_where_all_partitions_are_read_that_is_told() -> None:
    where = {"Location": "InMemoryFileIndex(1 paths)[s3a://lake/arrivals]", "PartitionFilters": "[]"}
    plan = Plan()(0, OF_TEXT, 1, rows=10)(1, "FileScan", 1, where, rows=10**6, number_of_partitions_read=30)
    plan.nodes[1][1] = "Scan parquet "
    execution = executed(plan, s1=(0, 40))

    assert [issue.kind for issue in full_scans(execution, Thresholds())] == ["full-scan"]
    assert list(cast_filters(execution, Thresholds())) == []
