"""Partitions that are fetched one after the other."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.rdds.one_by_one import Fetch, OneByOne, fetch, is_fetch

S = 1_000
PLACE = "toLocalIterator at nightly.py:31"


def told(*fetches: Fetch, cores: int = 4, beside_s: int = 0) -> tuple[Issue | None, int]:
    """Return what is told last, and how much of all stages is told in all."""
    rule, issue, told_ms = OneByOne(), None, 0
    for each in fetches:
        found = rule.take(PLACE, each, beside_s * S, cores)
        issue, more_ms = found or (None, 0)
        told_ms += more_ms
    return issue, told_ms


def fetched(
    partitions: int, cores: int = 4, every_s: int = 10, beside_s: int = 0, of: int | None = None
) -> Issue | None:
    """Return what is told of partitions that each take so long, and begin so often."""
    begun = (number * every_s * S for number in range(partitions))
    fetches = (Fetch(7, of or partitions, 10 * S, ms, ms + 10 * S) for ms in begun)
    return told(*fetches, cores=cores, beside_s=beside_s)[0]


def test_all_cores_could_compute_them_at_once() -> None:
    issue = fetched(8)
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("task-count", (80 - 20) * S)
    assert (
        "toLocalIterator at nightly.py:31 has its 8 partitions computed one after the other" in issue.sentence
    )


@pytest.mark.parametrize(
    ("issue", "lost_s"),
    [
        (fetched(3, cores=8), 30 - 10),
        (fetched(8, beside_s=4), 48 - 20),
        (fetched(8, every_s=5), 45 - 20),
        (fetched(8, beside_s=10), 0),
    ],
    ids=["no sooner than the longest", "others ran meanwhile", "the next one runs beside", "all the time"],
)
def test_what_it_costs(issue: Issue | None, lost_s: int) -> None:
    assert issue is not None
    assert issue.lost_ms == lost_s * S


@pytest.mark.parametrize("issue", [fetched(1), fetched(8, cores=1), fetched(8, cores=0)])
def test_nothing_is_lost(issue: Issue | None) -> None:
    """Of one partition, on one core, or where nobody knows how many cores there are."""
    assert issue is None


def test_a_reader_that_is_slower() -> None:
    """It may read one while the next is computed, so nobody knows what it waited for."""
    issue = fetched(8, every_s=25)
    assert issue is not None
    assert (issue.lost_ms, issue.share_ms) == (None, 60 * S)


@pytest.mark.parametrize(
    ("place", "is_one"),
    [
        (PLACE, True),
        ("toPythonIterator at NativeMethodAccessorImpl.java:0", True),
        ("toLocalIterator", True),
        ("count at toLocalIterator.py:1", False),
        ("", False),
    ],
)
def test_which_places_fetch(place: str, is_one: bool) -> None:
    assert is_fetch(place) == is_one


def test_an_iterator_that_is_left() -> None:
    """All cores would have to compute all 100 partitions, which takes longer than these two."""
    issue = fetched(2, of=100)
    assert issue is not None
    assert issue.lost_ms == 0
    assert "has 2 of its 100 partitions computed one after the other" in issue.sentence


def test_an_iterator_that_is_left_late() -> None:
    """If it had stopped there, all cores would have needed 250 s for all of them."""
    issue = fetched(60, of=100)
    assert issue is not None
    assert issue.lost_ms == (600 - 250) * S


def test_one_partition_each_of_many_rdds() -> None:
    """A loop over tables: no core could compute another partition of them meanwhile."""
    assert told(*(Fetch(rdd, 9, 10 * S, rdd * 10 * S, (rdd + 1) * 10 * S) for rdd in range(100))) == (None, 0)


def test_several_rdds_of_one_place_add_up() -> None:
    """Of 40 s of each, all cores would have needed 10 s."""
    fetches = [
        Fetch(rdd, 4, 10 * S, (4 * rdd + number) * 10 * S, (4 * rdd + number + 1) * 10 * S)
        for rdd in range(3)
        for number in range(4)
    ]
    issue, told_ms = told(*fetches)
    assert issue is not None
    assert (issue.lost_ms, told_ms) == (3 * 30 * S, 3 * 30 * S)
    assert "has 12 of 12 partitions of 3 RDDs computed one after the other" in issue.sentence


def test_thousands_of_rdds_add_up() -> None:
    """An RDD that is read no more is forgotten, and what it has cost is not."""
    fetches = [
        Fetch(rdd, 2, 10 * S, (2 * rdd + number) * 10 * S, (2 * rdd + number + 1) * 10 * S)
        for rdd in range(2_500)
        for number in range(2)
    ]
    issue, _ = told(*fetches)
    assert issue is not None
    assert issue.lost_ms == 2_500 * 10 * S


def test_two_rdds_at_the_same_time() -> None:
    """No moment is lost twice."""
    fetches = [Fetch(rdd, 4, 10 * S, n * 10 * S, (n + 1) * 10 * S) for n in range(4) for rdd in (1, 2)]
    issue, _ = told(*fetches)
    assert issue is not None
    assert issue.lost_ms == 40 * S - 10 * S


RDDS = [{"RDD ID": 3, "Number of Partitions": 1}, {"RDD ID": 9, "Number of Partitions": 8}]


@pytest.mark.parametrize(
    ("rdds", "tasks", "known"),
    [
        (RDDS, 1, Fetch(9, 8, 5, 6, 7)),
        (RDDS, 2, None),
        ([{"RDD ID": 9, "Number of Partitions": 1}, {"RDD ID": 3, "Number of Partitions": 8}], 1, None),
        ([], 1, None),
    ],
    ids=["one of eight partitions", "more than one at once", "it has only one", "nothing is known of it"],
)
def test_which_stages_fetch_one_of_many(rdds: list[dict[str, int]], tasks: int, known: Fetch | None) -> None:
    assert fetch({"RDD Info": rdds}, tasks, 5, 6, 7) == known
