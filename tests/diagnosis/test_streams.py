"""The rules about streaming queries: a source that stops, a backlog that grows, state that grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.queries.state_parts import ManyStateParts
from spark_events.diagnosis.queries.state_rules import StateGrowth, StateRowsGrow
from spark_events.diagnosis.queries.streams import (
    SlowSource,
    SourceStopped,
    StreamBehind,
    flow_of,
    sources_of,
)
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.writes.small_files import WRITES
from tests.support.plans import Plan, executed

S = 1_000


Batch = tuple[dict[str, Any], int, int | None]
"""A query's progress, the rows that it has read, and when it began, in ms."""


def progress(rows: int, took_ms: int = 500, begun_ms: int | None = None, **more: Any) -> Batch:
    return {"durationMs": {"triggerExecution": took_ms}, **more}, rows, begun_ms


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


def behind(interval_ms: int | None, *batches: Batch, bounded: bool = False) -> Issue | None:
    rule, issue = StreamBehind(interval_ms, bounded), None
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
        "in 5 micro-batches, more came than was read: from 10 to 500 offsets behind the latest"
        in issue.sentence
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


def timed(*batches: tuple[int, int, int]) -> list[Batch]:
    """Return micro-batches by when each began, how long it took, both in ms, and how many rows it read."""
    return [progress(rows, took, begun) for begun, took, rows in batches]


PUNCTUAL = [(number * 1_500 + number % 3, 400, 10) for number in range(8)]
"""Micro-batches that begin at multiples of 1.5 s."""
LATE = [(12_000 + number * 2_000, 2_000, 10) for number in range(6)]
"""And those that come after them, each later than that."""


def test_the_interval_is_known_by_those_that_were_in_time() -> None:
    issue = behind(None, *timed(*PUNCTUAL, *LATE))
    assert issue is not None
    assert (issue.kind, issue.share_ms) == ("stream-behind", 6 * 500)
    assert "the last 6 micro-batches took longer than the interval of earlier ones, 1.5 s" in issue.sentence


@pytest.mark.parametrize(
    "batches",
    [
        [*PUNCTUAL[2:], *LATE],
        [*((begun + 200 * (begun == 3_002), took, rows) for begun, took, rows in PUNCTUAL), *LATE],
        [*((begun + 700, took, rows) for begun, took, rows in PUNCTUAL), *LATE],
        [*((number * 300, 100, 10) for number in range(8)), *LATE],
        [*PUNCTUAL, *((begun, 1_400, rows) for begun, _, rows in LATE)],
    ],
    ids=["too few", "one is not in time", "not since the epoch", "too short to tell", "they are in time"],
)
def test_no_interval_is_known(batches: list[tuple[int, int, int]]) -> None:
    assert behind(None, *timed(*batches)) is None


def overrun(factor: float, batches: int = 6, pause_ms: int = 0, per_s: float = 40) -> list[Batch]:
    """Return micro-batches that each read what came while the one before ran, and take so much longer."""
    begun_ms, took_ms, found = 0, 1_000, []
    for _ in range(batches):
        rows = int(per_s * took_ms / factor / 1_000)
        found.append((begun_ms, took_ms, rows))
        begun_ms += took_ms + pause_ms
        took_ms = int(took_ms * factor)
    return timed(*found)


def test_more_rows_come_than_it_can_process() -> None:
    issue = behind(None, *overrun(1.5))
    assert issue is not None
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("stream-behind", None, None)
    assert "each of the last 6 micro-batches read more rows and took longer than" in issue.sentence
    # It may read files of before, which were larger from day to day.
    assert issue.sentence.endswith("the one before, from 1.0 s to 7.6 s, without a pause")


def test_a_query_that_ends_by_itself_reads_what_was_there() -> None:
    """With ``availableNow``, no more rows come while it runs."""
    assert behind(None, *overrun(1.5), bounded=True) is None


@pytest.mark.parametrize(
    "batches",
    [
        overrun(1.5, batches=5),
        overrun(1.5, pause_ms=200),
        overrun(1.05, batches=20),
        overrun(1.12),
        [(each, 10, begun) for each, _, begun in overrun(1.5)],
        [(each, number**3 + 1, begun) for number, (each, _, begun) in enumerate(overrun(1.5))],
    ],
    ids=["too few", "it waits", "hardly longer", "not twice as long", "no more rows", "rows come unevenly"],
)
def test_batches_that_only_vary(batches: list[Batch]) -> None:
    assert behind(None, *batches) is None


def slow_source(*offsets_ms: int, rows: int = 5, sources: int = 1) -> tuple[int | None, str] | None:
    """Return what it costs and what is told, if so many sources say so late what is new, of 1 s each."""
    rule, told = SlowSource(), None
    described = [{"description": "FileStreamSource[s3a://lake/clicks]"}, {"description": "Rate"}][:sources]
    for ms in offsets_ms:
        took = {"triggerExecution": S, "latestOffset": ms}
        told = rule.take({"durationMs": took, "sources": described}, rows, "s3a://lake/clicks")
    return (told[0].lost_ms, told[0].sentence) if told else None


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        (1, "its source s3a://lake/clicks takes 2.1 s to say what is new, 700 ms before each"),
        (2, "its 2 sources take 2.1 s to say what is new, 700 ms before each"),
    ],
    ids=["one", "nobody knows which of them is slow"],
)
def test_a_source_that_is_slow_to_say_what_is_new(sources: int, sentence: str) -> None:
    told = slow_source(800, 700, 600, sources=sources)
    assert told is not None
    assert told[0] == 2_100
    assert told[1].startswith(sentence)


@pytest.mark.parametrize(
    "told",
    [slow_source(800, 800), slow_source(200, 200, 200), slow_source(800, 800, 800, rows=0)],
    ids=["too few batches", "most of the time is for other things", "there is nothing new"],
)
def test_a_source_that_is_quick(told: object) -> None:
    assert told is None


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


def test_state_is_named_by_its_columns() -> None:
    rule = StateGrowth()
    text = "StreamingDeduplicate [message_id#3L], state info [ checkpoint = a, runId = b#4, opId = 0]"
    rule.knows([Plan()(0, text, 1, rows=5).root()])
    issues = [list(rule.take(progress(5, stateOperators=[operator(2_000 * n)])[0])) for n in range(1, 12)]
    assert "the state of dropDuplicates() by message_id has grown" in issues[-1][0].sentence


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


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("dedupe", "StreamingDeduplicate [id#3L], state info [ opId = 0]", "dropDuplicatesWithinWatermark"),
        ("dedupe", "StreamingDeduplicate [id#3L, at#4-T600000ms], state info [ opId = 0]", ""),
        (
            "stateStoreSave",
            "StateStoreSave [user#3L], state info [ opId = 0], Update, 0, 0, 2",
            "group by a window",
        ),
        ("stateStoreSave", "StateStoreSave [window#3-T10000ms, user#4L], state info [ opId = 0], Update", ""),
        (
            "symmetricHashJoin",
            "StreamingSymmetricHashJoin [user#4], [u#9], Inner, state cleanup [ left = null, right = null ], 2",
            "compare the columns themselves",
        ),
        (
            "symmetricHashJoin",
            "StreamingSymmetricHashJoin [user#4], [u#9], Inner, state cleanup [ left value predicate: (at <= 1) ]",
            "",
        ),
    ],
)
def test_a_watermark_that_is_of_no_use_to_an_operator(name: str, text: str, advice: str) -> None:
    """Spark removes what the watermark has passed only by keys, or a condition, with the event time."""
    rule = StateGrowth()
    rule.knows([Plan()(0, text, 1, rows=5).root()])
    issues: list[Issue] = []
    for number in range(1, 12):
        of = {**operator(2_000 * number), "operatorName": name}
        issues = list(rule.take(progress(5, stateOperators=[of], eventTime={"watermark": "x"})[0]))
    assert len(issues) == bool(advice)
    assert all("There is a watermark, but" in issue.advice and advice in issue.advice for issue in issues)


def grown(sizes: list[int], rows: int = 50, **more: Any) -> list[Issue]:
    """Return what is told of state of so many bytes, after each micro-batch."""
    rule, issues = StateRowsGrow(), []
    for number, used in enumerate(sizes):
        of = {"operatorName": "applyInPandasWithState", "numRowsTotal": rows + more.get("added", 0) * number}
        of |= {"customMetrics": {"stateOnCurrentVersionSizeBytes": used}, "memoryUsedBytes": 9 << 30}
        issues = list(rule.take(progress(5, stateOperators=[of])[0]))
    return issues


def test_rows_of_a_state_that_grow() -> None:
    (issue,) = grown([400_000 * number for number in range(1, 13)])
    assert issue.sentence == (
        "each row of the state of applyInPandasWithState has grown, in 11 of 12 micro-batches, from 7.8 KiB to "
        "93.8 KiB, while there are 50 rows"
    )


@pytest.mark.parametrize(
    "healthy",
    [
        grown([400_000 * number for number in range(1, 10)]),
        grown([4_000 * number for number in range(1, 20)]),
        grown([400_000] * 20),
        grown([400_000 * number for number in range(1, 20)], added=50),
        grown([4_000_000 + 400_000 * number for number in range(1, 20)]),
    ],
    ids=["few batches", "little", "as large", "more rows", "less than four times as much"],
)
def test_rows_of_a_state_that_do_not(healthy: list[Issue]) -> None:
    assert healthy == []


def test_a_cache_that_fills_is_no_state_that_grows() -> None:
    """Of RocksDB, Spark says the memory, with its caches; not how large rows are."""
    rule = StateRowsGrow()
    for number in range(1, 20):
        of = {"operatorName": "stateStoreSave", "numRowsTotal": 50, "memoryUsedBytes": 4_000_000 * number}
        of |= {"customMetrics": {"rocksdbSstFileSize": 400_000 * number}}
        assert list(rule.take(progress(5, stateOperators=[of])[0])) == []


def test_as_many_operators_as_are_followed() -> None:
    """Those that were there before go on being followed."""
    rule, issues = StateRowsGrow(), []
    for number in range(1, 13):
        sizes = {"stateOnCurrentVersionSizeBytes": 400_000 * number}
        each = {"operatorName": "flatMap", "numRowsTotal": 50, "customMetrics": sizes}
        issues = list(rule.take(progress(5, stateOperators=[each] * 101)[0]))
    assert len(issues) == 100


def test_of_two_joins_one_may_be_cleaned() -> None:
    """Its state grows until the watermark comes by: nobody knows which of the two it is."""
    rule = StateGrowth()
    text = "StreamingSymmetricHashJoin [user#4], [u#9], Inner, state cleanup [ {0} ], 2"
    cleaned, kept = "left value predicate: (at <= 1)", "left = null, right = null"
    rule.knows([Plan()(0, text.format(each), 1, rows=5).root() for each in (cleaned, kept)])
    for number in range(1, 12):
        of = {**operator(2_000 * number), "operatorName": "symmetricHashJoin"}
        assert list(rule.take(progress(5, stateOperators=[of], eventTime={"watermark": "x"})[0])) == []


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
    first, second = (rule.take(parts_of(200, 50, 100 * S), 4) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (second.kind, second.lost_ms) == ("task-count", 2 * first.lost_ms)
    assert first.lost_ms == 24_500
    assert (
        "is kept in 200 parts, for 4 cores: in the micro-batch whose commits took longest, 50 rows"
        in first.sentence
    )


def test_an_empty_micro_batch_says_nothing_of_the_parts_of_a_state() -> None:
    rule = ManyStateParts()
    for rows, took_s, changed in ((50, 100, 50), (70, 120, 70), (0, 3, 70)):
        issue = rule.take(parts_of(200, rows, took_s * S), 4)
        assert issue is not None
        assert f"took longest, {changed} rows changed, and its tasks took " in issue.sentence
        assert issue.evidence["state.updatedRows"] == changed


@pytest.mark.parametrize(
    ("parts", "rows", "cores"),
    [(15, 50, 4), (200, 20_001, 4), (200, 50, 0), (0, 0, 4)],
    ids=["not many", "many rows", "nobody knows the cores", "no state"],
)
def test_a_state_in_parts_that_have_something_to_do(parts: int, rows: int, cores: int) -> None:
    assert ManyStateParts().take(parts_of(parts, rows, 100 * S), cores) is None


def written(files: int, lost_ms: int) -> Issue:
    return Issue("small-files", WRITES, lost_ms, None, "writes files", "", evidence={"files": files})


def test_each_part_of_a_state_writes_a_file() -> None:
    """One cause has cost the commits and the files: its stages do both, and with few parts they would do neither."""
    of_parts, rule = parts_of(200, 50, 100 * S), ManyStateParts()
    lost_ms = []
    for files in ([written(195, 50 * S)], [], [written(195, 10 * S)]):
        issue = rule.take(of_parts, 4, files)
        assert issue is not None
        lost_ms.append(issue.lost_ms)
        assert ("195 tasks write a file each" in issue.sentence) == bool(files)
    assert lost_ms == [49 * S, 49 * S + 24_500, 49 * S + 2 * 24_500]


@pytest.mark.parametrize(
    ("above", "rows", "lost_ms"),
    [
        ("HashAggregate(keys=[k#1], functions=[count(1)])", 50, 98 * S * (400 * S - 2) // (400 * S)),
        ("HashAggregate(keys=[k#1], functions=[count(1)])", 2_000_000, 98 * S * 3 // 4),
        ("HashAggregate(keys=[k#1], functions=[count(1)])", 2_700_000, 24_500),
        (
            "ObjectHashAggregate(keys=[k#1], functions=[approx_count_distinct(u#2)])",
            1_000_000,
            98 * S * 3 // 4,
        ),
        ("MapInPandas f(k#1)", 50, 24_500),
        ("ObjectHashAggregate(keys=[k#1], functions=[count(1), collect_list(u#2, 0, 0)])", 50, 24_500),
        ("ObjectHashAggregate(keys=[k#1], functions=[sum(u#2), ... 3 more fields])", 50, 24_500),
    ],
    ids=[
        "nothing else takes long",
        "rows that need a quarter",
        "rows that need a third",
        "rows to add up",
        "functions may",
        "lists that grow",
        "functions that are cut",
    ],
)
def test_all_of_the_stages_is_for_parts(above: str, rows: int, lost_ms: int) -> None:
    """Two hundred tasks do in 100 s what four would do in two; else only the commits are known."""
    plan = Plan()(0, above, 5, rows=9)(1, "StateStoreSave [k#1], state info [ x ], Update", 5, rows=9)
    plan(2, "StateStoreRestore [k#1], state info [ x ]", 5)
    plan(3, "Exchange hashpartitioning(k#1, 200)", 4, shuffle_records_written=rows)
    plan(4, "Scan json [k#1] Batched: false", 4, rows=50)
    batch, rule = executed(plan, s4=(0, 9), s5=(9, 109)), ManyStateParts()
    of_state = replace(batch.stages[5], tasks=200)
    rule.ran(replace(batch, stages={**batch.stages, 5: of_state}))
    issues = [rule.take(parts_of(200, 50, 100 * S), 4) for _ in range(2)]
    assert [issue and issue.lost_ms for issue in issues] == [lost_ms, lost_ms + 24_500]


@pytest.mark.parametrize(
    ("above", "tasks", "joined", "lost_ms"),
    [
        ("BroadcastHashJoin [k#1], [k#2], Inner, BuildRight", 200, 9, 98 * S),
        ("BroadcastHashJoin [k#1], [k#2], Inner, BuildRight", 200, 90, 24_500),
        ("BroadcastHashJoin [k#1], [k#2], Inner, BuildRight", 200, None, 98 * S),
        ("Coalesce 1", 1, 9, 98 * S),
        ("Project [k#1]", 1, 9, 24_500),
    ],
    ids=["rows are looked up", "rows come to more", "no row was found", "one task has all parts", "one part"],
)
def test_what_else_a_stage_with_state_may_do(
    above: str, tasks: int, joined: int | None, lost_ms: int
) -> None:
    plan = Plan()(0, above, 5, rows=joined)(1, "StateStoreSave [k#1], state info [ x ], Update", 5, rows=9)
    plan(2, "Exchange hashpartitioning(k#1, 200)", 4, shuffle_records_written=50)
    batch, rule = executed(plan(3, "Scan json [k#1]", 4, rows=50), s4=(0, 9), s5=(9, 109)), ManyStateParts()
    of_state = replace(batch.stages[5], tasks=tasks)
    rule.ran(replace(batch, stages={**batch.stages, 5: of_state}))
    issue = rule.take(parts_of(200, 50, 100 * S), 4)
    assert issue is not None
    assert issue.lost_ms == pytest.approx(lost_ms, rel=0.01)


def test_commits_of_many_rows_are_not_for_parts() -> None:
    """Of two states of a query, one changes few rows, and its stage is for its parts; the other changes many."""
    plan = Plan()(0, "StreamingDeduplicate [k#1], state info [ x ]", 5, rows=50)
    plan(1, "Exchange hashpartitioning(k#1, 200)", 4, shuffle_records_written=50)
    batch = executed(plan(2, "Scan json [k#1] Batched: false", 4, rows=50), s4=(0, 9), s5=(9, 19))
    batch = replace(batch, stages={**batch.stages, 5: replace(batch.stages[5], tasks=200)})
    (few,), (many,) = (
        parts_of(200, rows, commit_s * S)["stateOperators"] for rows, commit_s in ((50, 4), (1_000_000, 200))
    )
    rule = ManyStateParts()
    rule.ran(batch)
    issue = rule.take({"stateOperators": [{**few, "operatorName": "dedupe"}, many]}, 4)
    assert issue is not None
    assert issue.lost_ms == (10 * S - 1) * 196 // 200
    assert "the state of dropDuplicates() is kept in 200 parts" in issue.sentence


def test_a_large_state_is_not_for_its_parts() -> None:
    """To look at each of its rows, for those that are too old, takes as long in a few parts."""
    plan = Plan()(0, "StateStoreSave [k#1], state info [ x ], Update", 5, rows=9)
    plan(1, "Exchange hashpartitioning(k#1, 200)", 4, shuffle_records_written=30_000)
    batch = executed(plan(2, "Scan json [k#1] Batched: false", 4, rows=50), s4=(0, 9), s5=(9, 109))
    batch = replace(batch, stages={**batch.stages, 5: replace(batch.stages[5], tasks=200)})
    of_parts = parts_of(200, 30_000, 10 * S)
    told = []
    for kept in (1_000_000, 30_000_000):
        of_parts["stateOperators"][0]["numRowsTotal"] = kept
        rule = ManyStateParts()
        rule.ran(batch)
        told.append(rule.take(of_parts, 4) is not None)
    assert told == [True, False]


@pytest.mark.parametrize(
    ("files", "parts", "rows", "cores"),
    [(100, 200, 50, 4), (201, 200, 50, 4), (195, 200, 20_001, 4), (195, 200, 50, 0), (15, 15, 50, 4)],
    ids=["of a few parts", "more than parts", "many rows", "nobody knows the cores", "not many parts"],
)
def test_files_that_are_not_for_parts_of_a_state(files: int, parts: int, rows: int, cores: int) -> None:
    progress = parts_of(parts, rows, 100 * S)
    assert not ManyStateParts().makes(written(files, S), progress, cores)
    assert ManyStateParts().makes(written(195, S), parts_of(200, 50, 100 * S), 4)


def test_a_join_of_streams_has_four_stores_in_each_part() -> None:
    """Four parts, one for each core, are as few as there should be."""
    assert ManyStateParts().take(parts_of(4, 50, 100 * S, each=4), 4) is None


ORDERS, RATE = "FileStreamSource[file:/orders]", "RateStreamV2[rowsPerSecond=10, rampUpTimeSeconds=0]"
DAILY, TOPICS = "FileSink[file:/daily]", "KafkaV2[Subscribe[orders,returns]]"


@pytest.mark.parametrize(
    ("sources", "sink", "flow"),
    [
        ([ORDERS], DAILY, "of file:/orders into file:/daily"),
        ([ORDERS, ORDERS, TOPICS], "ForeachBatchSink", "of file:/orders, Subscribe[orders,returns]"),
        ([RATE], DAILY, "into file:/daily"),
        ([RATE], "ConsoleTable[numRows=20]", ""),
        ([], None, ""),
    ],
)
def test_where_rows_come_from_and_go(sources: list[str], sink: str | None, flow: str) -> None:
    progress = {"sources": [{"description": each} for each in sources]}
    assert flow_of(progress | ({"sink": {"description": sink}} if sink else {})) == flow


def test_sources_keep_their_options() -> None:
    assert sources_of({"sources": [{"description": RATE}]}) == "rowsPerSecond=10, rampUpTimeSeconds=0"
