"""What issues of one stage cost together, and what other stages did beside it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import KINDS
from spark_events.diagnosis.times.booking import booked
from spark_events.diagnosis.times.other_work import OtherWork
from spark_events.diagnosis.writes.small_files import WRITES


def issue(kind: str, lost_ms: int | None, *stages: int) -> Issue:
    return Issue(kind, kind, lost_ms, None, "", "", stages=frozenset(stages))


def test_a_cause_comes_before_what_follows_from_it() -> None:
    found = [issue("python", 60, 1), issue("skew", 30, 1), issue("exploding-join", 50, 1)]
    assert [each.lost_ms for each in booked(found, {1: 100})] == [20, 30, 50]


def test_the_one_task_of_a_window_is_no_issue_of_its_own() -> None:
    found = [issue("task-count", 75, 1), issue("window", 75, 1), issue("task-count", 75, 2)]
    assert [each.lost_ms for each in booked(found, {1: 100, 2: 100})] == [0, 75, 75]


def test_more_tasks_would_write_no_fewer_files() -> None:
    files = [
        Issue("small-files", cause, 90, None, "", "", stages=frozenset({1})) for cause in (WRITES, "reads")
    ]
    assert [each.lost_ms for each in booked([issue("task-count", 50, 1), files[0]], {1: 100})] == [10, 90]
    assert [each.lost_ms for each in booked([issue("task-count", 50, 1), files[1]], {1: 100})] == [50, 50]


_ISSUES = st.builds(
    issue,
    st.sampled_from(KINDS),
    st.one_of(st.none(), st.integers(0, 1_000)),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(st.lists(_ISSUES, max_size=12), st.dictionaries(st.integers(0, 3), st.integers(0, 500)))
def test_no_more_is_lost_than_there_was(found: list[Issue], wall_ms: dict[int, int]) -> None:
    after = booked(found, wall_ms)
    assert [(each.kind, each.stages) for each in after] == [(each.kind, each.stages) for each in found]
    for before, each in zip(found, after, strict=True):
        assert (each.lost_ms is None) == (before.lost_ms is None)
        assert (each.lost_ms or 0) <= (before.lost_ms or 0)
    known = [each for each in after if each.stages <= wall_ms.keys()]
    assert sum(each.lost_ms or 0 for each in known) <= sum(wall_ms.values())


def test_other_work() -> None:
    work = OtherWork()
    work.begun((1, 0), 0)
    work.begun((2, 0), 10)
    work.ended((2, 0), 40, 60)
    work.begun((3, 0), 30)
    work.ended((3, 0), 50, 10)
    work.begun((4, 0), 90)
    assert work.beside_ms((1, 0), 20, 100) == (50 - 20) + (100 - 90)
    assert work.beside_ms((1, 0), 50, 90) == 0
    assert work.core_ms((1, 0), 20, 100) == 60 * 20 // 30 + 10 + (100 - 90)
    assert work.core_ms((1, 0), 50, 90) == 0
    assert work.core_ms((2, 0), 0, 90) == 90 + 10
