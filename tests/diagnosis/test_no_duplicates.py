"""The rule about duplicates that are looked for among rows of which none repeats."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.no_duplicates import no_duplicates
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.node import named_tables
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

ROWS = 2_000_000
DISTINCT = "HashAggregate(keys=[id#0L, place#2], functions=[], output=[id#0L, place#2])"
SCAN = "Scan parquet db.visits [id#0L, place#2]"


def told(
    compares: str = DISTINCT,
    left: int = ROWS,
    of: int | None = ROWS,
    above: str = "Project [id#0L]",
    below: str = SCAN,
) -> list[Issue]:
    """Return what is told of four cores: 30 s before the shuffle, and 40 s after it, of which 8 s sort for others."""
    rows = {} if of is None else {"rows": of}
    plan = Plan()(0, above, 2)(1, "Sort [id#0L ASC]", 2, sort_time=32 * S)(2, compares, 2, rows=left)
    plan(3, "AQEShuffleRead coalesced")(4, "Exchange hashpartitioning(id#0L, 200)", 1)
    plan(5, compares, 1, rows=left)(6, "Sort [id#0L ASC]", 1, sort_time=12 * S)(7, below, 1, **rows)
    return list(no_duplicates(executed(plan, s1=(0, 30), s2=(30, 70)), Thresholds()))


@pytest.mark.parametrize(
    ("compares", "by"),
    [
        (DISTINCT, "id, place"),
        ("HashAggregate(keys=[id#0L], functions=[first(k#1L, false), first(h#2, false)])", "id"),
        ("HashAggregate(keys=[id#0L], functions=[partial_first(k#1L, false)])", "id"),
        ("SortAggregate(key=[id#0L], functions=[first(k#1L, false)])", "id"),
    ],
    ids=["DISTINCT", "dropDuplicates", "before the shuffle", "by sorting"],
)
def test_rows_of_which_none_repeats(compares: str, by: str) -> None:
    """What another way would take is not known: the stages may do more, but for what is measured."""
    (issue,) = told(compares)
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("no-duplicates", None, (30 + 40 - 8) * S)
    assert issue.sentence == f"looks for duplicates by {by} among 2,000,000 rows of db.visits, and finds none"
    assert issue.stages == {1, 2}


def test_rows_that_take_nobody_knows_how_long_to_make() -> None:
    """Before the shuffle, what is measured counts: to sort them took four cores 3 s."""
    (issue,) = told(below="SortMergeJoin [id#0L], [id#3L], Inner")
    assert issue.share_ms == (3 + 40 - 8) * S


@pytest.mark.parametrize(
    "healthy",
    [
        told(left=ROWS - 1),
        told(of=None),
        told(left=99_999, of=99_999),
        told("HashAggregate(keys=[id#0L], functions=[sum(k#1L)])"),
        told("HashAggregate(keys=[id#0L], functions=[first(k#1L, false), sum(k#1L)])"),
        told("HashAggregate(keys=[id#0L, gid#5], functions=[])"),
        told("HashAggregate(keys=[id#0L, ... 30 more fields], functions=[])"),
        told(above="HashAggregate(keys=[], functions=[partial_count(distinct id#0L)])"),
        told(below="SortMergeJoin [id#0L], [id#3L], LeftAnti"),
    ],
    ids=[
        "one is dropped",
        "nobody has counted them",
        "few rows",
        "sums",
        "sums besides",
        "copies of rows",
        "a text that is cut",
        "distinct values are counted",
        "EXCEPT",
    ],
)
def test_rows_that_are_to_be_compared(healthy: list[Issue]) -> None:
    assert healthy == []


@pytest.mark.parametrize(
    ("scan", "location", "of"),
    [
        (
            "Scan ExistingRDD Delta Table State #0 - file:/lake/buyers/_delta_log[txn#4,add#5]",
            "",
            "file:/lake/buyers",
        ),
        (
            "Scan json ",
            "InMemoryFileIndex(1 paths)[file:/lake/buyers/_delta_log/00000000000000000000.json]",
            "file:/lake/buyers",
        ),
        ("Scan ExistingRDD mergeMaterializedSource[id#0L]", "", ""),
        ("Scan parquet ", "InMemoryFileIndex(1 paths)[file:/lake/buyers]", "file:/lake/buyers"),
    ],
    ids=["Delta's log as it is kept", "Delta's log", "rows that Delta keeps", "files"],
)
def test_tables_are_named_as_people_know_them(scan: str, location: str, of: str) -> None:
    plan = Plan()(0, "Project [id#0L]", 1)(1, scan, 1, {"Location": location} if location else {}, rows=9)
    (root, *_) = executed(plan, s1=(0, 9)).nodes()
    assert root.tables() == ([of] if of else [])


def test_logs_of_delta_are_told_apart_from_their_table() -> None:
    """Small files of a log are no files of the table; and a folder may have a name that only begins so."""
    paths = ("file:/t/_delta_log/00000000000000000000.json", "file:/t/_delta_log_of_mine/a.json")
    scans = (("Scan json ", {"Location": f"InMemoryFileIndex(1 paths)[{path}]"}) for path in paths)
    nodes = [next(executed(Plan()(0, name, 1, where, rows=9), s1=(0, 9)).nodes()) for name, where in scans]
    assert [node.table() for node in nodes] == list(paths)
    assert named_tables(nodes) == ["file:/t", paths[1]]
