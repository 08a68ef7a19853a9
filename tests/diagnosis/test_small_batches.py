"""The rule about a limit that makes small micro-batches: a query that keeps up has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage
from spark_events.diagnosis.queries.small_batches import BatchWork, SmallBatches, batch_work
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, executed

S = 1_000
CLICKS = "file:/data/clicks"
FILE = f"{CLICKS}/part-0.json"


class Query:
    """A query of which each micro-batch takes 1 s; all of its sources are told alike."""

    def __init__(self, min_time_ms: int = S) -> None:
        self.rule = SmallBatches(Thresholds(min_time_ms=min_time_ms))
        self.now_ms = 5_000
        self.told: tuple[Issue, int] | None = None

    def batches(self, number: int, pause_ms: int = 10, **of: Any) -> Query:
        """Let micro-batches follow each other; of them, see ``_batch``."""
        for _ in range(number):
            self._batch(**of)
            self.now_ms += S + pause_ms
        return self

    def _batch(
        self,
        files: int = 1,
        tasks_ms: int = 200,
        rows: int = 100,
        code_ms: int = 0,
        path: str = FILE,
        source: dict[str, Any] | None = None,
        **progress: Any,
    ) -> None:
        source = source or {"description": f"FileStreamSource[{CLICKS}]"}
        told = {
            "durationMs": {"triggerExecution": S, **progress.pop("took", {})},
            "sources": [source],
            **progress,
        }
        work = BatchWork(tasks_ms, 4, {path: files} if files else {})
        self.told = self.rule.take(told, rows, self.now_ms, work, code_ms)

    @property
    def lost_ms(self) -> int | None:
        """What it has cost; None if nothing is told."""
        return self.told[0].lost_ms if self.told is not None else None


def kafka(end: int, latest: int) -> dict[str, Any]:
    offsets = [json.dumps({"clicks": {"0": offset, "1": 7}}) for offset in (end, latest)]
    return {"description": "KafkaV2[Subscribe[clicks]]", "endOffset": offsets[0], "latestOffset": offsets[1]}


def test_a_limit_of_one_file() -> None:
    """All but what tasks take is a fixed cost, and of all but one micro-batch."""
    query = Query().batches(40)
    assert query.told is not None
    issue, whole_ms = query.told
    assert (issue.kind, issue.lost_ms, whole_ms) == ("small-batches", 39 * 800, 40 * S)
    assert issue.sentence == (
        "40 micro-batches of about 100 rows of file:/data/clicks follow each other without a pause and take "
        "1.0 s each, of which at least 800 ms would be the same for more rows (planning, commits)"
    )
    assert issue.evidence["batches.fixedMs"] == 800


def test_a_source_that_says_what_it_has_left() -> None:
    assert Query().batches(20, files=0, source=kafka(9, 10)).lost_ms == 19 * 800


@pytest.mark.parametrize(
    ("of", "lost_ms"),
    [
        ({"code_ms": 100}, 700),
        ({"took": {"latestOffset": 240}}, 800),
        ({"took": {"latestOffset": 250}}, 550),
        ({"stateOperators": [{"numShufflePartitions": 8, "numRowsUpdated": 9, "commitTimeMs": 400}]}, 900),
        ({"stateOperators": [{"numShufflePartitions": 8, "numRowsUpdated": 801, "commitTimeMs": 400}]}, 800),
        ({"stateOperators": [{"numShufflePartitions": 16, "numRowsUpdated": 9, "commitTimeMs": 400}]}, 800),
    ],
    ids=[
        "code in foreachBatch",
        "the source answers",
        "which is an issue of its own",
        "state that hardly changes is committed",
        "it changes much",
        "of too many parts",
    ],
)
def test_what_is_fixed(of: dict[str, Any], lost_ms: int) -> None:
    assert Query().batches(20, **of).lost_ms == 19 * lost_ms


def test_one_that_is_slower_by_chance_has_no_more_work() -> None:
    """Its rows take no longer than as many rows of others; those that take far longer are other rows."""
    query = Query().batches(20, tasks_ms=200).batches(1, tasks_ms=390).batches(1, tasks_ms=410)
    query.batches(1, tasks_ms=300, rows=50)
    assert query.lost_ms == (19 + 1) * 800 + 590 + 700


@pytest.mark.parametrize(
    "query",
    [
        Query().batches(19),
        Query().batches(60, tasks_ms=501),
        Query().batches(60, pause_ms=150),
        Query(30 * S)
        .batches(14)
        .batches(1, pause_ms=3 * S)
        .batches(15)
        .batches(1, pause_ms=3 * S)
        .batches(16),
        Query().batches(19).batches(1, files=2).batches(19),
        Query().batches(60, path="file:/data/codes/part-0.json"),
        Query().batches(60, path=f"{CLICKS}_of_before/part-0.json"),
        Query().batches(60, files=0),
        Query().batches(60, files=0, source=kafka(9, 9)),
        Query().batches(
            60, files=0, source={"endOffset": '{"version": 1}', "latestOffset": '{"version": 2}'}
        ),
        Query().batches(60, files=0, source={"endOffset": 8, "latestOffset": "{"}),
        Query().batches(60, rows=0),
    ],
    ids=[
        "too few",
        "most of the time is for rows",
        "each waits",
        "some wait: it catches up each time",
        "the files differ",
        "files of a table that it joins",
        "of another folder",
        "nobody knows of a limit",
        "nothing is left",
        "other offsets",
        "no offsets",
        "no rows",
    ],
)
def test_a_query_that_keeps_up(query: Query) -> None:
    assert query.told is None


def test_what_was_lost_before_a_pause_stays_lost() -> None:
    """A few late micro-batches are chance; after a long pause, others begin."""
    query = Query(10 * S).batches(10).batches(1, pause_ms=150).batches(10).batches(1, pause_ms=5 * S)
    assert query.batches(5).lost_ms == 21 * 800
    assert query.batches(15).lost_ms == (21 + 19) * 800


def ended(*stages: ExecutedStage) -> EndedExecution:
    plan = Plan()(
        0,
        "Scan json [a#1]",
        None,
        {"Location": f"InMemoryFileIndex(1 paths)[{FILE}]"},
        number_of_files_read=3,
    )
    whole = executed(plan, cores=4)
    return EndedExecution(0, 9 * S, 4, whole.plans, {stage.id: stage for stage in stages})


def stage(number: int, tasks: int, longest_ms: int) -> ExecutedStage:
    """Return a stage of 1 s whose tasks ran for 1.2 s in all."""
    return ExecutedStage(number, tasks, number * S, (number + 1) * S, 1_200, 0, 0, longest_ms=longest_ms)


@pytest.mark.parametrize(
    ("stages", "alone", "tasks_ms"),
    [
        ([stage(0, 8, 200), stage(1, 2, 650)], True, 300 + 650),
        ([stage(0, 8, 200), stage(1, 2, 650)], False, 2 * S),
        ([stage(0, 8, 900)], True, 900),
        ([stage(0, 8, 0)], True, S),
        ([stage(0, 1, 1_200)], True, S),
        ([], True, 0),
    ],
    ids=["on all cores", "others may use them", "a late task", "unknown", "no more than it took", "none"],
)
def test_how_long_rows_take_at_most(stages: list[ExecutedStage], alone: bool, tasks_ms: int) -> None:
    assert batch_work(ended(*stages), alone) == BatchWork(tasks_ms, 4, {FILE: 3})
