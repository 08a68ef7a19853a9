"""The rules about streaming queries: a source that stops, a backlog that grows, state that grows."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.streams import ManyStateParts, SourceStopped, StateGrowth, StreamBehind
from spark_events.diagnosis.thresholds import Thresholds

S = 1_000


Batch = tuple[dict[str, Any], int]
"""A query's progress, and the rows that it has read."""


def progress(rows: int, took_ms: int = 500, **more: Any) -> Batch:
    return {"durationMs": {"triggerExecution": took_ms}, **more}, rows


def silence(gaps_ms: list[int], silent_ms: int, least_ms: int = 60 * S) -> Issue | None:
    """Return what is told when rows have come after these pauses, and then none for a while."""
    rule, now_ms = SourceStopped(Thresholds(silence_ms=least_ms)), 0
    for gap_ms in (0, *gaps_ms):
        now_ms += gap_ms
        assert rule.take(5, now_ms) is None
    return rule.take(0, now_ms + silent_ms)


def test_a_source_that_has_stopped() -> None:
    issue = silence([5 * S] * 7 + [20 * S], 100 * S)
    assert issue is not None
    assert (issue.kind, issue.share_ms, issue.lost_ms) == ("source-stopped", 100 * S, None)
    assert "no rows have come for 1 min 40 s; before, the longest pause was 20.0 s" in issue.sentence


@pytest.mark.parametrize(
    ("gaps_ms", "silent_ms"),
    [([5 * S] * 8, 59 * S), ([5 * S] * 7 + [20 * S], 99 * S), ([5 * S] * 7, 1_000 * S), ([], 1_000 * S)],
    ids=["too short", "not five times as long as ever", "too few pauses are known", "the first rows"],
)
def test_a_source_that_only_pauses(gaps_ms: list[int], silent_ms: int) -> None:
    assert silence(gaps_ms, silent_ms) is None


def test_a_batch_without_rows_is_silence_too_and_one_with_rows_ends_it() -> None:
    rule = SourceStopped(Thresholds(silence_ms=60 * S))
    for number in range(9):
        rule.take(5, number * S)
    assert rule.take(0, 100 * S) is not None
    assert rule.take(1, 101 * S) is None
    assert rule.take(0, 190 * S) is None  # by now, pauses of 93 s are known


def behind(interval_ms: int | None, *batches: Batch) -> Issue | None:
    rule, issue = StreamBehind(interval_ms), None
    for batch in batches:
        issue = rule.take(*batch)
    return issue


def test_a_query_that_takes_longer_than_its_interval() -> None:
    issue = behind(10 * S, *[progress(5, 13 * S)] * 6)
    assert issue is not None
    assert (issue.kind, issue.share_ms) == ("stream-behind", 18 * S)
    assert "the last 6 micro-batches took longer than the trigger's interval of 10.0 s" in issue.sentence


def offsets(latest: int) -> Batch:
    return progress(5, sources=[{"metrics": {"maxOffsetsBehindLatest": str(latest)}}])


def test_a_backlog_that_grows() -> None:
    issue = behind(None, offsets(10), *(offsets(number) for number in (100, 200, 300, 400, 500)))
    assert issue is not None
    assert (
        "in 5 micro-batches, its source has grown faster than it was read: from 10 to 500" in issue.sentence
    )


@pytest.mark.parametrize(
    ("interval_ms", "batches"),
    [
        (10 * S, [progress(5, 13 * S)] * 4),
        (10 * S, [progress(5, 13 * S)] * 4 + [progress(5, 9 * S)] + [progress(5, 13 * S)] * 4),
        (None, [progress(5, 13 * S)] * 9),
        (None, [offsets(number) for number in (1, 2, 3, 4, 3, 4, 5, 6)]),
        (None, [offsets(7)] * 20),
        (None, [offsets(number) for number in (100, 200, 300, 400, 500)]),
        (None, [progress(5, sources=[{"metrics": {"maxOffsetsBehindLatest": "NaN"}}])] * 9),
    ],
    ids=[
        "a while",
        "it has caught up",
        "no interval",
        "backlog that shrinks",
        "that stays",
        "that was there at the start",
        "no number",
    ],
)
def test_a_query_that_keeps_up(interval_ms: int | None, batches: list[Batch]) -> None:
    assert behind(interval_ms, *batches) is None


def operator(rows: int, removed: int = 0) -> dict[str, Any]:
    return {"operatorName": "dedupe", "numRowsTotal": rows, "numRowsRemoved": removed}


def state(rows: list[int], removed: int = 0, **more: Any) -> list[Issue]:
    rule, issues = StateGrowth(), []
    for each in rows:
        issues = list(rule.take(progress(5, stateOperators=[operator(each, removed)], **more)[0]))
    return issues


def test_state_that_only_grows() -> None:
    (issue,) = state([2_000 * number for number in range(1, 12)])
    assert "has grown in 10 of 11 micro-batches, from 2,000 to 22,000 rows" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [
        state([2_000 * number for number in range(1, 10)]),
        state([90 * number for number in range(1, 20)]),
        state([2_000 * number for number in range(1, 20)], removed=1),
        state([2_000 * number for number in range(1, 20)], eventTime={"watermark": "x"}),
        state([20_000] * 20),
    ],
    ids=["few batches", "few rows", "some are removed", "a watermark", "it does not grow"],
)
def test_state_that_does_not(healthy: list[Issue]) -> None:
    assert healthy == []


def parts_of(parts: int, rows: int, commit_ms: int, each: int = 1) -> dict[str, Any]:
    operator = {
        "operatorName": "stateStoreSave",
        "numShufflePartitions": parts,
        "numStateStoreInstances": parts * each,
        "numRowsUpdated": rows,
        "commitTimeMs": commit_ms,
    }
    return {"stateOperators": [operator]}


def test_a_state_in_far_too_many_parts() -> None:
    """Of 100 s of commits in each micro-batch, which four cores do in 25 s, four parts would need a fiftieth."""
    rule = ManyStateParts()
    first, second = (rule.take(parts_of(200, 50, 100 * S), lambda: 4) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (second.kind, second.lost_ms) == ("task-count", 2 * first.lost_ms)
    assert first.lost_ms == 24_500
    assert "is kept in 200 parts, for 4 cores: the last micro-batch changed 50 rows" in first.sentence


@pytest.mark.parametrize(
    ("parts", "rows", "cores"),
    [(15, 50, 4), (200, 20_001, 4), (200, 50, 0), (0, 0, 4)],
    ids=["not many", "many rows", "nobody knows the cores", "no state"],
)
def test_a_state_in_parts_that_have_something_to_do(parts: int, rows: int, cores: int) -> None:
    assert ManyStateParts().take(parts_of(parts, rows, 100 * S), lambda: cores) is None


def test_a_join_of_streams_has_four_stores_in_each_part() -> None:
    """Four parts, one for each core, are as few as there should be."""
    assert ManyStateParts().take(parts_of(4, 50, 100 * S, each=4), lambda: 4) is None
