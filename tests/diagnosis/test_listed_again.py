"""The rule about folders whose files are listed again for each read of the same path."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.rdds.listed_again import ListedAgain, Listing, listing
from tests.support.plans import Plan, S, executed

SALES = "s3a://lake/sales"


def read_of(rule: ListedAgain, days: range, first_job: int, begun_s: int, table: str = SALES) -> list[Issue]:
    """Let a job of 2 s list the shops of each day, with a second before each; return what is told."""
    told = []
    for number, day in enumerate(days):
        lists = Listing(f"{table}/day={day}/shop=5", 200)
        begun_ms = (begun_s + 3 * number) * S
        took = rule.take(lists, first_job + number, begun_ms, begun_ms + 2 * S, 0)
        told += [took.issue] if took is not None else []
    return told


def test_a_table_that_is_listed_for_each_read() -> None:
    """Three reads of ten jobs each; within a read, the second before each job is the listing's, too."""
    rule = ListedAgain()
    assert read_of(rule, range(10), 0, 0) == []
    read_of(rule, range(10), 20, 100)
    issue = read_of(rule, range(10), 40, 200)[-1]
    assert issue.kind == "recomputation"
    assert issue.lost_ms == 2 * (10 * 2 + 9) * S
    assert issue.sentence == (
        "30 jobs list the files of s3a://lake/sales (2,000 folders), once for each of 3 reads of the same "
        "path; all but the first take 58.0 s"
    )
    assert "To give the schema does not save this" in issue.advice
    assert "basePath" in issue.advice
    assert issue.evidence["listing.path"] == SALES


def test_of_what_is_listed_once_nothing_is_told() -> None:
    """Of one read after the other, each of another day; and of two tables."""
    rule = ListedAgain()
    told = [read_of(rule, range(day, day + 1), 9 * day, 100 * day) for day in range(9)]
    told += [read_of(rule, range(9), 200 + n, 1_000 * n, f"s3a://lake/t{n}") for n in range(2, 4)]
    assert not any(told)


def test_what_is_written_has_to_be_listed_again() -> None:
    rule = ListedAgain()
    read_of(rule, range(3), 0, 0)
    plan = Plan()(0, f"Execute InsertIntoHadoopFsRelationCommand {SALES}, false, Parquet", None)
    rule.execution_ended(executed(plan))
    assert read_of(rule, range(3), 10, 100) == []
    assert read_of(rule, range(3), 20, 200)[-1].sentence.count("3 reads") == 1


def test_work_beside_a_listing_is_not_lost() -> None:
    rule, lists = ListedAgain(), Listing(f"{SALES}/day=1", 40)
    assert rule.take(lists, 0, 0, 9 * S, 0) is None
    told = rule.take(lists, 7, 20 * S, 29 * S, 4 * S)
    assert told is not None
    assert (told.issue.lost_ms, told.since_ms, told.until_ms) == (5 * S, 20 * S, 29 * S)
    # Another thread's listing at the same time.
    told = rule.take(lists, 8, 27 * S, 30 * S, 0)
    assert told is not None
    assert told.issue.lost_ms == 6 * S


@pytest.mark.parametrize(
    ("description", "found"),
    [
        (
            "Listing leaf files and directories for 200 paths:<br/>file:/a b/day=1/shop=5, ...",
            Listing("file:/a b/day=1/shop=5", 200),
        ),
        ("Listing leaf files and directories for 200 paths:<br/>file:/a/day=1/sh", None),
        ("daily totals", None),
        ("", None),
    ],
    ids=["Spark's own", "cut", "of the user", "none"],
)
def test_what_a_job_lists(description: str, found: Listing | None) -> None:
    assert listing(description) == found


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("s3a://lake/sales/day=1/shop=5", "s3a://lake/sales"),
        ("file:/data/2026/01", "file:/data/2026/01"),
        ("file:/a=b/data/day=2026-01-01", "file:/a=b/data"),
    ],
)
def test_which_table_it_is(path: str, table: str) -> None:
    assert Listing(path, 1).table == table
