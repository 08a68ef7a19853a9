"""Partitions that are fetched one after the other."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.one_by_one import OneByOne, is_fetch

S = 1_000
PLACE = "toLocalIterator at nightly.py:31"


def fetched(partitions: int, cores: int = 4, every_s: int = 10, beside_s: int = 0) -> Issue | None:
    """Return what is told of partitions that each take so long, and begin so often."""
    rule, issue = OneByOne(), None
    for number in range(partitions):
        begun_ms = number * every_s * S
        issue = rule.take(PLACE, 10 * S, begun_ms, begun_ms + 10 * S, beside_s * S, cores)
    return issue


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
