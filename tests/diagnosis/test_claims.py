"""No moment is lost twice: by hand, and against a run of which each ms is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_events.diagnosis import claims
from spark_events.diagnosis.claims import Claims


def test_the_latest_free_moments_are_claimed() -> None:
    book = Claims()
    assert book.claim(0, 100, 30) == 30  # 70 to 100
    assert book.claim(50, 100, 30) == 20  # 50 to 70 is free
    assert book.claim(50, 100, 30) == 0
    assert book.claim(0, 200, 120) == 120  # 100 to 200, and 30 to 50
    assert book.claim(0, 50, 100) == 30
    assert book.total_ms == 200


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 40)), max_size=12))
def test_against_each_moment(times: list[tuple[int, int, int]]) -> None:
    book, taken = Claims(), set()
    for from_ms, lasted_ms, lost_ms in times:
        free = [ms for ms in range(from_ms, from_ms + lasted_ms) if ms not in taken]
        latest = free[max(0, len(free) - lost_ms) :] if lost_ms else []
        assert book.claim(from_ms, from_ms + lasted_ms, lost_ms) == len(latest)
        taken.update(latest)
        assert book.total_ms == len(taken)


def test_very_many_spans_take_little() -> None:
    book = Claims()
    for number in range(3 * claims._MOST_SPANS):
        assert book.claim(10 * number, 10 * number + 10, 5) == 5
    assert len(book._taken) == claims._MOST_SPANS
